"""Time expressions in a time zone.

FOLKLORE_FUZZ=100000 tries more random expressions.
"""

import os
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings, strategies as st

from folklore.errors import InvalidInput
from folklore.text.dates.expressions import TimeRange, parse_time

FUZZ = int(os.environ.get("FOLKLORE_FUZZ", "3000"))
BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2025, 6, 11, 14, 35, 20, tzinfo=BERLIN)  # a Wednesday


def at(text: str, zone: tzinfo = BERLIN) -> datetime:
    """Return the UTC time of a local ISO time."""
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def read(text: str, now: datetime = NOW) -> TimeRange:
    """Parse an expression in the time zone of `now`."""
    assert now.tzinfo
    return parse_time(text, now=now.astimezone(UTC), zone=now.tzinfo)


def between(since: str, until: str) -> TimeRange:
    """Return the range of two ISO times in Berlin; "" is open."""
    return TimeRange(at(since) if since else None, at(until) if until else None)


EXPRESSIONS_READ: list[tuple[str, str, str]] = [
    # days and calendar units
    ("today", "2025-06-11", "2025-06-12"),
    ("  Today!  ", "2025-06-11", "2025-06-12"),
    ("yesterday", "2025-06-10", "2025-06-11"),
    ("the day before yesterday", "2025-06-09", "2025-06-10"),
    ("this hour", "2025-06-11T14:00", "2025-06-11T15:00"),
    ("last hour", "2025-06-11T13:35:20", "2025-06-11T14:35:20"),
    ("last day", "2025-06-10", "2025-06-11"),
    ("this week", "2025-06-09", "2025-06-16"),
    ("last week", "2025-06-02", "2025-06-09"),
    ("week before last", "2025-05-26", "2025-06-02"),
    ("last month", "2025-05-01", "2025-06-01"),
    ("this quarter", "2025-04-01", "2025-07-01"),
    ("last year", "2024-01-01", "2025-01-01"),
    ("next year", "2026-01-01", "2027-01-01"),
    # units ago
    ("2 hours ago", "2025-06-11T12:05:20", "2025-06-11T13:05:20"),
    ("an hour ago", "2025-06-11T13:05:20", "2025-06-11T14:05:20"),
    ("3 days ago", "2025-06-08", "2025-06-09"),
    ("two months ago", "2025-04-01", "2025-05-01"),
    ("since 3 days ago", "2025-06-08", ""),
    ("since 2 hours ago", "2025-06-11T12:35:20", ""),
    ("3 to 5 days ago", "2025-06-06", "2025-06-09"),
    ("older than 2 weeks", "", "2025-05-28T14:35:20"),
    ("less than an hour ago", "2025-06-11T13:35:20", ""),
    # names of days, months, quarters and years
    ("wednesday", "2025-06-11", "2025-06-12"),
    ("Friday", "2025-06-06", "2025-06-07"),
    ("last Wednesday", "2025-06-04", "2025-06-05"),
    ("last Mon", "2025-06-09", "2025-06-10"),
    ("this Friday", "2025-06-13", "2025-06-14"),
    ("next Wednesday", "2025-06-18", "2025-06-19"),
    ("March", "2025-03-01", "2025-04-01"),
    ("in Dec.", "2024-12-01", "2025-01-01"),
    ("last June", "2024-06-01", "2024-07-01"),
    ("next March", "2026-03-01", "2026-04-01"),
    ("in March 2025", "2025-03-01", "2025-04-01"),
    ("Sept of 2023", "2023-09-01", "2023-10-01"),
    ("March 3rd, 2025", "2025-03-03", "2025-03-04"),
    ("3 March", "2025-03-03", "2025-03-04"),
    ("the 3rd of March 2024", "2024-03-03", "2024-03-04"),
    ("29 February", "2024-02-29", "2024-03-01"),
    ("Q3 2024", "2024-07-01", "2024-10-01"),
    ("2024-Q4", "2024-10-01", "2025-01-01"),
    ("q3", "2024-07-01", "2024-10-01"),
    ("the first quarter of 2023", "2023-01-01", "2023-04-01"),
    ("2024", "2024-01-01", "2025-01-01"),
    ("in the year 2024", "2024-01-01", "2025-01-01"),
    # ISO 8601 and times of day
    ("2024-05", "2024-05-01", "2024-06-01"),
    ("2024-05-03", "2024-05-03", "2024-05-04"),
    ("2024/05/03", "2024-05-03", "2024-05-04"),
    ("20240503", "2024-05-03", "2024-05-04"),
    ("2024-W20", "2024-05-13", "2024-05-20"),
    ("2024-W20-3", "2024-05-15", "2024-05-16"),
    ("2024-05-03T10:30", "2024-05-03T10:30", "2024-05-03T10:31"),
    ("2024-05-03 10:30:15", "2024-05-03T10:30:15", "2024-05-03T10:30:16"),
    ("2024-05-03T08:30:00.5Z", "2024-05-03T10:30:00.5", "2024-05-03T10:30:01.5"),
    ("2024-05-03 03:30 -0500", "2024-05-03T10:30", "2024-05-03T10:31"),
    ("20240503T083000Z", "2024-05-03T10:30", "2024-05-03T10:30:01"),
    ("10:30", "2025-06-11T10:30", "2025-06-11T10:31"),
    ("9am", "2025-06-11T09:00", "2025-06-11T10:00"),
    ("12 p.m.", "2025-06-11T12:00", "2025-06-11T13:00"),
    ("yesterday at 9:15 pm", "2025-06-10T21:15", "2025-06-10T21:16"),
    ("noon on Monday", "2025-06-09T12:00", "2025-06-09T12:01"),
    ("this morning", "2025-06-11T06:00", "2025-06-11T12:00"),
    ("last night", "2025-06-10T18:00", "2025-06-11T06:00"),
    ("Monday afternoon", "2025-06-09T12:00", "2025-06-09T18:00"),
    # words such as since and until
    ("since yesterday", "2025-06-10", ""),
    ("after yesterday", "2025-06-11", ""),
    ("before yesterday", "", "2025-06-10"),
    ("until yesterday", "", "2025-06-11"),
    ("since last week", "2025-06-02", ""),
    ("after March 2025", "2025-04-01", ""),
    ("before 2024", "", "2024-01-01"),
    ("from 2024-05-03T10:00", "2024-05-03T10:00", ""),
    ("after 2024-05-03T10:00", "2024-05-03T10:00", ""),
    ("until 2024-05-03T10:00", "", "2024-05-03T10:00"),
    ("from March onwards", "2025-03-01", ""),
    ("after Monday and before today", "2025-06-10", "2025-06-11"),
    ("since March until now", "2025-03-01", "2025-06-11T14:35:20"),
    ("2024..", "2024-01-01", ""),
    ("..2024", "", "2025-01-01"),
    # ranges include their last period
    ("between March and May 2025", "2025-03-01", "2025-06-01"),
    ("between 2025-01-10 and 2025-02-10", "2025-01-10", "2025-02-11"),
    ("between 2025-02-10 and 2025-01-10", "2025-01-10", "2025-02-11"),
    ("from last week to yesterday", "2025-06-02", "2025-06-11"),
    ("2024-05-01 to 2024-05-03", "2024-05-01", "2024-05-04"),
    ("2024-05-01 - 2024-05-03", "2024-05-01", "2024-05-04"),
    ("2024-05-01–2024-05-03", "2024-05-01", "2024-05-04"),
    ("2024-05-01..2024-05-03", "2024-05-01", "2024-05-04"),
    ("2024-05-01/2024-05-03", "2024-05-01", "2024-05-04"),
    ("2022-2024", "2022-01-01", "2025-01-01"),
    ("Monday to Friday", "2025-06-02", "2025-06-07"),
    ("Monday 9am to Friday 5pm", "2025-06-02T09:00", "2025-06-06T17:00"),
    ("October to February 2024", "2023-10-01", "2024-03-01"),
    ("November to February", "2024-11-01", "2025-03-01"),
    ("10:00-12:30", "2025-06-11T10:00", "2025-06-11T12:30"),
    ("yesterday 9:00 to 11:00", "2025-06-10T09:00", "2025-06-10T11:00"),
    ("22:00 to 6:00", "2025-06-10T22:00", "2025-06-11T06:00"),
    ("2024-05-01T10:00Z to 2024-05-01T11:00Z", "2024-05-01T12:00", "2024-05-01T13:00"),
    ("7 days ago to now", "2025-06-04", "2025-06-11T14:35:20"),
    ("1 to 3 March", "2025-03-01", "2025-03-04"),
    ("3-5 May, 2024", "2024-05-03", "2024-05-06"),
    ("from the 1st until the 3rd of March", "2025-03-01", "2025-03-04"),
    ("May 3-5, 2024", "2024-05-03", "2024-05-06"),
    ("10 to 12 June", "2024-06-10", "2024-06-13"),
    ("since 2 to 4 weeks ago", "2025-05-14", "2025-05-29"),
    ("9 to 11 am", "2025-06-11T09:00", "2025-06-11T11:00"),
]


