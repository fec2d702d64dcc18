"""Expressions of one period: `yesterday`, `March 2025`, `3 days ago`, `Friday at noon`, ISO 8601 dates and times.

A date without its year or week means the latest one that has begun, since memories are about the past.
"""

import calendar
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date, datetime, time, timedelta

from folklore.text.dates.periods import MONTHS, Clock, Period, Unit

_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "a": 1, "an": 1, "a couple of": 2, "couple of": 2, "a few": 3, "few": 3,
}  # fmt: skip
_SPELLINGS: dict[Unit, str] = {
    "second": "second seconds sec secs", "minute": "minute minutes min mins", "hour": "hour hours hr hrs h",
    "day": "day days d", "week": "week weeks wk wks w", "month": "month months mo", "quarter": "quarter quarters",
    "year": "year years yr yrs y",
}  # fmt: skip
_UNITS = {
    spelling: unit
    for unit, spellings in _SPELLINGS.items()
    for spelling in spellings.split()
}
_WEEKDAYS = {
    "monday": 0,
    "tuesday": 1,
    "wednesday": 2,
    "thursday": 3,
    "friday": 4,
    "saturday": 5,
    "sunday": 6,
}
_WEEKDAYS |= {name[:3]: number for name, number in _WEEKDAYS.items()} | {
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
_DAYS = {
    "the day before yesterday": -2,
    "yesterday": -1,
    "today": 0,
    "tomorrow": 1,
    "the day after tomorrow": 2,
}
_DAYS |= {name.removeprefix("the "): offset for name, offset in _DAYS.items()}
_SYNONYMS = {
    "right now": "now", "just now": "now", "tonight": "today night", "last night": "yesterday night"
}  # fmt: skip
_NAMED_TIMES = {"noon": time(12), "midnight": time()}
_PARTS_OF_DAY = {
    "morning": (6, 12),
    "afternoon": (12, 18),
    "evening": (18, 24),
    "night": (18, 30),
}  # in hours
_OFFSETS = {
    "last": -1,
    "previous": -1,
    "this": 0,
    "current": 0,
    "next": 1,
    "coming": 1,
    "following": 1,
}
_ORDINALS = {
    "first": 1,
    "1st": 1,
    "second": 2,
    "2nd": 2,
    "third": 3,
    "3rd": 3,
    "fourth": 4,
    "4th": 4,
}
_QUARTERS = _ORDINALS | {"1": 1, "2": 2, "3": 3, "4": 4}
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)


def _any_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.ASCII)


NUMBER = rf"\d{{1,7}}|{_any_of(_NUMBERS)}"
_UNIT = _any_of(_UNITS)
_MONTH = _any_of(MONTHS)
_WHICH = _any_of(_OFFSETS)
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_TIME = r"(?P<time>\d{1,2}(?::\d{2}){0,2} ?(?:[ap]\.?m)?|noon|midnight)"

