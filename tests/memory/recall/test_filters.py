"""Filters of a request: resolved, or refused by name, never ignored."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from folklore.db.database import Database
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.filters import resolve_filters
from folklore.memory.requests import FiltersRequest
from folklore.model import Caller, Filters
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
