"""Time expressions: `last week`, `since March`, `between Monday and yesterday`, ISO 8601 dates, times and ranges.

An expression that is not understood is an error that lists what is; it is never silently ignored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from folklore.errors import InvalidInput
from folklore.text.clean import clean
from folklore.text.dates.named import NUMBER, read_clock_time, read_count, read_span
from folklore.text.dates.periods import Clock, Span

MAX_LENGTH = 200
UNDERSTOOD = (
    "Understood are: today, yesterday, tomorrow; last/this/next hour, day, week, month, quarter or year; last/past N "
    "minutes … years; N days ago; Monday, last Friday; March, March 2025, 3 March 2025, Q3 2024, 2024; ISO dates and "
    "times such as 2025-03-01 or 2025-03-01T10:00+01:00; since, after, before or until one of these; between X and Y, "
    "X to Y, X..Y, 1 to 3 March; all time."
)
_EVERYTHING = frozenset(["all", "all time", "any", "any time", "anytime", "always", "ever"])
_PREPOSITION = re.compile(r"(?:in|on|at|during|within|over|for|throughout) (?:the )?|the ")
_RANGES = tuple(
    re.compile(pattern)
    for pattern in (
        r"between (.+?) (?:and|to|-) (.+)",
        r"(?:from|since) (.+?) (?:to|until|till|through|thru|up to|-) (.+)",
        r"(.+?) ?(?:\.\.\.?|…) ?(.+)",
        r"(.+?) (?:to|until|till|through|thru|-) (.+)",
        r"([^/]+)/([^/]+)",
    )
)
_BOUNDS = re.compile(r"(since|after|from|starting|later than) (.+?) (?:and )?(before|until|till|up to|through) (.+)")
_BOUND = re.compile(
    r"(since|after|from|starting|later than|before|prior to|earlier than|until|till|up to|through|by|\.\.) ?(.+?)"
    r"(?: on)?"
)
_OPEN_END = re.compile(r"(?:from |since )?(.+?) ?(?:\.\.\.?|…|onwards?)")
_AGE = re.compile(r"(older|more|newer|younger|less) than (.+?)(?: ago| old)?")
_DAY = r"(?:the )?\d{1,2}(?:st|nd|rd|th)?"
_BARE_NUMBER = re.compile(rf"{_DAY}|{NUMBER}")
_NUMBER_FIRST = re.compile(rf"(?:{_DAY}|{NUMBER}) (?P<rest>.+)")
_BARE_DAY = re.compile(rf"{_DAY}(?: \d{{4}})?")
_DAY_LAST = re.compile(rf"(?P<rest>.+) {_DAY}")
_INCLUSIVE_ENDS = ("until", "till", "up to", "through", "by", "..")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A half-open stretch of time [since, until), in UTC; None is open."""

    since: datetime | None
    until: datetime | None


def parse_time(expression: str, *, now: datetime, zone: tzinfo) -> TimeRange:
    """Understand a time expression as of `now`, an aware time, in the caller's zone.

    Days and longer follow the calendar there, weeks begin on Monday. `last week` is the calendar week before this one,
    `past week` and `last 7 days` end now. `after March` begins with April, `until March` includes it. Raises
    InvalidInput for anything else.
    """
    text = _spelled(expression) if len(expression) <= MAX_LENGTH else ""
    if text in _EVERYTHING:
        return TimeRange(None, None)
    try:
        found = _read(text, Clock(now, zone))
    except (OverflowError, ValueError):
        raise InvalidInput("time", "there is no such date in the calendar.", hint=UNDERSTOOD) from None
    if found is None:
        raise InvalidInput("time", "this time expression is not understood.", hint=UNDERSTOOD)
    if found.since and found.until and found.since > found.until:
        raise InvalidInput("time", "the range ends before it begins.", hint="Exchange the two times.")
    return found


def _spelled(expression: str) -> str:
    """Bring an expression to lower case, plain dashes and single blanks."""
    text = re.sub("[\u2010-\u2015\u2212]", "-", clean(expression).text.casefold()).replace(",", " ")
    text = " ".join(text.split()).strip("!?;: ").replace("this past ", "past ")
    return text if text.endswith("..") else text.removesuffix(".")


