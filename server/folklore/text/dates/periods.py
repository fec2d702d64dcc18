"""Stretches of time as people count them: calendar units in somebody's time zone, and exact spans before and after now.

Days and longer follow the wall clock, so a day may have 23 or 25 hours; hours and shorter are exact. Results are in
UTC, where comparing never depends on a zone's rules.
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Literal

Unit = Literal["second", "minute", "hour", "day", "week", "month", "quarter", "year"]

_EXACT: dict[Unit, timedelta] = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
}
_DAYS: dict[Unit, int] = {"day": 1, "week": 7}
_MONTHS: dict[Unit, int] = {"month": 1, "quarter": 3, "year": 12}


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch [start, end) that an expression names, and its two faces as a boundary of a range.

    "since" and "before" take `low`, "after" and "until" take `high`: for a day or a month these are its ends, for a
    point of time both are the point, however wide it is by itself. `cyclic` names come again (Monday, March), so a
    range may mean an earlier one.
    """

    start: datetime
    end: datetime
    low: datetime
    high: datetime
    cyclic: bool = False


@dataclass(frozen=True, slots=True)
class Clock:
    """A moment and the zone whose calendar counts there."""

    now: datetime
    zone: tzinfo

    @property
    def today(self) -> date:
        """The date on the wall."""
        return self.now.astimezone(self.zone).date()

    def moved(self, now: datetime) -> Clock:
        """Give the same zone at another moment."""
        return replace(self, now=now)

    def at(self, day: date, clock_time: time = time()) -> datetime:
        """Say when the wall clock shows this; a time that is skipped or repeated counts by the earlier offset."""
        return datetime.combine(day, clock_time, self.zone).astimezone(UTC)

    def shifted(self, count: int, unit: Unit) -> datetime:
        """Move now by units: exactly for hours and shorter, by the wall clock and its calendar for longer ones."""
        if unit in _EXACT:
            return self.now.astimezone(UTC) + count * _EXACT[unit]
        local = self.now.astimezone(self.zone)
        return self.at(_moved(local.date(), count, unit), local.time())

    def day(self, day: date, *, cyclic: bool = False) -> Span:
        """Give a whole day."""
        return _whole(self.at(day), self.at(day + timedelta(days=1)), cyclic=cyclic)

    def days(self, first: date, after: date, *, cyclic: bool = False) -> Span:
        """Give the days from one up to, but without, another."""
        return _whole(self.at(first), self.at(after), cyclic=cyclic)

    def point(self, moment: datetime, width: timedelta) -> Span:
        """Give a point of time, which by itself means as much as its precision says."""
        moment = moment.astimezone(UTC)
        return Span(moment, moment + width, moment, moment)

    def unit(self, unit: Unit, offset: int = 0) -> Span:
        """Give the calendar unit now lies in, or the one `offset` units later."""
        if unit in _EXACT:
            local = self.now.astimezone(self.zone)
            begun = timedelta(microseconds=local.microsecond)
            begun += timedelta(seconds=local.second) if unit != "second" else timedelta()
            begun += timedelta(minutes=local.minute) if unit == "hour" else timedelta()
            start = self.now.astimezone(UTC) - begun + offset * _EXACT[unit]
            return _whole(start, start + _EXACT[unit])
        first = _moved(first_day(self.today, unit), offset, unit)
        return self.days(first, _moved(first, 1, unit))

    def rolling(self, count: int, unit: Unit) -> Span:
        """Give the stretch of `count` units that ends now, or begins now if negative."""
        other, now = self.shifted(-count, unit), self.now.astimezone(UTC)
        return _whole(min(other, now), max(other, now))

    def ago(self, count: int, unit: Unit) -> Span:
        """Give the moment `count` units before now; by itself it means the unit around it, as a boundary the day."""
        moment = self.shifted(-count, unit)
        if unit in _EXACT:
            return Span(moment - _EXACT[unit] / 2, moment + _EXACT[unit] / 2, moment, moment)
        around, day = self.moved(moment).unit(unit), self.moved(moment).unit("day")
        return replace(around, low=day.start, high=day.end)


def first_day(day: date, unit: Unit) -> date:
    """Say on which day the calendar unit around a day begins; weeks begin on Monday."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    if unit in _MONTHS:
        month = {"month": day.month, "quarter": (day.month - 1) // 3 * 3 + 1, "year": 1}[unit]
        return day.replace(month=month, day=1)
    return day


def _moved(day: date, count: int, unit: Unit) -> date:
    """Move a day by calendar units; a day the month does not have becomes its last."""
    if unit in _DAYS:
        return day + timedelta(days=count * _DAYS[unit])
    months = day.year * 12 + day.month - 1 + count * _MONTHS[unit]
    year, month = months // 12, months % 12 + 1
    if not 1 <= year <= 9999:
        raise OverflowError
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _whole(start: datetime, end: datetime, *, cyclic: bool = False) -> Span:
    return Span(start, end, start, end, cyclic)
