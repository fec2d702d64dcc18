"""Names of days, months and moments, read in somebody's time zone: `yesterday`, `March 2025`, `3 days ago`, ISO 8601.

A name without its year or week means the latest one that has begun, since memories are about the past.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, time, timedelta

from folklore.text.dates.periods import Clock, Span, Unit

_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12,
}  # fmt: skip
_NUMBERS |= {"a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3}
_UNITS: dict[str, Unit] = {
    "second": "second", "seconds": "second", "sec": "second", "secs": "second",
    "minute": "minute", "minutes": "minute", "min": "minute", "mins": "minute",
    "hour": "hour", "hours": "hour", "hr": "hour", "hrs": "hour", "h": "hour",
    "day": "day", "days": "day", "d": "day",
    "week": "week", "weeks": "week", "wk": "week", "wks": "week", "w": "week",
    "month": "month", "months": "month", "mo": "month",
    "quarter": "quarter", "quarters": "quarter",
    "year": "year", "years": "year", "yr": "year", "yrs": "year", "y": "year",
}  # fmt: skip
_WEEKDAYS = {"monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6}
_WEEKDAYS |= {name[:3]: number for name, number in _WEEKDAYS.items()} | {"tues": 1, "thur": 3, "thurs": 3}
_MONTHS = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9,
    "october": 10, "november": 11, "december": 12,
}  # fmt: skip
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
_DAYS = {"the day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "the day after tomorrow": 2}
_DAYS |= {name.removeprefix("the "): offset for name, offset in _DAYS.items()}
_PARTS = {"morning": (6, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}  # hours of the day
_OFFSETS = {"last": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1, "following": 1}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}

NUMBER = r"\d{1,7}|" + "|".join(sorted(_NUMBERS, key=len, reverse=True))
_UNIT = "|".join(sorted(_UNITS, key=len, reverse=True))
_WEEKDAY = "|".join(sorted(_WEEKDAYS, key=len, reverse=True))
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_WHICH = "|".join(_OFFSETS)
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_DATE = r"\d{4}-\d{2}-\d{2}"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII)


_COUNTED = _pattern(rf"(?:(?P<which>last|past|previous|next|coming) )?(?P<count>{NUMBER}) ?(?P<unit>{_UNIT})")
_DISTANT = _pattern(rf"(?P<ahead>in )?(?P<count>{NUMBER}) ?(?P<unit>{_UNIT})(?P<way> ago| back| earlier| from now)?")
_CALENDAR_UNIT = _pattern(rf"(?P<which>{_WHICH}|past) (?P<unit>{_UNIT})")
_NAMED_WEEKDAY = _pattern(rf"(?:(?P<which>{_WHICH}) )?(?P<weekday>{_WEEKDAY})")
_NAMED_MONTH = _pattern(rf"(?:(?P<which>{_WHICH}) )?(?P<month>{_MONTH})\.?(?:(?: of)? {_YEAR})?")
_MONTH_DAY = _pattern(rf"(?P<month>{_MONTH})\.? (?:the )?{_DAY_OF_MONTH}(?: (?:of )?{_YEAR})?")
_DAY_MONTH = _pattern(rf"(?:the )?{_DAY_OF_MONTH} (?:of )?(?P<month>{_MONTH})\.?(?: (?:of )?{_YEAR})?")
_QUARTER = _pattern(r"(?:(?P<year>\d{4})[ -])?q(?P<quarter>[1-4])(?:(?: of)?[ -](?P<after>\d{4}))?")
_ORDINAL_QUARTER = _pattern(rf"(?:the )?(?P<quarter>{'|'.join(_ORDINALS)}) quarter(?:(?: of)? (?P<after>\d{{4}}))?")
_ONLY_YEAR = _pattern(rf"(?:the )?(?:year )?{_YEAR}")
_ONLY_MONTH = _pattern(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})")
_ISO_DAY = _pattern(r"(?P<year>\d{4})([-/])(?P<month>\d{1,2})\2(?P<day>\d{1,2})|(?P<basic>\d{8})")
_ISO_WEEK = _pattern(r"(?P<year>\d{4})-?w(?P<week>\d{2})(?:-?(?P<day>[1-7]))?")
_ISO_TIME = _pattern(
    rf"(?P<date>{_DATE}|\d{{8}})[t ](?P<time>\d{{2}}(?::?\d{{2}}(?::?\d{{2}}(?P<fraction>\.\d{{1,9}})?)?)?)"
    r" ?(?P<zone>z|utc|gmt|[+-]\d{2}(?::?\d{2})?)?"
)
_CLOCK_TIME = _pattern(r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2}))?)? ?(?P<half>am|pm|a\.m|p\.m)?")
_DAY_THEN_TIME = _pattern(r"(?P<day>.+?)(?: at| @)? (?P<time>\d{1,2}(?::\d{2}){0,2} ?(?:[ap]\.?m)?|noon|midnight)")
_TIME_THEN_DAY = _pattern(r"(?P<time>\d{1,2}(?::\d{2}){0,2} ?(?:[ap]\.?m)?|noon|midnight)(?: on)? (?P<day>.+)")
_PART_OF_DAY = _pattern(r"(?P<day>.+) (?P<part>morning|afternoon|evening|night)")


def read_span(text: str, clock: Clock) -> Span | None:
    """Read one name of a day, unit, month or moment, in lower case with single blanks; None if it is not understood.

    Raises OverflowError or ValueError where the calendar ends.
    """
    for reader in _READERS:
        span = reader(text, clock)
        if span is not None:
            return span
    return None


def read_count(text: str) -> tuple[int, Unit] | None:
    """Read a number of units: `three days`, `24h`, `a couple of weeks`."""
    found = _COUNTED.fullmatch(text)
    return (_number(found["count"]), _UNITS[found["unit"]]) if found and not found["which"] else None


def read_clock_time(text: str) -> tuple[time, timedelta] | None:
    """Read a time of day and how precise it is: `9am`, `10:30`, `10:30:15`, `noon`."""
    if text in ("noon", "midnight"):
        return time(12 if text == "noon" else 0), timedelta(minutes=1)
    found = _CLOCK_TIME.fullmatch(text)
    if not found or not (found["minute"] or found["half"]):
        return None
    hour, minute, second = int(found["hour"]), int(found["minute"] or 0), int(found["second"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"].startswith("p") else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    width = timedelta(seconds=1) if found["second"] else timedelta(minutes=1) if found["minute"] else timedelta(hours=1)
    return time(hour, minute, second), width


def _now(text: str, clock: Clock) -> Span | None:
    return clock.point(clock.now, timedelta(minutes=1)) if text in ("now", "right now", "just now") else None


def _counted(text: str, clock: Clock) -> Span | None:
    """`last 3 days`, `next two weeks`; a bare `24h` or `7 days` looks back."""
    found = _COUNTED.fullmatch(text)
    if not found or (found["which"] is None and found["count"] in ("a", "an")):
        return None
    count = _number(found["count"])
    return clock.rolling(-count if found["which"] in ("next", "coming") else count, _UNITS[found["unit"]])


def _distant(text: str, clock: Clock) -> Span | None:
    """`3 days ago`, `an hour from now`, `in two weeks`."""
    found = _DISTANT.fullmatch(text)
    if not found or bool(found["ahead"]) == bool(found["way"]):
        return None
    count = _number(found["count"])
    return clock.ago(-count if found["ahead"] or found["way"] == " from now" else count, _UNITS[found["unit"]])


def _calendar_unit(text: str, clock: Clock) -> Span | None:
    """`last week`, `this month`, `next year`. `past` looks back from now, and so does `last hour` or less."""
    if found := re.fullmatch(rf"({_UNIT}) before last", text):
        return clock.unit(_UNITS[found[1]], -2)
    found = _CALENDAR_UNIT.fullmatch(text)
    if not found:
        return None
    unit = _UNITS[found["unit"]]
    offset = _OFFSETS.get(found["which"], -1)
    if found["which"] == "past" or (offset and unit in ("second", "minute", "hour")):
        return clock.rolling(-offset, unit)
    return clock.unit(unit, offset)


def _day(text: str, clock: Clock) -> Span | None:
    day = _read_day(text, clock)
    return clock.day(day[0], cyclic=day[1]) if day else None


def _read_day(text: str, clock: Clock) -> tuple[date, bool] | None:
    """Read the name of a single day; the flag says that it comes again."""
    if text in _DAYS:
        return clock.today + timedelta(days=_DAYS[text]), False
    if found := _ISO_DAY.fullmatch(text):
        basic = found["basic"]
        parts = (basic[:4], basic[4:6], basic[6:]) if basic else (found["year"], found["month"], found["day"])
        return date(*map(int, parts)), False
    if found := _NAMED_WEEKDAY.fullmatch(text):
        return _weekday(_WEEKDAYS[found["weekday"]], found["which"], clock.today), found["which"] is None
    if found := _MONTH_DAY.fullmatch(text) or _DAY_MONTH.fullmatch(text):
        month, day = _MONTHS[found["month"]], int(found["day"])
        if found["year"]:
            return date(int(found["year"]), month, day), False
        return _latest(month, day, clock.today), True
    if (found := _ISO_WEEK.fullmatch(text)) and found["day"]:
        return date.fromisocalendar(int(found["year"]), int(found["week"]), int(found["day"])), False
    return None


def _weekday(weekday: int, which: str | None, today: date) -> date:
    offset = _OFFSETS.get(which or "")
    if offset == 0:
        return today + timedelta(days=weekday - today.weekday())
    if offset == 1:
        return today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
    back = (today.weekday() - weekday) % 7
    return today - timedelta(days=back or (7 if offset else 0))


def _latest(month: int, day: int, today: date) -> date:
    """Find the latest such day up to today; the 29th of February may be years back."""
    for year in range(today.year, max(today.year - 9, 0), -1):
        if month == 2 and day == 29 and not (year % 4 == 0 and (year % 100 or year % 400 == 0)):
            continue
        if (found := date(year, month, day)) <= today:
            return found
    raise OverflowError


def _month(text: str, clock: Clock) -> Span | None:
    if found := _ONLY_MONTH.fullmatch(text):
        return _months(clock, int(found["year"]), int(found["month"]), 1)
    found = _NAMED_MONTH.fullmatch(text)
    if not found or (found["which"] and found["year"]):
        return None
    month, today = _MONTHS[found["month"]], clock.today
    if found["year"]:
        return _months(clock, int(found["year"]), month, 1)
    year = today.year - (month > today.month)
    if found["which"]:
        offset = _OFFSETS[found["which"]]
        year = today.year + {-1: -(month >= today.month), 0: 0, 1: month <= today.month}[offset]
    return _months(clock, year, month, 1, cyclic=not found["which"])


def _quarter(text: str, clock: Clock) -> Span | None:
    if found := _QUARTER.fullmatch(text):
        if found["year"] and found["after"]:
            return None
        quarter, named = int(found["quarter"]), found["year"] or found["after"]
    elif found := _ORDINAL_QUARTER.fullmatch(text):
        quarter, named = _ORDINALS[found["quarter"]], found["after"]
    else:
        return None
    month, today = quarter * 3 - 2, clock.today
    year = int(named) if named else today.year - (month > today.month)
    return _months(clock, year, month, 3, cyclic=not named)


def _months(clock: Clock, year: int, month: int, count: int, *, cyclic: bool = False) -> Span:
    following = month + count
    return clock.days(date(year, month, 1), date(year + (following > 12), (following - 1) % 12 + 1, 1), cyclic=cyclic)


def _year(text: str, clock: Clock) -> Span | None:
    found = _ONLY_YEAR.fullmatch(text)
    return clock.days(date(int(found["year"]), 1, 1), date(int(found["year"]) + 1, 1, 1)) if found else None


def _iso_week(text: str, clock: Clock) -> Span | None:
    found = _ISO_WEEK.fullmatch(text)
    if not found or found["day"]:
        return None
    monday = date.fromisocalendar(int(found["year"]), int(found["week"]), 1)
    return clock.days(monday, monday + timedelta(days=7))


def _iso_time(text: str, clock: Clock) -> Span | None:
    found = _ISO_TIME.fullmatch(text)
    if not found:
        return None
    zone = {"z": "+00:00", "utc": "+00:00", "gmt": "+00:00", None: ""}.get(found["zone"], found["zone"])
    moment = datetime.fromisoformat(f"{found['date']}T{found['time']}{zone}")
    digits = len(found["time"].split(".")[0].replace(":", ""))
    width = {2: timedelta(hours=1), 4: timedelta(minutes=1)}.get(digits, timedelta(seconds=1))
    return clock.point(moment if moment.tzinfo else clock.at(moment.date(), moment.time()), width)


def _time_of_day(text: str, clock: Clock) -> Span | None:
    """`10:30` today, `yesterday at 9am`, `noon on Monday`."""
    if alone := read_clock_time(text):
        return clock.point(clock.at(clock.today, alone[0]), alone[1])
    found = _DAY_THEN_TIME.fullmatch(text) or _TIME_THEN_DAY.fullmatch(text)
    if not found:
        return None
    day, moment = _read_day(found["day"], clock), read_clock_time(found["time"])
    if not day or not moment:
        return None
    return replace(clock.point(clock.at(day[0], moment[0]), moment[1]), cyclic=day[1])


def _part_of_day(text: str, clock: Clock) -> Span | None:
    """`this morning`, `yesterday evening`, `last night`, `tonight`."""
    text = {"tonight": "today night", "last night": "yesterday night"}.get(text, text)
    found = _PART_OF_DAY.fullmatch(text)
    day = _read_day("today" if found["day"] == "this" else found["day"], clock) if found else None
    if not found or not day:
        return None
    first, last = _PARTS[found["part"]]
    start, end = (clock.at(day[0] + timedelta(days=hour // 24), time(hour % 24)) for hour in (first, last))
    return Span(start, end, start, end)


def _number(text: str) -> int:
    return _NUMBERS.get(text) or int(text)


_READERS: tuple[Callable[[str, Clock], Span | None], ...] = (
    _now,
    _day,
    _calendar_unit,
    _distant,
    _counted,
    _month,
    _quarter,
    _year,
    _iso_week,
    _iso_time,
    _time_of_day,
    _part_of_day,
)
