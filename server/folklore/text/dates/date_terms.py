"""Dates that a question names, as marks under which memories of that time are posted.

A memory of 8 May 2023 is posted under its day (@2023-05-08, @05-08), its month (@2023-05, @05) and its year (@2023). A
question that names a date asks for the same marks, so that time weighs as a rare word does: by how few share it.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name[:3]: number for name, number in _MONTHS.items()} | {"sept": 9}
# By ASCII alone: else "i" stands for the Turkish dotless ı too, and "s" for the long ſ, and no month is spelled so.
_MONTH = r"(?P<month>(?a:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r"))\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
# Behind a word and a sign that joins it is part of a name (CVE-2025-1003, blog/2024/post), but for words of time.
_NO_NAME = (
    r"(?:(?<![^\W\d_][-./#])" + "".join(rf"|(?<=\b{word}-)" for word in ("mid", "end", "pre", "early", "late")) + ")"
)
# The more a pattern says the earlier it stands: what it took, later ones do not read again.
_PATTERNS = tuple(
    re.compile(rf"\b{pattern}\b", re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)",
        rf"{_DAY}\s(?:of\s)?{_MONTH},?\s{_YEAR}",
        rf"{_MONTH}\s{_DAY},?\s{_YEAR}",
        rf"{_MONTH},?\s{_YEAR}",
        rf"{_DAY}\s(?:of\s)?{_MONTH}",
        rf"{_MONTH}\s{_DAY}",
        # A month alone only after a word of time: "may" and "march" are verbs too.
        rf"(?:in|of|during|since|by|until|before|after|last|this|early|late|mid)\s{_MONTH}",
        _NO_NAME + _YEAR,
    )
)
_LONGEST_READ = 2_000
_DAYS_NEAR = 4
_DAYS_FADE = 2.0


def marks_of(day: date) -> tuple[str, ...]:
    """The marks a memory of this day is posted under; `postings/insert.sql` writes the same."""
    return (f"@{day:%Y-%m-%d}", f"@{day:%m-%d}", f"@{day:%Y-%m}", f"@{day:%m}", f"@{day:%Y}")


def marks_asked(question: str) -> dict[str, float]:
    """The marks a question asks for, each with how much it counts (1, less for the days around a day it names).

    Relative times (`last week`) are filters' business: they say when the question is asked, not what it is about.
    """
    text = " ".join(question[:_LONGEST_READ].split())
    marks: dict[str, float] = {}
    for year, month, day in _dates(text):
        for mark, weight in _around(year, month, day):
            marks[mark] = max(weight, marks.get(mark, 0.0))
    return marks


def dated_pieces(pieces: Sequence[str]) -> set[int]:
    """Which pieces of a question name a day, a month or a year, but not the words around them."""
    text = " ".join(pieces)[:_LONGEST_READ]
    return {
        text.count(" ", 0, match.start(group))
        for match in _matches(text)
        for group, named in match.groupdict().items()
        if named is not None
    }


def _dates(text: str) -> Iterator[tuple[int | None, int | None, int | None]]:
    for match in _matches(text):
        found = match.groupdict()
        named = found.get("month")
        month = _MONTHS[named.lower()] if named else int(found.get("number") or 0) or None
        yield _number(found.get("year")), month, _number(found.get("day"))


def _matches(text: str) -> Iterator[re.Match[str]]:
    taken: list[tuple[int, int]] = []
    for pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if any(start < match.end() and match.start() < end for start, end in taken):
                continue
            taken.append(match.span())
            yield match


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _around(year: int | None, month: int | None, day: int | None) -> Iterator[tuple[str, float]]:
    if month is None or not 1 <= month <= 12:
        if year is not None:
            yield f"@{year}", 1.0
        return
    if day is None:
        yield (f"@{month:02}" if year is None else f"@{year}-{month:02}"), 1.0
        return
    try:
        named = date(2024 if year is None else year, month, day)  # a leap year has every day
    except ValueError:
        return
    for offset in range(-_DAYS_NEAR, _DAYS_NEAR + 1):
        near = named + timedelta(days=offset)
        yield (f"@{near:%m-%d}" if year is None else f"@{near:%Y-%m-%d}"), math.exp(-abs(offset) / _DAYS_FADE)
