"""Short form of `make faults`: servers and their Postgres are struck by faults; and the check finds what is wrong."""

from pathlib import Path

import pytest

from tests.faults.__main__ import runs
from tests.faults.history import (
    DONE,
    Call,
    Key,
    Refused,
    Register,
    Seen,
    key,
    register,
    unexplained,
)
from tests.faults.site import site
from tests.faults.turns import turns
from tests.temporary_engine import temporary_home

STORED = Call("store", ("one",), 0, 1, DONE)


@pytest.mark.strain
async def test_servers_struck_by_faults_lose_and_confuse_nothing() -> None:
    reports = await runs(range(1, 13))

    assert [violation for report in reports for violation in report.violations] == []
    assert sum(report.calls["200"] for report in reports) > 100


@pytest.mark.strain
async def test_an_error_at_any_write_leaves_a_store_whole_or_undone(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o755)
    with temporary_home() as home:
        async with site(tmp_path, home) as struck:
            outcome = await turns(struck)

    assert outcome.violations == []
    assert outcome.failed_writes >= 6
    assert set(outcome.answers) <= {"stored", "database_unavailable", "disk_full"}


@pytest.mark.parametrize(
    "calls",
    [
        [
            STORED,
            Call("update", ("two", 1), 1, 4, DONE),
            Call("read", (), 2, 3, Seen("one", 1)),
        ],
        [
            STORED,
            Call("update", ("two", 1), 1, 4, DONE),
            Call("read", (), 2, 3, Seen("two", 2)),
        ],
        [STORED, Call("update", ("two", 1), 2), Call("read", (), 8, 9, Seen("two", 2))],
        [STORED, Call("update", ("two", 1), 2), Call("read", (), 8, 9, Seen("one", 1))],
        [
            STORED,
            Call("forget", (), 2, 3, DONE),
            Call("undo", (None,), 4, 5, DONE),
            Call("read", (), 6, 7, Seen("one", 3)),
        ],
        [
            STORED,
            Call("supersede", (), 2, 3, DONE),
            Call("supersede", (), 2, 4, Refused("conflict")),
        ],
    ],
)
def test_calls_that_have_an_order_are_explained(calls: list[Call]) -> None:
    assert unexplained(calls, register, Register()) is None


@pytest.mark.parametrize(
    "calls",
    [
        [STORED, Call("read", (), 2, 3, Seen(None))],  # lost
        [
            STORED,
            Call("update", ("two", 1), 2, 3, DONE),
            Call("read", (), 4, 5, Seen("one", 1)),
        ],  # not one's own write
        [
            STORED,
            Call("update", ("two", 1), 2, 3, DONE),
            Call("update", ("three", 1), 2, 3, DONE),
        ],  # a lost update
        [STORED, Call("supersede", (), 2, 3, DONE), Call("supersede", (), 2, 4, DONE)],
        [STORED, Call("undo", (None,), 2, 3, DONE)],
        [STORED, Call("forget", (), 2, 3, Refused("already"))],
        [
            STORED,
            Call("read", (), 2, 3, Seen("two", 2)),
            Call("update", ("two", 1), 4),
        ],  # seen before it was asked for
    ],
)
def test_calls_without_an_order_are_reported(calls: list[Call]) -> None:
    assert unexplained(calls, register, Register()) is not None


def test_a_key_stores_once() -> None:
    first = Call("store", (), 0, 1, ("a", "stored"))
    again = Call("store", (), 2, 3, ("a", "duplicate"))
    twice = Call("store", (), 2, 3, ("b", "stored"))
    other = Call("store", (), 2, 3, ("b", "duplicate"))

    assert unexplained([first, again], key, Key()) is None
    assert unexplained([Call("store", (), 0), other], key, Key()) is None
    assert unexplained([first, twice], key, Key()) is not None
    assert unexplained([first, other], key, Key()) is not None
