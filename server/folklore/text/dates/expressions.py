"""Time expressions: a period such as `last week`, and ranges: `since March`, `between Monday and yesterday`, `X..Y`.

An expression that is not understood is an error, whose hint lists what is understood; it is never ignored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

from folklore.errors import InvalidInput
from folklore.text.clean import clean
from folklore.text.dates.period_expressions import (
    NUMBER,
    clock_time_of,
    length_of,
    period_of,
)
from folklore.text.dates.periods import Clock, Period
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


_ALL_TIME = frozenset(
    ["all", "all time", "any", "any time", "anytime", "always", "ever"]
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
_BARE_NUMBER = re.compile(rf"{_BARE_DAY_NUMBER}|{NUMBER}")
_NUMBER_FIRST = re.compile(rf"(?:{_BARE_DAY_NUMBER}|{NUMBER}) (?P<rest>.+)")
_BARE_DAY = re.compile(rf"{_BARE_DAY_NUMBER}(?: \d{{4}})?")
_DAY_LAST = re.compile(rf"(?P<rest>.+) {_BARE_DAY_NUMBER}")
_INCLUSIVE_ENDS = ("until", "till", "up to", "through", "by", "..")


def _time_range(text: str, clock: Clock) -> TimeRange | None:
    if period := period_of(text, clock):
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
    length = length_of(match[2]) if match else None
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
        period = period_of(match[1], clock)
        return TimeRange(period.low, None) if period else None
    match = _BOUND.fullmatch(text)
    period = period_of(match[2], clock) if match else None
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
    start = period_of(first, clock)
    end = period_of(last, clock)
    if start is None or end is None:
        return None
    end_time = clock_time_of(last)
    if end_time and not clock_time_of(first):  # yesterday 9:00 to 11:00
        return start, _next_time(*end_time, clock.moved(start.low))
    if end_time and start.low > end.low:  # 22:00 to 6:00
        start = period_of(first, clock.moved(clock.shifted(-1, "day"))) or start
    # Monday to Friday, October to February 2024: the latest start before the end
    if start.recurring:
        start = period_of(first, clock.moved(end.low)) or start
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
    if number_first and _BARE_NUMBER.fullmatch(first) and not length_of(last):
        return f"{first} {number_first['rest']}", last
    day_last = _DAY_LAST.fullmatch(first)
    if day_last and _BARE_DAY.fullmatch(last):
        return first, f"{day_last['rest']} {last}"
    return first, last
