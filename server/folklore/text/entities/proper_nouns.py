"""Proper nouns: capitalised names in prose, told apart into people, organisations and tools.

A capital at the beginning of a sentence, in a heading or in code says little, so such a word counts as a name only if
something else speaks for it: a second word, what follows it, or another sentence that uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal

from folklore.text.entities import lexicon

Kind = Literal["person", "organisation", "tool"]
Place = Literal["opening", "within", "after article"]  # of a sentence

# Possessive and bounded quantifiers: a run of capitals must not be read again from each of its letters to its end.
_CAPITAL = "A-ZÀ-ÖØ-ÞĀĆČĐĒĞĪŁŃŌŚŞŠŪŹŻŽΑ-ΩА-Я"
_WORD = rf"[{_CAPITAL}](?:['’](?=[{_CAPITAL}]))?[^\W\d_]{{0,40}}+(?:['’-](?=[{_CAPITAL}])[^\W\d_]{{1,40}}+)?"
_NAMES = re.compile(rf"{_WORD}(?: (?:(?:van|von|de|der|den|la|da|bin) ){{0,2}}{_WORD}){{0,3}}")
_FENCED_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_GOES_ON = re.compile(r"(?:['’]s)?(?:,| [a-z(])")
_NEXT_WORD = re.compile(r"(?:['’]s)?,? ([a-z]+)")
_LABEL = re.compile(r": ?\S")
_WORD_BEFORE = re.compile(r"(\w+) \Z")
_GLUED_BEFORE = frozenset("@/.\\#$-_`&=<'’")
_GLUED_AFTER = frozenset("/\\_(=@`")
_WITHIN_SENTENCE = frozenset(",;'\"’”)&/…")


@dataclass(frozen=True, slots=True)
class ProperNoun:
    """A name in prose, what bears it, and where it stands."""

    name: str
    kind: Kind
    start: int
    end: int


def find_proper_nouns(text: str, lower_words: Set[str]) -> list[ProperNoun]:
    """Find the names in a text, given the words that stand in it in lower case, which are nobody's names."""
    found: list[ProperNoun] = []
    doubtful: list[ProperNoun] = []
    for words, start, end, place in _capitalised(text):
        kind, name = _known(words, sure=place != "opening")
        if kind:
            found.append(ProperNoun(name, kind, start, end))
        elif place != "after article" and _could_be_person(words, lower_words):
            if place == "within" or _speaks_for_person(text, start, end, words):
                found.append(ProperNoun(name, "person", start, end))
            else:
                doubtful.append(ProperNoun(name, "person", start, end))
    people = {noun.name for noun in found if noun.kind == "person"}
    return found + [noun for noun in doubtful if noun.name in people]


def _capitalised(text: str) -> Iterator[tuple[list[str], int, int, Place]]:
    """Give runs of capitalised words in prose, without a sentence's opening word: words, start, end and place."""
    if "```" in text:
        text = _FENCED_CODE.sub(lambda block: " " * len(block.group()), text)
    for match in _NAMES.finditer(text):
        start, end = match.span()
        if (start and (text[start - 1].isalnum() or text[start - 1] in _GLUED_BEFORE)) or (
            end < len(text) and (text[end].isalnum() or text[end] in _GLUED_AFTER)
        ):
            continue
        words = match.group().split(" ")
        place: Place = "opening" if _opens_sentence(text, start) else "within"
        before = ""
        if place == "within":
            before = found[1].lower() if (found := _WORD_BEFORE.search(text, max(start - 12, 0), start)) else ""
        elif before := _opening_word(words):
            words, place = words[1:], "within"
        if words:
            yield words, start, end, "after article" if before in lexicon.ARTICLES else place


def _opening_word(words: list[str]) -> str:
    """Give a sentence's first word if it has its capital only from there, else nothing."""
    first = words[0].lower().replace("’", "'")
    if first in lexicon.STARTERS or (first.endswith("'s") and first[:-2] in lexicon.STARTERS):
        return first
    participle = len(words) > 1 and first.endswith(("ing", "ed"))
    return first if participle or (len(words) > 1 and words[1].lower() in lexicon.TOOLS) else ""


def _opens_sentence(text: str, start: int) -> bool:
    """Say whether a capital here may be there for its place: only after a word or a comma it is surely meant."""
    before = text[max(start - 2, 0) : start].rstrip(" ")
    return not before or not (before[-1].isalnum() or before[-1] in _WITHIN_SENTENCE)


def _known(words: list[str], *, sure: bool) -> tuple[Kind | None, str]:
    """Recognise tools and organisations; the name comes back in its usual spelling."""
    name = " ".join(words)
    low = name.lower()
    if tool := lexicon.TOOLS.get(low):
        return "tool", tool
    if low in lexicon.CAPITALISED_TOOLS:
        return ("tool", low) if sure or low not in lexicon.STARTERS else (None, "")
    if organisation := lexicon.ORGANISATIONS.get(low):
        return "organisation", organisation
    if len(words) > 1:
        if words[-1].lower() in lexicon.ORGANISATION_ENDINGS:
            return "organisation", name
        for word in words:
            if tool := lexicon.TOOLS.get(word.lower()):
                return "tool", tool
    return None, name


def _could_be_person(words: list[str], lower_words: Set[str]) -> bool:
    """Say whether each capitalised word may be part of somebody's name."""
    if len(words) == 1 and words[0].endswith("ing"):
        return False
    return all(_could_be_name(word, lower_words) for word in words if word[0].isupper())


def _could_be_name(word: str, lower_words: Set[str]) -> bool:
    low = word.lower()
    if len(word) < 2 or low in lexicon.NO_NAMES or low in lexicon.STARTERS or low in lexicon.CAPITALISED_TOOLS:
        return False
    if low in lower_words or (low.endswith(lexicon.NOUN_ENDINGS) and low not in lexicon.NAMES_WITH_NOUN_ENDINGS):
        return False
    return word[1:].islower() or not word.isalpha() or word.startswith("Mc")


def _speaks_for_person(text: str, start: int, end: int, words: list[str]) -> bool:
    """Say whether what follows a sentence's first words makes them a person: a label, an address, what people do."""
    if text.startswith(("'s ", "’s "), end):
        return True
    if _LABEL.match(text, end):
        return not start or text[start - 1] == "\n"
    following = _NEXT_WORD.match(text, end)
    if following and following[1] in lexicon.PERSON_VERBS:
        return True
    return len(words) > 1 and _GOES_ON.match(text, end) is not None
