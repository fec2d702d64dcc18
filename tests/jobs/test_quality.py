"""Quality: grows with uses, fades with time, and stays for protected memories."""

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from folklore.db.rows import QUALITY_FLOOR
from folklore.jobs.definitions import HALF_LIFE, protected, quality

DAY = timedelta(days=1)

some_uses = st.integers(1, 1_000_000)
ages = st.floats(0, 5_000, allow_nan=False).map(lambda days: timedelta(days=days))


def used(uses: int, age: timedelta) -> float:
    """Return the quality of a memory that was used and fades."""
    value = quality(uses, age=age)
    assert value is not None
    return value


@given(some_uses, st.integers(1, 1_000), ages)
def test_quality_never_falls_with_more_uses(
    uses: int, more: int, age: timedelta
) -> None:
    assert used(uses + more, age) >= used(uses, age)


@given(some_uses, ages)
def test_quality_halves_with_every_half_life(uses: int, age: timedelta) -> None:
    assert used(uses, age + HALF_LIFE) == pytest.approx(used(uses, age) / 2)


def test_without_any_use_there_is_no_quality() -> None:
    assert quality(0, age=DAY) is None


def test_a_use_in_the_future_counts_as_now() -> None:
    assert used(1, -DAY) == used(1, timedelta()) == 0.5


def test_memories_fade_below_the_floor_after_the_documented_days() -> None:
    """The comment at HALF_LIFE: 299 days after the only recall, 389 after the last of very many."""
    assert used(1, 298 * DAY) > QUALITY_FLOOR > used(1, 300 * DAY)
    assert used(10**9, 388 * DAY) > QUALITY_FLOOR > used(10**9, 390 * DAY)
    assert HALF_LIFE == 90 * DAY


@pytest.mark.parametrize(
    ("kind", "importance", "expected"),
    [
        ("note", None, False),
        ("decision", None, True),
        ("note", 0.7, True),
        ("note", 0.69, False),
        ("note", 0.699999988, True),  # 0.7 in four bytes
    ],
)
def test_decisions_and_important_memories_are_protected(
    kind: str, importance: float | None, expected: bool
) -> None:
    assert protected(kind, importance) is expected