def test_an_expression_is_a_period_or_has_bounds() -> None:
    for text, since, until in EXPRESSIONS_READ:
        assert read(text) == between(since, until), text


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("last 30 seconds", "2025-06-11T14:34:50"), ("past 24 hours", "2025-06-10T14:35:20"),
        ("24h", "2025-06-10T14:35:20"), ("past day", "2025-06-10T14:35:20"), ("the past week", "2025-06-04T14:35:20"),
        ("last 7 days", "2025-06-04T14:35:20"), ("in the last seven days", "2025-06-04T14:35:20"),
        ("over the past two weeks", "2025-05-28T14:35:20"), ("past few days", "2025-06-08T14:35:20"),
        ("last three months", "2025-03-11T14:35:20"), ("last 2 quarters", "2024-12-11T14:35:20"),
    ],
)  # fmt: skip
def test_a_number_of_past_units_ends_now(text: str, since: str) -> None:
    assert read(text) == between(since, "2025-06-11T14:35:20")


def test_a_number_of_future_units_begins_now() -> None:
    assert read("next 3 days") == between("2025-06-11T14:35:20", "2025-06-14T14:35:20")
    assert (
        read("in two days")
        == read("two days from now")
        == between("2025-06-13", "2025-06-14")
    )


@pytest.mark.parametrize("text", ["all time", "ANYTIME", "ever"])
def test_all_time_is_open_on_both_sides(text: str) -> None:
    assert read(text) == TimeRange(None, None)


