"""Date terms: dates as search terms, under which memories of that time are indexed.

`folklore_named_words` indexes a memory of 8 May 2023 under its day (@2023-05-08, @05-08), its month (@2023-05, @05) and
its year (@2023). A query that names a date searches for the same terms, so that a date is weighed like a word: by its
document frequency.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta

from folklore.text.dates.periods import MONTHS
from folklore.text.dates.translation import months_of_languages


def _any_of(names: Iterable[str]) -> str:
    longest_first = sorted(names, key=len, reverse=True)
    return f"(?P<month>{'|'.join(map(re.escape, longest_first))})"


# ASCII only: otherwise "i" would match the Turkish dotless ı too, and "s" the long ſ.
_MONTH = r"(?P<month>(?a:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r"))\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_MONTH_SIGN = r"(?P<number>\d{1,2})\s?[月월]"
_DAY_SIGN = r"(?P<day>\d{1,2})\s?[日号號일]"
# A year that a sign joins to a word is part of a name (CVE-2025-1003, blog/2024/post), except after words of time.
_NOT_IN_NAME = (
    r"(?:(?<![^\W\d_][-./#])"
    + "".join(rf"|(?<=\b{word}-)" for word in ("mid", "end", "pre", "early", "late"))
    + ")"
)
# Months in other languages. "Mars" is a planet and a name too, so that it needs a day or a word of time before it.
_OTHER_MONTHS = months_of_languages(MONTHS)
_OTHER_OR_MARS = _any_of(_OTHER_MONTHS)
_OTHER = _any_of(_OTHER_MONTHS.keys() - {"mars"})
_OTHER_DAY = r"(?P<day>\d{1,2})(?:\.|º|ª|er)?"
_DE = r"(?:del?\s)?"
_BEFORE_MONTH = (
    "(?:im|in|en|em|a|de|nel|seit|ab|bis|nach|vor|letzten|depuis|avant|après|desde|hasta|até|da|dal|sinds|sedert|tot|"
    "vorige|в|во|с|до|после)"
)
# The most specific pattern first: later ones skip the text that an earlier one matched.
_PATTERNS = tuple(
    re.compile(rf"\b{pattern}\b", re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)",
        rf"{_OTHER_DAY}\s{_DE}{_OTHER_OR_MARS},?\s{_DE}{_YEAR}",
        rf"{_OTHER},?\s{_DE}{_YEAR}",
        rf"(?:en|depuis|fin|début)\s{_OTHER_OR_MARS}\s{_YEAR}",
        rf"{_OTHER_DAY}\s{_DE}{_OTHER_OR_MARS}",
        rf"{_BEFORE_MONTH}\s{_OTHER}",
        rf"(?:en|depuis|fin|début)\s{_OTHER_OR_MARS}",
        rf"{_DAY}\s(?:of\s)?{_MONTH},?\s{_YEAR}",
        rf"{_MONTH}\s{_DAY},?\s{_YEAR}",
        rf"{_MONTH},?\s{_YEAR}",
        rf"{_DAY}\s(?:of\s)?{_MONTH}",
        rf"{_MONTH}\s{_DAY}",
        # A month alone needs a word of time before it: "may" and "march" are verbs too.
        rf"(?:in|of|during|since|by|until|before|after|last|this|early|late|mid)\s{_MONTH}",
        _NOT_IN_NAME + _YEAR,
    )
) + tuple(
    # Chinese, Japanese and Korean: 2024年3月5日.
    re.compile(rf"(?<!\d){pattern}(?!\s?\d)")
    for pattern in (
        rf"{_YEAR}\s?[年년]\s?{_MONTH_SIGN}\s?{_DAY_SIGN}",
        rf"{_YEAR}\s?[年년]\s?{_MONTH_SIGN}",
        rf"{_MONTH_SIGN}\s?{_DAY_SIGN}",
        rf"{_YEAR}\s?[年년]",
        _MONTH_SIGN,
    )
)
_MAX_CHARACTERS = 2_000
_MAX_DAYS_AWAY = 4
_FADING_DAYS = 2.0


def date_terms(query: str) -> dict[str, float]:
    """Return the date terms of a query with their weights: 1, or exp(-days / 2) for a day up to four days away.

    Relative times (`last week`) give no terms: they filter by when something was stored.
    """
    terms: dict[str, float] = {}
    text = " ".join(query[:_MAX_CHARACTERS].split())
    for match in _matches(text):
        for term, weight in _terms_of(match.groupdict()):
            terms[term] = max(weight, terms.get(term, 0.0))
    return terms


def tokens_with_dates(tokens: Sequence[str]) -> set[int]:
    """Return the positions of the tokens of a query that name a day, a month or a year."""
    text = " ".join(tokens)[:_MAX_CHARACTERS]
    positions = set()
    for match in _matches(text):
        for group, value in match.groupdict().items():
            if value is not None:
                positions.add(text.count(" ", 0, match.start(group)))
    return positions


def _matches(text: str) -> Iterator[re.Match[str]]:
    """Yield the dates of a text, those of the most specific patterns first, without overlaps."""
    ranges: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if not _overlaps(match, ranges):
                ranges.append(match.span())
                yield match


def _overlaps(match: re.Match[str], ranges: Sequence[tuple[int, int]]) -> bool:
    return any(begin < match.end() and match.start() < end for begin, end in ranges)


def _terms_of(groups: dict[str, str | None]) -> Iterator[tuple[str, float]]:
    year = int(groups.get("year") or 0)
    day = int(groups.get("day") or 0)
    month = int(groups.get("number") or 0)
    name = (groups.get("month") or "").lower()
    if name:
        month = MONTHS.get(name) or _OTHER_MONTHS[name]

    is_month = 1 <= month <= 12
    if is_month and "day" in groups:
        yield from _days_around(year, month, day)
    elif is_month and year:
        yield f"@{year}-{month:02}", 1.0
    elif is_month:
        yield f"@{month:02}", 1.0
    elif year:
        yield f"@{year}", 1.0


def _days_around(year: int, month: int, day: int) -> Iterator[tuple[str, float]]:
    """Yield the terms of the days around one with their weights; without a year (0) those of any year."""
    try:
        center = date(year or 2024, month, day)  # a leap year has every day
    except ValueError:
        return
    for offset in range(-_MAX_DAYS_AWAY, _MAX_DAYS_AWAY + 1):
        near = center + timedelta(days=offset)
        term = f"@{near:%Y-%m-%d}" if year else f"@{near:%m-%d}"
        yield term, math.exp(-abs(offset) / _FADING_DAYS)