_COUNT = _pattern(
    rf"(?:(?P<which>last|past|previous|next|coming) )?(?P<count>{NUMBER}) ?(?P<unit>{_UNIT})"
)
_DISTANT = _pattern(
    rf"(?P<ahead>in )?(?P<count>{NUMBER}) ?(?P<unit>{_UNIT})(?P<way> ago| back| earlier| from now)?"
)
_CALENDAR_UNIT = _pattern(rf"(?P<which>{_WHICH}|past) (?P<unit>{_UNIT})")
_UNIT_BEFORE_LAST = _pattern(rf"(?P<unit>{_UNIT}) before last")
_NAMED_WEEKDAY = _pattern(
    rf"(?:(?P<which>{_WHICH}) )?(?P<weekday>{_any_of(_WEEKDAYS)})"
)
_NAMED_MONTH = _pattern(
    rf"(?:(?P<which>{_WHICH}) )?(?P<month>{_MONTH})\.?(?:(?: of)? {_YEAR})?"
)
_MONTH_DAY = _pattern(
    rf"(?P<month>{_MONTH})\.? (?:the )?{_DAY_OF_MONTH}(?: (?:of )?{_YEAR})?"
)
_DAY_MONTH = _pattern(
    rf"(?:the )?{_DAY_OF_MONTH} (?:of )?(?P<month>{_MONTH})\.?(?: (?:of )?{_YEAR})?"
)
_QUARTER = _pattern(
    rf"(?:{_YEAR}[ -])?q(?P<quarter>[1-4])(?:(?: of)?[ -](?P<after>\d{{4}}))?"
)
_ORDINAL_QUARTER = _pattern(
    rf"(?:the )?(?P<quarter>{_any_of(_ORDINALS)}) quarter(?:(?: of)? (?P<after>\d{{4}}))?"
)
_ONLY_YEAR = _pattern(rf"(?:the )?(?:year )?{_YEAR}")
_ONLY_MONTH = _pattern(rf"{_YEAR}[-/](?P<month>\d{{1,2}})")
_ISO_DAY = _pattern(
    rf"{_YEAR}([-/])(?P<month>\d{{1,2}})\2(?P<day>\d{{1,2}})|(?P<basic>\d{{8}})"
)
_ISO_WEEK = _pattern(rf"{_YEAR}-?w(?P<week>\d{{2}})(?:-?(?P<day>[1-7]))?")
_ISO_TIME = _pattern(
    r"(?P<date>\d{4}-\d{2}-\d{2}|\d{8})[t ](?P<time>\d{2}(?::?\d{2}(?::?\d{2}(?:\.\d{1,9})?)?)?)"
    r" ?(?P<zone>z|utc|gmt|[+-]\d{2}(?::?\d{2})?)?"
)
_CLOCK_TIME = _pattern(
    r"(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)? ?(?:(?P<half>[ap])\.?m)?"
)
_DAY_THEN_TIME = _pattern(rf"(?P<day>.+?)(?: at| @)? {_TIME}")
_TIME_THEN_DAY = _pattern(rf"{_TIME}(?: on)? (?P<day>.+)")
_PREPOSITION = re.compile(
    r"(?:in|on|at|during|within|over|for|throughout) (?:the )?|the "
)
_PART_OF_DAY = _pattern(r"(?P<day>.+) (?P<part>morning|afternoon|evening|night)")


def period_of(text: str, clock: Clock) -> Period | None:
    """Parse a period, with or without a preposition and an article.

    Raises OverflowError or ValueError for a date outside the calendar.
    """
    if period := _bare_period(text, clock):
        return period
    match = _PREPOSITION.match(text)
    return _bare_period(text[match.end() :], clock) if match else None


def _bare_period(text: str, clock: Clock) -> Period | None:
    text = _SYNONYMS.get(text, text)
    if text == "now":
        return clock.point(clock.now, _MINUTE)
    named_day = _named_day(text, clock)
    if named_day:
        day, recurring = named_day
        return clock.days(day, day + timedelta(days=1), recurring=recurring)
    for pattern, parse in _PARSERS:
        match = pattern.fullmatch(text)
        period = parse(match, clock) if match else None
        if period:
            return period
    return _time_of_day(text, clock)


def _counted(match: re.Match[str], clock: Clock) -> Period | None:
    """Parse `last 3 days`, `next two weeks`; a bare `24h` or `7 days` ends now."""
    if match["which"] is None and match["count"] in ("a", "an"):
        return None
    count = _number(match["count"])
    if match["which"] in ("next", "coming"):
        count = -count
    return clock.rolling(count, _UNITS[match["unit"]])


def _distant(match: re.Match[str], clock: Clock) -> Period | None:
    """Parse `3 days ago`, `an hour from now`, `in two weeks`."""
    if bool(match["ahead"]) == bool(match["way"]):
        return None
    count = _number(match["count"])
    if match["ahead"] or match["way"] == " from now":
        count = -count
    return clock.ago(count, _UNITS[match["unit"]])


def _calendar_unit(match: re.Match[str], clock: Clock) -> Period:
    """Parse `last week`, `this month`, `next year`. `past week` ends now, and so do `last hour` and shorter units."""
    unit = _UNITS[match["unit"]]
    is_past = match["which"] == "past"
    offset = -1 if is_past else _OFFSETS[match["which"]]
    is_short = unit in ("second", "minute", "hour")
    if is_past or (is_short and offset != 0):
        return clock.rolling(-offset, unit)
    return clock.unit(unit, offset)