UNKNOWN: list[str] = [
    "", "   ", "soon", "recently", "when the cache broke", "03/05/2024", "5", "last", "last 5", "since",
    "between March", "March to", "1e9 days", "last five hundred days", "Monday and Friday", "25:00", "13pm", "..",
    "3 to 5", "3 to 5 days", "30 to 2 May", "3 to last week", "to 5 May",
    "-", "٣ days ago", "today " + " " * 300, "x" * 1_000_000,
]  # fmt: skip


def test_an_unknown_expression_is_rejected_with_a_list_of_known_ones() -> None:
    for text in UNKNOWN:
        with pytest.raises(
            InvalidInput,
            match=r"time: .* not understood.*Understood are: today, yesterday",
        ):
            read(text)


@pytest.mark.parametrize(
    "text",
    [
        "0000", "0000-01-01", "9999", "9999-12-31", "2025-02-30", "2025-13", "February 30", "2025-W60",
        "9999999 years ago", "last 9999999 weeks", "next 9999999 months", "2025-05-01T25:00", "since 0001-01-01",
        "99999999",
    ],
)  # fmt: skip
def test_a_date_outside_the_calendar_is_rejected(text: str) -> None:
    with pytest.raises(
        InvalidInput,
        match=r"no such date in the calendar, which has .* 0001-01-02 to 9999-12-30",
    ):
        read(text)
    assert read("0001-01-02 to 9999-12-30") == between("0001-01-02", "9999-12-31")


def test_a_range_that_ends_before_it_begins_is_rejected() -> None:
    with pytest.raises(InvalidInput, match="ends before it begins"):
        read("after 2025 and before 2024")


def test_a_day_of_23_or_25_hours_is_whole() -> None:
    spring = read("2025-03-30")
    autumn = read("2025-10-26")
    assert spring == TimeRange(
        datetime(2025, 3, 29, 23, tzinfo=UTC), datetime(2025, 3, 30, 22, tzinfo=UTC)
    )
    assert autumn == TimeRange(
        datetime(2025, 10, 25, 22, tzinfo=UTC), datetime(2025, 10, 26, 23, tzinfo=UTC)
    )


