"""Time expressions: `last week`, `since March`, `between Monday and yesterday`, ISO 8601 dates, times and ranges.

A date without its year or week means the latest one that has begun, since memories are about the past. An expression
that is not understood is an error, whose hint lists what is understood; it is never ignored.
"""

import calendar
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo

from folklore.errors import InvalidInput
from folklore.text.clean import clean
from folklore.text.dates.periods import MONTHS, Clock, Period, Unit
from folklore.text.dates.translation import translations

MAX_LENGTH = 200
UNDERSTOOD = (
    "Understood are: today, yesterday, tomorrow; last/this/next hour, day, week, month, quarter or year; last/past N "
    "minutes … years; N days ago; Monday, last Friday; March, March 2025, 3 March 2025, Q3 2024, 2024; ISO dates and "
    "times such as 2025-03-01 or 2025-03-01T10:00+01:00; since, after, before or until one of these; between X and Y, "
    "X to Y, X..Y, 1 to 3 March; all time; and the same in German, Spanish, French, Portuguese, Italian, Dutch, Russian, "
    "Chinese, Japanese and Korean."
)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A half-open range of time [since, until) in UTC; None is open."""

    since: datetime | None
    until: datetime | None


def parse_time(expression: str, *, now: datetime, zone: tzinfo) -> TimeRange:
    """Parse a time expression relative to `now`, an aware time, in the caller's time zone.

    Days and longer units follow the local calendar; weeks begin on Monday. `last week` is the calendar week before this
    one, `past week` and `last 7 days` end now. `after March` begins with April, `until March` includes March. Raises
    InvalidInput for anything else.
    """
    text = _normal(expression) if len(expression) <= MAX_LENGTH else ""
    if text in _ALL_TIME:
        return TimeRange(None, None)
    try:
        clock = Clock(now, zone)
        time_range = _time_range(text, clock) or _translated(text, clock)
    except (OverflowError, ValueError):
        problem = "there is no such date in the calendar, which has the days from 0001-01-02 to 9999-12-30."
        raise InvalidInput("time", problem, hint=UNDERSTOOD) from None
    if time_range is None:
        raise InvalidInput(
            "time", "this time expression is not understood.", hint=UNDERSTOOD
        )
    if time_range.since and time_range.until and time_range.since > time_range.until:
        raise InvalidInput(
            "time", "the range ends before it begins.", hint="Exchange the two times."
        )
    return time_range


_DASHES = re.compile("[\u2010-\u2015\u2212]")


def _normal(expression: str) -> str:
    """Return an expression in lower case with plain dashes and single blanks."""
    text = clean(expression).text.casefold().replace(",", " ")
    text = _DASHES.sub("-", text)
    text = " ".join(text.split()).strip("!?;: ").replace("this past ", "past ")
    if text.endswith(".."):
        return text
    return text.removesuffix(".")


# Periods: `yesterday`, `March 2025`, `3 days ago`, ISO 8601

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


_NUMBER = rf"\d{{1,7}}|{_any_of(_NUMBERS)}"
_UNIT = _any_of(_UNITS)
_MONTH = _any_of(MONTHS)
_WHICH = _any_of(_OFFSETS)
_DAY_OF_MONTH = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_TIME = r"(?P<time>\d{1,2}(?::\d{2}){0,2} ?(?:[ap]\.?m)?|noon|midnight)"

_COUNT = _pattern(
    rf"(?:(?P<which>last|past|previous|next|coming) )?(?P<count>{_NUMBER}) ?(?P<unit>{_UNIT})"
)
_DISTANT = _pattern(
    rf"(?P<ahead>in )?(?P<count>{_NUMBER}) ?(?P<unit>{_UNIT})(?P<way> ago| back| earlier| from now)?"
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
_PART_OF_DAY = _pattern(r"(?P<day>.+) (?P<part>morning|afternoon|evening|night)")


def _period(text: str, clock: Clock) -> Period | None:
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
    without_day = _clock_time(text)
    if without_day:
        time_of_day, precision = without_day
        return clock.point(clock.at(clock.today, time_of_day), precision)
    match = _DAY_THEN_TIME.fullmatch(text) or _TIME_THEN_DAY.fullmatch(text)
    if not match:
        return None
    named_day = _named_day(match["day"], clock)
    clock_time = _clock_time(match["time"])
    if not named_day or not clock_time:
        return None
    day, recurring = named_day
    time_of_day, precision = clock_time
    point = clock.point(clock.at(day, time_of_day), precision)
    return replace(point, recurring=recurring)


def _clock_time(text: str) -> tuple[time, timedelta] | None:
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


def _length(text: str) -> tuple[int, Unit] | None:
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

# Ranges of periods: `since March`, `between X and Y`

_ALL_TIME = frozenset(
    ["all", "all time", "any", "any time", "anytime", "always", "ever"]
)
_PREPOSITION = re.compile(
    r"(?:in|on|at|during|within|over|for|throughout) (?:the )?|the "
)
_RANGES = [
    re.compile(r"between (.+?) (?:and|to|-) (.+)"),
    re.compile(r"(?:from|since) (.+?) (?:to|until|till|through|thru|up to|-) (.+)"),
    re.compile(r"(.+?) ?(?:\.\.\.?|…) ?(.+)"),
    re.compile(r"(.+?) (?:to|until|till|through|thru|-) (.+)"),
    re.compile(r"([^/]+)/([^/]+)"),
]
_BOUNDS = re.compile(
    r"(since|after|from|starting|later than) (.+?) (?:and )?(before|until|till|up to|through) (.+)"
)
_BOUND = re.compile(
    r"(since|after|from|starting|later than|before|prior to|earlier than|until|till|up to|through|by|\.\.) ?(.+?)"
    r"(?: on)?"
)
_OPEN_END = re.compile(r"(?:from |since )?(.+?) ?(?:\.\.\.?|…|onwards?)")
_AGE = re.compile(r"(older|more|newer|younger|less) than (.+?)(?: ago| old)?")
_BARE_DAY_NUMBER = r"(?:the )?\d{1,2}(?:st|nd|rd|th)?"
_BARE_NUMBER = re.compile(rf"{_BARE_DAY_NUMBER}|{_NUMBER}")
_NUMBER_FIRST = re.compile(rf"(?:{_BARE_DAY_NUMBER}|{_NUMBER}) (?P<rest>.+)")
_BARE_DAY = re.compile(rf"{_BARE_DAY_NUMBER}(?: \d{{4}})?")
_DAY_LAST = re.compile(rf"(?P<rest>.+) {_BARE_DAY_NUMBER}")
_INCLUSIVE_ENDS = ("until", "till", "up to", "through", "by", "..")


def _time_range(text: str, clock: Clock) -> TimeRange | None:
    if period := _period(text, clock):
        return TimeRange(period.start, period.end)
    return (
        _age(text, clock)
        or _two_bounds(text, clock)
        or _range(text, clock)
        or _one_bound(text, clock)
    )


def _translated(text: str, clock: Clock) -> TimeRange | None:
    """Parse a time in another language; None if it means different times in two of them."""
    ranges = {_time_range(english, clock) for english in translations(text)} - {None}
    return ranges.pop() if len(ranges) == 1 else None


def _age(text: str, clock: Clock) -> TimeRange | None:
    """Parse `older than 2 weeks`, `less than an hour ago`."""
    match = _AGE.fullmatch(text)
    length = _length(match[2]) if match else None
    if not match or not length:
        return None
    count, unit = length
    moment = clock.shifted(-count, unit)
    if match[1] in ("older", "more"):
        return TimeRange(None, moment)
    return TimeRange(moment, None)


def _two_bounds(text: str, clock: Clock) -> TimeRange | None:
    """Parse `after Monday and before Friday`."""
    match = _BOUNDS.fullmatch(text)
    if not match:
        return None
    lower = _one_bound(f"{match[1]} {match[2]}", clock)
    upper = _one_bound(f"{match[3]} {match[4]}", clock)
    if lower is None or upper is None:
        return None
    return TimeRange(lower.since, upper.until)


def _one_bound(text: str, clock: Clock) -> TimeRange | None:
    """Parse `since March`, `before 2024`, `until Friday`, `2024..`."""
    if match := _OPEN_END.fullmatch(text):
        period = _period(match[1], clock)
        return TimeRange(period.low, None) if period else None
    match = _BOUND.fullmatch(text)
    period = _period(match[2], clock) if match else None
    if not match or not period:
        return None
    word = match[1]
    if word in ("after", "later than"):
        return TimeRange(period.high, None)
    if word in ("since", "from", "starting"):
        return TimeRange(period.low, None)
    if word in _INCLUSIVE_ENDS:
        return TimeRange(None, period.high)
    return TimeRange(None, period.low)


def _range(text: str, clock: Clock) -> TimeRange | None:
    """Parse `between X and Y`, `from X to Y`, `X..Y`, `X - Y`, all including the last day."""
    for first, last in _divisions(text):
        ends = _ends(first.strip(), last.strip(), clock)
        if ends:
            start, end = ends
            return TimeRange(min(start.low, end.low), max(start.high, end.high))
    return None


def _divisions(text: str) -> Iterator[tuple[str, str]]:
    """Yield what could be the two ends of a range: by the words of ranges, then at each dash."""
    for pattern in _RANGES:
        if match := pattern.fullmatch(text):
            yield match[1], match[2]
    for dash in re.finditer("-", text):
        yield text[: dash.start()], text[dash.end() :]


def _ends(first: str, last: str, clock: Clock) -> tuple[Period, Period] | None:
    """Parse both ends of a range; an end that is a bare number takes its unit or month from the other end."""
    ends = _complete_ends(first, last, clock)
    if ends:
        return ends
    ends = _complete_ends(*_completed(first, last), clock)
    if ends is None:
        return None
    start, end = ends
    if start.recurring and end.low - start.low > timedelta(days=31):
        return None  # 30 to 2 May
    return ends


def _complete_ends(first: str, last: str, clock: Clock) -> tuple[Period, Period] | None:
    start = _period(first, clock)
    end = _period(last, clock)
    if start is None or end is None:
        return None
    end_time = _clock_time(last)
    if end_time and not _clock_time(first):  # yesterday 9:00 to 11:00
        return start, _next_time(*end_time, clock.moved(start.low))
    if end_time and start.low > end.low:  # 22:00 to 6:00
        start = _period(first, clock.moved(clock.shifted(-1, "day"))) or start
    # Monday to Friday, October to February 2024: the latest start before the end
    if start.recurring:
        start = _period(first, clock.moved(end.low)) or start
    return start, end


def _next_time(clock_time: time, precision: timedelta, clock: Clock) -> Period:
    """Return the next such time of day at or after now."""
    period = clock.point(clock.at(clock.today, clock_time), precision)
    if period.low >= clock.now:
        return period
    return clock.point(period.low + timedelta(days=1), precision)


def _completed(first: str, last: str) -> tuple[str, str]:
    """Extend an end that is a bare number by the other end's unit or month: `3 to 5 days ago`, `March 1 to 3`.

    `3 to 5 days` is ambiguous and remains as it is.
    """
    number_first = _NUMBER_FIRST.fullmatch(last)
    if number_first and _BARE_NUMBER.fullmatch(first) and not _length(last):
        return f"{first} {number_first['rest']}", last
    day_last = _DAY_LAST.fullmatch(first)
    if day_last and _BARE_DAY.fullmatch(last):
        return first, f"{day_last['rest']} {last}"
    return first, last
