"""Denial log: all denied accesses counted in few rows, without the quoted text."""

from datetime import datetime

from folklore.callers import Access, Caller
from folklore.db.stores.events.audit import NOWHERE
from folklore.errors import NotFound, Refused, Unauthenticated
from folklore.memory.auth.denial_log import Denial, DenialLog
from tests.person import NOON

HOLDER = Caller("alice", access=Access(NOWHERE, "0" * 64))


class Book:
    """Return the recorded denials."""

    def __init__(self) -> None:
        self.lines: list[tuple[Denial, int]] = []
        self.refusals = DenialLog(self.record, seconds=0.01)

    async def record(self, refusal: Denial, count: int, _at: datetime) -> None:
        self.lines.append((refusal, count))

    def total(self) -> int:
        return sum(count for _, count in self.lines)


async def test_thousands_of_denials_are_counted_in_a_bounded_number_of_rows() -> None:
    book = Book()
    for number in range(5_000):
        book.refusals.note(
            HOLDER,
            "memory_recall",
            NotFound(f"There is no namespace 'n{number}'."),
            now=NOON,
        )
    await book.refusals.close()

    assert len(book.lines) <= 101
    assert (book.total(), book.refusals.dropped) == (5_000, 0)


async def test_the_denial_log_has_equal_denials_as_one_row_no_secret_and_no_other_errors() -> (
    None
):
    book = Book()
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    for _ in range(300):
        book.refusals.note(HOLDER, "memory_store", Refused(f"not {token}"), now=NOON)
    book.refusals.note(
        Caller("local"), "memory_get", NotFound("There is no memory."), now=NOON
    )
    book.refusals.note(
        Caller("unknown"),
        "http /mcp",
        Unauthenticated("unknown", "…"),
        now=NOON,
        reason="unknown",
    )
    await book.refusals.close()

    (denial, count), (other, _) = book.lines
    assert (count, other.detail) == (300, "unknown")
    assert token not in denial.detail