def _named_day(text: str, clock: Clock) -> tuple[date, bool] | None:
    """Parse a single day; return it and whether its name recurs."""
    if text in _DAYS:
        return clock.today + timedelta(days=_DAYS[text]), False
    if match := _ISO_DAY.fullmatch(text):
        return _iso_day(match), False
    if match := _NAMED_WEEKDAY.fullmatch(text):
        weekday = _WEEKDAYS[match["weekday"]]
        return _weekday(weekday, match["which"], clock.today), match["which"] is None
    if match := _MONTH_DAY.fullmatch(text) or _DAY_MONTH.fullmatch(text):
        month = MONTHS[match["month"]]
        day = int(match["day"])
        if match["year"]:
            return date(int(match["year"]), month, day), False
        return _latest(month, day, clock.today), True
    match = _ISO_WEEK.fullmatch(text)
    if match and match["day"]:
        year, week, weekday = map(int, match.group("year", "week", "day"))
        return date.fromisocalendar(year, week, weekday), False
    return None


def _iso_day(match: re.Match[str]) -> date:
    parts = match.group("year", "month", "day")
    basic = match["basic"]
    if basic:
        parts = (basic[:4], basic[4:6], basic[6:])
    year, month, day = map(int, parts)
    return date(year, month, day)


def _weekday(weekday: int, which: str | None, today: date) -> date:
    """Return the day of this week, the next one after today, the last one before today, or the latest (`which` None)."""
    ahead = weekday - today.weekday()
    if which is None:
        return today - timedelta(days=-ahead % 7)
    if _OFFSETS[which] == 0:
        return today + timedelta(days=ahead)
    if _OFFSETS[which] == 1:
        return today + timedelta(days=ahead % 7 or 7)
    return today - timedelta(days=-ahead % 7 or 7)


def _latest(month: int, day: int, today: date) -> date:
    """Return the latest such day up to today; for the 29th of February that may be years ago."""
    is_leap_day = (month, day) == (2, 29)
    for year in range(today.year, max(today.year - 9, 0), -1):
        if is_leap_day and not calendar.isleap(year):
            continue
        candidate = date(year, month, day)
        if candidate <= today:
            return candidate
    raise OverflowError


def _numbered(match: re.Match[str], clock: Clock) -> Period:
    """Parse `2024`, `2024-03`."""
    year = int(match["year"])
    month = match.groupdict().get("month")
    if month is None:
        return clock.months(date(year, 1, 1), 12)
    return clock.months(date(year, int(month), 1), 1)


def _named_month(match: re.Match[str], clock: Clock) -> Period | None:
    """Parse `March`, `last March`, `March 2025`; `last March 2025` is none."""
    month = MONTHS[match["month"]]
    which = match["which"]
    if match["year"] and which:
        return None
    if match["year"]:
        return clock.months(date(int(match["year"]), month, 1), 1)
    year = _year_of_month(month, which, clock.today)
    return clock.months(date(year, month, 1), 1, recurring=not which)


def _year_of_month(month: int, which: str | None, today: date) -> int:
    """Return the year of the latest such month that has begun, or of the last, this or next one."""
    if which is None:
        has_begun = month <= today.month
        return today.year if has_begun else today.year - 1
    offset = _OFFSETS[which]
    if offset < 0 and month >= today.month:
        return today.year - 1
    if offset > 0 and month <= today.month:
        return today.year + 1
    return today.year


def _quarter(match: re.Match[str], clock: Clock) -> Period | None:
    year_before = match.groupdict().get("year")
    year_after = match["after"]
    if year_before and year_after:
        return None
    month = _QUARTERS[match["quarter"]] * 3 - 2
    stated_year = year_before or year_after
    if stated_year:
        return clock.months(date(int(stated_year), month, 1), 3)
    year = _year_of_month(month, None, clock.today)
    return clock.months(date(year, month, 1), 3, recurring=True)


def _iso_week(match: re.Match[str], clock: Clock) -> Period:
    monday = date.fromisocalendar(int(match["year"]), int(match["week"]), 1)
    return clock.days(monday, monday + timedelta(days=7))