def test_hours_are_exact_and_days_follow_the_wall_clock_over_a_change_of_clocks() -> (
    None
):
    now = datetime(2025, 3, 30, 12, 0, tzinfo=BERLIN)
    assert read("last 24 hours", now).since == at("2025-03-29T11:00")
    assert read("last 1 day", now).since == at("2025-03-29T12:00")


def test_the_two_repeated_hours_are_different() -> None:
    first = datetime(2025, 10, 26, 2, 30, tzinfo=BERLIN)
    second = first.replace(fold=1)
    assert read("this hour", first) == TimeRange(
        datetime(2025, 10, 26, 0, tzinfo=UTC), datetime(2025, 10, 26, 1, tzinfo=UTC)
    )
    assert read("this hour", second) == TimeRange(
        datetime(2025, 10, 26, 1, tzinfo=UTC), datetime(2025, 10, 26, 2, tzinfo=UTC)
    )
    assert read("last 90 minutes", second).since == datetime(
        2025, 10, 26, 0, tzinfo=UTC
    )


def test_a_day_without_midnight_begins_when_the_clocks_jump() -> None:
    cairo = ZoneInfo("Africa/Cairo")  # 25 April 2025, 00:00 became 01:00
    day = read("2025-04-25", datetime(2025, 6, 1, tzinfo=cairo))
    assert day == TimeRange(
        datetime(2025, 4, 24, 22, tzinfo=UTC), datetime(2025, 4, 25, 21, tzinfo=UTC)
    )


def test_leap_days_and_month_ends_become_the_last_day_of_the_month() -> None:
    leap = datetime(2024, 2, 29, 8, 0, tzinfo=BERLIN)
    assert read("last year", leap) == between("2023-01-01", "2024-01-01")
    assert read("last 1 year", leap).since == at("2023-02-28T08:00")
    assert read("last 4 years", leap).since == at("2020-02-29T08:00")
    assert read("last 1 month", datetime(2025, 3, 31, 8, 0, tzinfo=BERLIN)).since == at(
        "2025-02-28T08:00"
    )


def test_today_depends_on_the_time_zone() -> None:
    now = datetime(2025, 6, 11, 23, 30, tzinfo=UTC)
    tokyo = parse_time("today", now=now, zone=ZoneInfo("Asia/Tokyo"))
    assert tokyo.since == datetime(2025, 6, 11, 15, tzinfo=UTC)
    assert parse_time("today", now=now, zone=UTC).since == datetime(
        2025, 6, 11, tzinfo=UTC
    )


# fmt: off
WORDS = [
    "last", "this", "next", "past", "day", "days", "week", "month", "quarter", "year", "hours", "ago", "between", "and",
    "from", "to", "since", "before", "after", "until", "in", "the", "march", "may", "monday", "fri", "3", "12", "2024",
    "0000", "9999", "2024-05", "2024-02-30", "2024-05-03", "10:00", "9am", "q3", "..", "-", "/", "now", "today", "a",
    "yesterday", "one", "9999999", "2024-05-03t10:00z", "2024-w20", "noon", "at", "on", "of", "older than", "morning",
    "february 29", "0001-01-01",
]
# fmt: on
ZONES = [
    BERLIN,
    UTC,
    ZoneInfo("America/Havana"),
    ZoneInfo("Asia/Kathmandu"),
    ZoneInfo("Pacific/Apia"),
]
MOMENTS = st.just(NOW) | st.datetimes(
    datetime(1, 1, 1),  # noqa: DTZ001
    datetime(9999, 12, 31),  # noqa: DTZ001
    timezones=st.just(UTC),
)
MIXTURES = st.lists(st.sampled_from(WORDS), max_size=7)
EXPRESSIONS = st.text(st.characters()) | MIXTURES.map(" ".join) | MIXTURES.map("".join)


@settings(max_examples=max(FUZZ // 5, 200), deadline=None)
@given(EXPRESSIONS, MOMENTS, st.sampled_from(ZONES))
def test_every_expression_is_parsed_or_rejected(
    text: str, now: datetime, zone: tzinfo
) -> None:
    try:
        found = parse_time(text, now=now, zone=zone)
    except InvalidInput:
        return
    assert all(end is None or end.tzinfo is UTC for end in (found.since, found.until))
    assert found.since is None or found.until is None or found.since <= found.until
