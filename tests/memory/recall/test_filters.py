"""Filters of a request: resolved, or refused by name, never ignored."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from folklore.callers import Caller
from folklore.contract.filters import FiltersRequest
from folklore.db.database import Database
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.context.filters import resolve_filters
from folklore.model import Filters
from tests.person import NOON

VIENNA = ZoneInfo("Europe/Vienna")
LISTS = ("kinds", "tags", "exclude_tags", "paths")
EMPTY = ("", " ", "\u200b")


def resolved(**asked: Any) -> Filters:
    unopened = MemoryContext.of(Database("postgresql://unused"), None)
    return resolve_filters(
        FiltersRequest(**asked),
        RequestContext(unopened, Caller("tester"), NOON, VIENNA),
    )


def test_a_request_without_filters_is_empty() -> None:
    assert resolved() == Filters()
    assert (
        resolved(
            source_prefix=None, session=None, author=None, time=None, tags=[], paths=()
        )
        == Filters()
    )
    assert resolved().empty
    assert not resolved(kinds=["bug"]).empty


def test_values_are_normalised_like_stored_ones() -> None:
    filters = resolved(
        kinds=[" Bug", "bug"],
        tags=["Area : Payments"],
        exclude_tags=["OPS"],
        paths=["src/"],
        session="mon\u200bday",
    )

    assert filters == Filters(
        kinds=("bug",),
        tags=("area:payments",),
        exclude_tags=("ops",),
        paths=("src",),
        equal={"session": "monday"},
    )


@pytest.mark.parametrize("name", LISTS)
def test_a_filter_takes_a_limited_number_of_values(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"filters.{name}: takes at most 64"):
        resolved(**{name: [f"v{n}" for n in range(65)]})
    assert len(getattr(resolved(**{name: [f"v{n}" for n in range(64)]}), name)) == 64


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"kinds": ["two words"]}, "filters.kinds"),
        ({"exclude_tags": ["x" * 101]}, "filters.exclude_tags"),
        ({"time": "when pigs fly"}, "filters.time"),
        *(
            ({name: ["x", empty]}, f"filters.{name}")
            for name in LISTS
            for empty in EMPTY
        ),
        ({"paths": ["/"]}, "filters.paths"),
        (
            {"as_of": datetime.fromisoformat("0001-01-01T00:00:00+14:00")},
            "filters.as_of",
        ),
        (
            {"until": datetime.fromisoformat("9999-12-31T23:00:00-14:00")},
            "filters.until",
        ),
        ({"since": NOON, "until": datetime(2026, 1, 1, tzinfo=UTC)}, "filters.until"),
        (
            {"since": datetime(2026, 6, 1, tzinfo=UTC), "time": "in March 2026"},
            "filters.until",
        ),
    ],
)
def test_an_invalid_filter_is_an_error_that_names_it(
    asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        resolved(**asked)

    assert refusal.value.field == field


def test_times_without_an_offset_are_in_the_callers_zone() -> None:
    naive = datetime.fromisoformat("2026-07-01T12:00:00")
    filters = resolved(since=naive, as_of=naive, until=datetime(2026, 8, 1, tzinfo=UTC))

    assert filters.since == filters.as_of == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert filters.until == datetime(2026, 8, 1, tzinfo=UTC)


DAY = datetime(2026, 3, 15, tzinfo=VIENNA)
LAST = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("asked", "since", "until"),
    [
        ("2026-03-15", DAY, DAY + timedelta(days=1)),
        ("20260315", DAY, DAY + timedelta(days=1)),
        ("2026-03-15T10:00", DAY.replace(hour=10), DAY.replace(hour=10)),
        ("yesterday", NOON.date() - timedelta(days=1), NOON.date()),
        ("2026", date(2026, 1, 1), date(2027, 1, 1)),
        (" last month", date(2026, 4, 1), date(2026, 5, 1)),
    ],
)
def test_a_day_is_the_whole_day_and_words_are_read(
    asked: str, since: date, until: date
) -> None:
    def moment(value: date) -> datetime:
        if isinstance(value, datetime):
            return value
        return datetime(value.year, value.month, value.day, tzinfo=VIENNA)

    assert resolved(since=asked).since == moment(since)
    assert resolved(until=asked).until == moment(until)
    last = LAST if moment(since) != moment(until) else timedelta()
    assert resolved(as_of=asked).as_of == moment(until) - last


def test_times_from_a_day_to_the_same_day_are_that_day() -> None:
    filters = resolved(since="2026-03-15", until="2026-03-15")

    assert (filters.since, filters.until) == (DAY, DAY + timedelta(days=1))


def test_words_of_a_filter_are_one_question_while_time_passes() -> None:
    filters = resolved(since="2 days ago", as_of="yesterday")

    assert filters.time_expression is not None
    assert resolved(since="2026-03-15", as_of="2026-03-15").time_expression is None


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"as_of": "soon"}, "filters.as_of", "is not understood"),
        ({"as_of": "since March"}, "filters.as_of", "says no end"),
        ({"since": "until March"}, "filters.since", "says no beginning"),
        ({"since": NOON, "until": NOON}, "filters.until", "is the same time as since"),
        (
            {"since": "2026-03-16", "until": "2026-03-15"},
            "filters.until",
            "is the same time as since",
        ),
    ],
)
def test_times_that_say_nothing_are_refused_with_what_to_give(
    asked: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words) as refusal:
        resolved(**asked)

    assert refusal.value.field == field
    assert refusal.value.hint


def test_a_time_expression_narrows_since_and_until() -> None:
    march = resolved(time="in March 2026")
    later = resolved(time="in March 2026", since=datetime(2026, 3, 10, tzinfo=UTC))
    earlier = resolved(
        time="in March 2026",
        since=datetime(2026, 1, 10, tzinfo=UTC),
        until=datetime(2027, 1, 1, tzinfo=UTC),
    )

    assert (march.since, march.until) == (
        datetime(2026, 3, 1, tzinfo=VIENNA),
        datetime(2026, 4, 1, tzinfo=VIENNA),
    )
    assert (later.since, later.until) == (
        datetime(2026, 3, 10, tzinfo=UTC),
        march.until,
    )
    assert earlier == march
