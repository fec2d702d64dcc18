"""Quality: more use is worth more, time takes it away, and what is protected keeps it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folklore.db.rows import QUALITY_FLOOR
from folklore.ranking.quality import Decay, base, protected, quality

NOW = datetime(2026, 5, 4, tzinfo=UTC)
DAY = timedelta(days=1)

uses = st.integers(0, 1_000_000)
ages = st.floats(0, 5_000, allow_nan=False).map(lambda days: timedelta(days=days))


def at(recalls: int, confirmations: int, age: timedelta, *, fades: bool = True) -> float | None:
    return quality(recalls=recalls, confirmations=confirmations, used_at=NOW - age, now=NOW, fades=fades)


@given(uses, uses, ages, st.booleans())
def test_quality_is_a_share_or_nothing(recalls: int, confirmations: int, age: timedelta, fades: bool) -> None:
    value = at(recalls, confirmations, age, fades=fades)

    assert (value is None) == (recalls + confirmations == 0)
    assert value is None or 0 <= value <= 1


@given(uses, uses, st.integers(1, 1_000), ages)
def test_more_use_is_never_worth_less(recalls: int, confirmations: int, more: int, age: timedelta) -> None:
    before, after = at(recalls, confirmations, age) or 0.0, at(recalls + more, confirmations, age)

    assert after is not None
    assert after >= before
    assert after == at(recalls, confirmations + more, age)


@given(st.integers(1, 1_000_000), ages, ages)
def test_quality_never_grows_with_age(recalls: int, age: timedelta, more: timedelta) -> None:
    younger, older = at(recalls, 0, age), at(recalls, 0, age + more)

    assert younger is not None
    assert older is not None
    assert older <= younger


@given(st.integers(1, 1_000_000), ages)
def test_quality_halves_with_every_half_life(recalls: int, age: timedelta) -> None:
    assert at(recalls, 0, age + Decay().half_life) == pytest.approx((at(recalls, 0, age) or 0.0) / 2)


@given(st.integers(1, 1_000_000), ages)
def test_what_does_not_fade_keeps_its_base(recalls: int, age: timedelta) -> None:
    assert at(recalls, 0, age, fades=False) == base(recalls, 0) >= 0.5 > QUALITY_FLOOR


def test_a_use_in_the_future_counts_as_now() -> None:
    assert at(1, 0, -DAY) == at(1, 0, timedelta()) == 0.5


def test_the_constants_hide_what_they_are_said_to_hide() -> None:
    """The docstring of Decay: 299 days after the only recall, 389 after the last of very many."""
    assert (at(1, 0, 298 * DAY) or 0) > QUALITY_FLOOR > (at(1, 0, 300 * DAY) or 0)
    assert (at(10**9, 0, 388 * DAY) or 0) > QUALITY_FLOOR > (at(10**9, 0, 390 * DAY) or 0)
    assert Decay().half_life == 90 * DAY


@pytest.mark.parametrize(
    ("kind", "tags", "importance", "expected"),
    [
        ("note", (), None, False),
        ("decision", (), None, True),
        ("note", ("pinned",), None, True),
        ("note", ("pinned-down",), None, False),
        ("note", (), 0.7, True),
        ("note", (), 0.69, False),
        ("note", (), 0.699999988, True),  # 0.7 in four bytes
    ],
)
def test_decisions_the_pinned_and_the_important_are_protected(
    kind: str, tags: tuple[str, ...], importance: float | None, expected: bool
) -> None:
    assert protected(kind, tags, importance) is expected
