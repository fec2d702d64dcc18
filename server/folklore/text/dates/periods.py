"""Periods of time in a caller's time zone: calendar units, and exact lengths before and after now.

Days and longer units follow the wall clock, so a day may have 23 or 25 hours; hours and shorter units are exact. All
results are in UTC.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

Unit = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"]

MONTHS = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9,
    "october": 10, "november": 11, "december": 12,
}  # fmt: skip
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}

_EXACT: dict[Unit, timedelta] = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
}
_UNIT_DAYS: dict[Unit, int] = {"day": 1, "week": 7}
_UNIT_MONTHS: dict[Unit, int] = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class Period:
    """A half-open period [start, end), and its boundaries as an end of a range.

    "since" and "before" use `low`, "after" and "until" use `high`. For a day or a month these are start and end; for a
    point in time both are the point, whatever its precision. The name of a `recurring` period (Monday, March) may also
    mean an earlier one.
    """

    start: datetime
    end: datetime
    low: datetime
    high: datetime
    recurring: bool = False

    @classmethod
    def whole(
        cls, start: datetime, end: datetime, *, recurring: bool = False
    ) -> Period:
        """Build a period whose boundaries are its start and end."""
        return cls(start, end, start, end, recurring)


@dataclass(frozen=True, slots=True)
class Clock:
    """The current time and the time zone of its calendar."""

    now: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        """The local date."""
        return self.now.astimezone(self.zone).date()

    def moved(self, now: datetime) -> Clock:
        """Return the clock of the same zone at another time."""
        return replace(self, now=now)

    def at(self, day: date, clock_time: time = time()) -> datetime:
        """Convert local time to UTC; a time that is skipped or repeated uses the earlier offset."""
        return datetime.combine(day, clock_time, self.zone).astimezone(UTC)

    def shifted(self, count: int, unit: Unit) -> datetime:
        """Return now moved by units: exactly for hours and shorter ones, by the local calendar for longer ones."""
        if unit in _EXACT:
            return self.now.astimezone(UTC) + count * _EXACT[unit]
        local = self.now.astimezone(self.zone)
        return self.at(_moved(local.date(), count, unit), local.time())

    def days(self, first: date, end: date, *, recurring: bool = False) -> Period:
        """Return the days [first, after)."""
        return Period.whole(self.at(first), self.at(end), recurring=recurring)

    def months(self, first: date, count: int, *, recurring: bool = False) -> Period:
        """Return `count` months from their first day on."""
        return self.days(first, _moved(first, count, "month"), recurring=recurring)

    def point(self, moment: datetime, precision: timedelta) -> Period:
        """Return a point in time; as a period it is as long as its precision."""
        moment = moment.astimezone(UTC)
        return Period(moment, moment + precision, moment, moment)

    def unit(self, unit: Unit, offset: int = 0) -> Period:
        """Return the calendar unit that contains now, or the one `offset` units later."""
        if unit in _EXACT:
            length = _EXACT[unit]
            local = self.now.astimezone(self.zone)
            since_hour = timedelta(
                minutes=local.minute,
                seconds=local.second,
                microseconds=local.microsecond,
            )
            this = self.now.astimezone(UTC) - since_hour % length
            start = this + offset * length
            return Period.whole(start, start + length)
        first = _moved(_first_day(self.today, unit), offset, unit)
        return self.days(first, _moved(first, 1, unit))

    def rolling(self, count: int, unit: Unit) -> Period:
        """Return the last `count` units up to now, or the next ones if negative."""
        other = self.shifted(-count, unit)
        now = self.now.astimezone(UTC)
        return Period.whole(min(other, now), max(other, now))

    def ago(self, count: int, unit: Unit) -> Period:
        """Return the unit around the time `count` units before now; its boundaries are those of the day."""
        moment = self.shifted(-count, unit)
        if unit in _EXACT:
            half = _EXACT[unit] / 2
            return Period(moment - half, moment + half, moment, moment)
        there = self.moved(moment)
        day = there.unit("day")
        return replace(there.unit(unit), low=day.start, high=day.end)


def _first_day(day: date, unit: Unit) -> date:
    """Return the first day of the calendar unit around a day; weeks begin on Monday."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit in _UNIT_MONTHS:
        months = _UNIT_MONTHS[unit]
        first_month = (day.month - 1) // months * months + 1
        return day.replace(month=first_month, day=1)
    return day


def _moved(day: date, count: int, unit: Unit) -> date:
    """Move a day by calendar units; a day that the target month lacks becomes its last. Raises OverflowError."""
    if unit in _UNIT_DAYS:
        return day + timedelta(days=count * _UNIT_DAYS[unit])
    months = day.year * 12 + day.month - 1 + count * _UNIT_MONTHS[unit]
    year = months // 12
    month = months % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError
    _, last_day = calendar.monthrange(year, month)
    return date(year, month, min(day.day, last_day))