def _read(text: str, clock: Clock) -> TimeRange | None:
    if span := _span(text, clock):
        return TimeRange(span.start, span.end)
    return _age(text, clock) or _two_bounds(text, clock) or _range(text, clock) or _one_bound(text, clock)


def _span(text: str, clock: Clock) -> Span | None:
    """Read a name of a stretch, with or without a preposition and an article."""
    if span := read_span(text, clock):
        return span
    found = _PREPOSITION.match(text)
    return read_span(text[found.end() :], clock) if found else None


def _age(text: str, clock: Clock) -> TimeRange | None:
    """`older than 2 weeks`, `less than an hour ago`."""
    found = _AGE.fullmatch(text)
    count = read_count(found[2]) if found else None
    if not found or not count:
        return None
    moment = clock.shifted(-count[0], count[1])
    return TimeRange(None, moment) if found[1] in ("older", "more") else TimeRange(moment, None)


def _two_bounds(text: str, clock: Clock) -> TimeRange | None:
    """`after Monday and before Friday`."""
    found = _BOUNDS.fullmatch(text)
    if not found:
        return None
    since, until = _one_bound(f"{found[1]} {found[2]}", clock), _one_bound(f"{found[3]} {found[4]}", clock)
    return TimeRange(since.since, until.until) if since and until else None


def _one_bound(text: str, clock: Clock) -> TimeRange | None:
    """`since March`, `before 2024`, `until Friday`, `2024..`."""
    if found := _OPEN_END.fullmatch(text):
        span = _span(found[1], clock)
        return TimeRange(span.low, None) if span else None
    found = _BOUND.fullmatch(text)
    span = _span(found[2], clock) if found else None
    if not found or not span:
        return None
    word = found[1]
    if word in ("after", "later than"):
        return TimeRange(span.high, None)
    if word in ("since", "from", "starting"):
        return TimeRange(span.low, None)
    return TimeRange(None, span.high if word in _INCLUSIVE_ENDS else span.low)


def _range(text: str, clock: Clock) -> TimeRange | None:
    """`between X and Y`, `from X to Y`, `X..Y`, `X - Y`: from the beginning of the one to the end of the other."""
    candidates = [found.groups() for pattern in _RANGES if (found := pattern.fullmatch(text))]
    candidates += [(text[:place], text[place + 1 :]) for place, char in enumerate(text) if char == "-"]
    for first, last in candidates:
        pair = _pair(first.strip(), last.strip(), clock)
        if pair:
            low, high = min(pair, key=lambda span: span.low), max(pair, key=lambda span: span.high)
            return TimeRange(low.low, high.high)
    return None


def _pair(first: str, last: str, clock: Clock) -> tuple[Span, Span] | None:
    """Read both ends of a range, each in the light of the other."""
    start, end = _span(first, clock), _span(last, clock)
    if completed := start is None or end is None:
        first, last = _completed(first, last)
        start, end = _span(first, clock), _span(last, clock)
    if start is None or end is None:
        return None
    end_time = read_clock_time(last)
    if end_time and not read_clock_time(first):  # yesterday 9:00 to 11:00
        there = clock.moved(start.low)
        end = there.point(there.at(there.today, end_time[0]), end_time[1])
        return start, end if end.low >= start.low else there.point(end.low + timedelta(days=1), end_time[1])
    if end_time and start.low > end.low:  # 22:00 to 6:00
        yesterday = clock.moved(clock.shifted(-1, "day"))
        start = _span(first, yesterday) or start
    if start.cyclic:  # Monday to Friday, October to February 2024: the first before the second
        start = _span(first, clock.moved(end.low)) or start
    if completed and start.cyclic and end.low - start.low > timedelta(days=31):  # 30 to 2 May
        return None
    return start, end


def _completed(first: str, last: str) -> tuple[str, str]:
    """Give an end that is a bare number what the other says beside its own: `3 to 5 days ago`, `March 1 to 3`.

    Not a bare length: `3 to 5 days` are neither days of a month nor ago.
    """
    if (after := _NUMBER_FIRST.fullmatch(last)) and _BARE_NUMBER.fullmatch(first) and not read_count(last):
        return f"{first} {after['rest']}", last
    if (before := _DAY_LAST.fullmatch(first)) and _BARE_DAY.fullmatch(last):
        return first, f"{before['rest']} {last}"
    return first, last
