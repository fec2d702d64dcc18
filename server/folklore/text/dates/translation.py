"""Times in other languages than English, said in English by a table for each language (languages.txt).

What a time means is decided in one place, for English (expressions.py). A language is a section of the table.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("languages.txt")
# Times within a time: "from yesterday to today".
_DEPTH = 1
_ELEMENT = re.compile(r"\([^)]*\)|<\w+>|[^(<]+")
# What is written alike in every language: numbers, and dates and times by ISO 8601.
_WITHOUT_WORDS = re.compile(r"[:./+ tz-]*\d[\d:./+ tz-]*")
_DAY = r"(?P<day>\d{1,2})(?:\.|º|ª|°|er|e)?"
_YEAR = r"(?P<year>\d{4})"
# Without its cedilla the Portuguese March is a name of people.
_NAMES = frozenset({"marco"})
_PLACEHOLDERS = ("n", "unit", "weekday", "month", "day", "year")


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase of a language, and the same in English with placeholders."""

    pattern: re.Pattern[str]
    english: str
    holds_times: bool


@dataclass(frozen=True, slots=True)
class Language:
    """The phrases of a language, and its words by their kind ("month") with the English of each."""

    name: str
    spaced: bool
    words: Mapping[str, Mapping[str, str]]
    phrases: tuple[_Phrase, ...]

    def english(self, text: str, depth: int = _DEPTH) -> str | None:
        """Return a time in English; None if it is none in this language."""
        if _WITHOUT_WORDS.fullmatch(text):
            return text
        for phrase in self.phrases:
            if phrase.holds_times and depth == 0:
                continue
            match = phrase.pattern.fullmatch(text)
            if match and (said := self._filled(phrase.english, match, depth)):
                return said
        return None

    def _filled(self, english: str, match: re.Match[str], depth: int) -> str | None:
        for name, value in match.groupdict().items():
            if name in ("t", "u"):
                said = self.english(value.strip(), depth - 1)
                if said is None:
                    return None
            else:
                said = self.words.get(name, {}).get(value, value)
            english = english.replace(f"<{name}>", said)
        return english


def translations(text: str) -> Iterator[str]:
    """Yield what a time in lower case says in English, for each language in which it is one."""
    for language in languages():
        if language.spaced:
            given = _apart(text)
        else:
            given = text.replace(" ", "")
        if said := language.english(given):
            yield said


def months_of_languages(english: Mapping[str, int]) -> dict[str, int]:
    """Return the months of languages with spaces by name, without those that English has too, or that differ."""
    found: dict[str, set[int]] = {}
    for section in _sections():
        months = section.words["month"].items() if section.spaced else ()
        for name, month in months:
            found.setdefault(name, set()).add(english[month])
    return {
        name: numbers.pop()
        for name, numbers in found.items()
        if len(numbers) == 1 and name not in english and name not in _NAMES
    }


@cache
def languages() -> tuple[Language, ...]:
    """Return the languages of the table. The first call compiles its phrases."""
    return tuple(
        Language(
            section.name,
            section.spaced,
            section.words,
            tuple(
                _phrase(row, section.words, spaced=section.spaced)
                for row in section.phrases
            ),
        )
        for section in _sections()
    )


@dataclass(frozen=True, slots=True)
class _Section:
    """The rows of a language."""

    name: str
    spaced: bool
    words: dict[str, dict[str, str]]
    phrases: list[str]


@cache
def _sections() -> tuple[_Section, ...]:
    parts = re.split(r"^\[(\w+)\]", _TABLE.read_text(encoding="utf-8"), flags=re.M)
    return tuple(
        _section(name, rows)
        for name, rows in zip(parts[1::2], parts[2::2], strict=True)
    )


def _section(name: str, text: str) -> _Section:
    first, *rows = text.split("\n")
    section = _Section(name, first.strip() != "unspaced", {}, [])
    for row in filter(None, rows):
        if " = " in row:
            section.phrases.append(row)
            continue
        kind, _, rest = row.partition(" ")
        english, _, forms = rest.partition(": ")
        kind = "n" if kind == "number" else kind
        for form in forms.casefold().split():
            spelled = _apart(form) if section.spaced else form
            section.words.setdefault(kind, {})[spelled] = english
    return section


def _phrase(
    row: str, words: Mapping[str, Mapping[str, str]], *, spaced: bool
) -> _Phrase:
    phrase, _, english = row.partition(" = ")
    pattern = ""
    blank = " " if spaced else ""
    begun = False
    for element in _ELEMENT.findall(phrase):
        if not element.strip():
            continue
        optional = element.startswith("(")
        part = _part(element.strip("() "), words, spaced=spaced)
        if optional:
            pattern += f"(?:{blank}{part})?" if begun else f"(?:{part}{blank})?"
        else:
            pattern += f"{blank}{part}" if begun else part
            begun = True
    return _Phrase(re.compile(pattern), english, "<t>" in phrase)


def _part(element: str, words: Mapping[str, Mapping[str, str]], *, spaced: bool) -> str:
    """Return the pattern of a placeholder, or of words of which each may stand there."""
    if not element.startswith("<"):
        forms = element.casefold().split(" | ")
        return _any_of(
            _apart(form.strip()) if spaced else form.strip().replace(" ", "")
            for form in forms
        )
    name = element.strip("<>")
    if name == "day":
        return _DAY
    if name == "year":
        return _YEAR
    if name == "n":
        return rf"(?P<n>\d{{1,3}}|{_any_of(words['n'])})"
    if name in _PLACEHOLDERS:
        return rf"(?P<{name}>{_any_of(words[name])})"
    return rf"(?P<{name}>.+?)"


def _any_of(forms: Iterable[str]) -> str:
    longest_first = sorted(forms, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, longest_first))})"


def _apart(text: str) -> str:
    """Return a text with a blank after each apostrophe: l'année, dell'anno."""
    return " ".join(text.replace("\u2019", "'").replace("'", "' ").split())
