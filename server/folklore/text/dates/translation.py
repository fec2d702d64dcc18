"""Times in other languages than English, said in English by a table for each language (languages.txt).

What a time means is decided for English alone (period_expressions.py, expressions.py). A language is a section of the table.
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
            english = self._filled(phrase.english, match, depth) if match else None
            if english:
                return english
        return None

    def _filled(self, english: str, match: re.Match[str], depth: int) -> str | None:
        """Return the English of a phrase with that of its words, and of the times within it, in their placeholders."""
        for name, value in match.groupdict().items():
            if name in ("t", "u"):
                translated = self.english(value.strip(), depth - 1)
                if translated is None:
                    return None
            else:
                translated = self.words.get(name, {}).get(value, value)
            english = english.replace(f"<{name}>", translated)
        return english


def translations(text: str) -> Iterator[str]:
    """Yield what a time in lower case says in English, for each language in which it is one."""
    for language in languages():
        english = language.english(_spaced(text, spaced=language.spaced))
        if english:
            yield english


def months_of_languages(english: Mapping[str, int]) -> dict[str, int]:
    """Return the months of languages with spaces by name, without those that English has too, or that differ."""
    numbers_of: dict[str, set[int]] = {}
    for section in _sections():
        if section.spaced:
            for name, month in section.words["month"].items():
                numbers_of.setdefault(name, set()).add(english[month])
    months = {}
    for name, numbers in numbers_of.items():
        if len(numbers) == 1 and name not in english and name not in _NAMES:
            months[name] = numbers.pop()
    return months


@cache
def languages() -> tuple[Language, ...]:
    """Return the languages of the table. The first call compiles its phrases."""
    results = []
    for section in _sections():
        phrases = [_phrase(row, section) for row in section.phrases]
        language = Language(section.name, section.spaced, section.words, tuple(phrases))
        results.append(language)
    return tuple(results)


@dataclass(frozen=True, slots=True)
class _Section:
    """The rows of a language."""

    name: str
    spaced: bool
    words: dict[str, dict[str, str]]
    phrases: list[str]


@cache
def _sections() -> tuple[_Section, ...]:
    text = _TABLE.read_text(encoding="utf-8")
    _, *parts = re.split(r"^\[(\w+)\]", text, flags=re.MULTILINE)
    sections = zip(parts[::2], parts[1::2], strict=True)
    return tuple(_section(name, rows) for name, rows in sections)


def _section(name: str, text: str) -> _Section:
    first, *rows = text.split("\n")
    section = _Section(name, first.strip() != "unspaced", {}, [])
    for row in filter(None, rows):
        if " = " in row:
            section.phrases.append(row)
            continue
        kind, _, rest = row.partition(" ")
        english, _, forms = rest.partition(": ")
        words = section.words.setdefault("n" if kind == "number" else kind, {})
        for form in forms.casefold().split():
            words[_spaced(form, spaced=section.spaced)] = english
    return section


def _phrase(row: str, section: _Section) -> _Phrase:
    """Return the phrase of a row: `(el) <day> de <month> = <day> <month>`, where `(el)` may be missing."""
    phrase, _, english = row.partition(" = ")
    pattern = ""
    blank = " " if section.spaced else ""
    # Once a required element has come, each element has the blank in front, before that behind.
    has_required = False
    for element in _ELEMENT.findall(phrase):
        if not element.strip():
            continue
        is_optional = element.startswith("(")
        part = _part(element.strip("() "), section)
        if has_required:
            part = f"{blank}{part}"
        elif is_optional:
            part = f"{part}{blank}"
        pattern += f"(?:{part})?" if is_optional else part
        has_required |= not is_optional
    return _Phrase(re.compile(pattern), english, "<t>" in phrase)


def _part(element: str, section: _Section) -> str:
    """Return the pattern of a placeholder, or of alternatives: `de | del`."""
    if not element.startswith("<"):
        forms = element.casefold().split(" | ")
        return _any_of(_spaced(form, spaced=section.spaced) for form in forms)
    name = element.strip("<>")
    if name == "day":
        return _DAY
    if name == "year":
        return _YEAR
    if name == "n":
        return rf"(?P<n>\d{{1,3}}|{_any_of(section.words['n'])})"
    if name in _PLACEHOLDERS:
        return rf"(?P<{name}>{_any_of(section.words[name])})"
    return rf"(?P<{name}>.+?)"


def _any_of(forms: Iterable[str]) -> str:
    longest_first = sorted(forms, key=len, reverse=True)
    return f"(?:{'|'.join(map(re.escape, longest_first))})"


def _spaced(text: str, *, spaced: bool) -> str:
    """Return a text with single blanks, also after each apostrophe (l'année, dell'anno); if not `spaced` without any."""
    if not spaced:
        return text.replace(" ", "")
    return " ".join(text.replace("\u2019", "'").replace("'", "' ").split())