def _iso_time(match: re.Match[str], clock: Clock) -> Period:
    zone = match["zone"] or ""
    if zone in ("z", "utc", "gmt"):
        zone = "+00:00"
    moment = datetime.fromisoformat(f"{match['date']}T{match['time']}{zone}")
    if moment.tzinfo is None:
        moment = clock.at(moment.date(), moment.time())

    whole, _, _ = match["time"].partition(".")
    digits = len(whole.replace(":", ""))
    precision = {2: _HOUR, 4: _MINUTE}.get(digits, _SECOND)
    return clock.point(moment, precision)


def _time_of_day(text: str, clock: Clock) -> Period | None:
    """Parse `10:30` today, `yesterday at 9am`, `noon on Monday`."""
    without_day = clock_time_of(text)
    if without_day:
        time_of_day, precision = without_day
        return clock.point(clock.at(clock.today, time_of_day), precision)
    match = _DAY_THEN_TIME.fullmatch(text) or _TIME_THEN_DAY.fullmatch(text)
    if not match:
        return None
    named_day = _named_day(match["day"], clock)
    clock_time = clock_time_of(match["time"])
    if not named_day or not clock_time:
        return None
    day, recurring = named_day
    time_of_day, precision = clock_time
    point = clock.point(clock.at(day, time_of_day), precision)
    return replace(point, recurring=recurring)


def clock_time_of(text: str) -> tuple[time, timedelta] | None:
    """Parse a time of day (`9am`, `10:30`, `10:30:15`, `noon`); return it and its precision."""
    if text in _NAMED_TIMES:
        return _NAMED_TIMES[text], _MINUTE
    match = _CLOCK_TIME.fullmatch(text)
    if not match or not (match["minute"] or match["half"]):
        return None
    hour = _hour(int(match["hour"]), match["half"])
    if hour is None:
        return None
    minute = int(match["minute"] or 0)
    second = int(match["second"] or 0)
    if match["second"]:
        precision = _SECOND
    elif match["minute"]:
        precision = _MINUTE
    else:
        precision = _HOUR
    return time(hour, minute, second), precision


def _hour(hour: int, half: str | None) -> int | None:
    """Return an hour of the day (0 to 23), given with the half of the day ("a", "p") or of 24 hours; None if invalid."""
    if half is None:
        return hour if hour < 24 else None
    if not 1 <= hour <= 12:
        return None
    if half == "p":
        return hour % 12 + 12
    return hour % 12


def _part_of_day(match: re.Match[str], clock: Clock) -> Period | None:
    """Parse `this morning`, `yesterday evening`, `last night`, `tonight`."""
    name = "today" if match["day"] == "this" else match["day"]
    named_day = _named_day(name, clock)
    if not named_day:
        return None
    day, _ = named_day
    first_hour, end_hour = _PARTS_OF_DAY[match["part"]]
    return Period.whole(
        _at_hour(day, first_hour, clock), _at_hour(day, end_hour, clock)
    )


def _at_hour(day: date, hour: int, clock: Clock) -> datetime:
    """Return the time of an hour, from 24 on of the next day."""
    return clock.at(day + timedelta(days=hour // 24), time(hour % 24))


def length_of(text: str) -> tuple[int, Unit] | None:
    """Parse a number of units: `three days`, `24h`, `a couple of weeks`."""
    match = _COUNT.fullmatch(text)
    if match and not match["which"]:
        return (_number(match["count"]), _UNITS[match["unit"]])
    return None


def _number(text: str) -> int:
    return _NUMBERS.get(text) or int(text)


_PARSERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Clock], Period | None]], ...] = (
    (_UNIT_BEFORE_LAST, lambda match, clock: clock.unit(_UNITS[match["unit"]], -2)),
    (_CALENDAR_UNIT, _calendar_unit), (_DISTANT, _distant),
    (_COUNT, _counted), (_ONLY_MONTH, _numbered), (_NAMED_MONTH, _named_month), (_QUARTER, _quarter),
    (_ORDINAL_QUARTER, _quarter), (_ONLY_YEAR, _numbered), (_ISO_WEEK, _iso_week), (_ISO_TIME, _iso_time),
    (_PART_OF_DAY, _part_of_day),
)  # fmt: skip
