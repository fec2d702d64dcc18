"""Proper nouns: capitalised names in prose, classified as people, organisations or tools.

A capital at the beginning of a sentence, in a heading or in code is weak evidence. Such a word counts as a name only
with more evidence: a second word, the words after it, or another sentence that uses it.
"""

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal

from folklore.text.entities import lexicon

Kind = Literal["person", "organisation", "tool"]
Place = Literal["opening", "within", "after article"]  # of a sentence

# Possessive and bounded quantifiers prevent that a run of capitals is read again from each of its letters.
_CAPITAL = "A-ZÀ-ÖØ-ÞĀĆČĐĒĞĪŁŃŌŚŞŠŪŹŻŽΑ-ΩА-Я"
_WORD = rf"[{_CAPITAL}](?:['’](?=[{_CAPITAL}]))?[^\W\d_]{{0,40}}+(?:['’-](?=[{_CAPITAL}])[^\W\d_]{{1,40}}+)?"
_NAMES = re.compile(
    rf"{_WORD}(?: (?:(?:van|von|de|der|den|la|da|bin) ){{0,2}}{_WORD}){{0,3}}"
)
_FENCED_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE_CONTINUES = re.compile(r"(?:['’]s)?(?:,| [a-z(])")
_NEXT_WORD = re.compile(r"(?:['’]s)?,? ([a-z]+)")
_LABEL = re.compile(r": ?\S")
_WORD_BEFORE = re.compile(r"(\w+) \Z")
_CODE_BEFORE = frozenset("@/.\\#$-_`&=<'’")
_CODE_AFTER = frozenset("/\\_(=@`")
_WITHIN_SENTENCE = frozenset(",;'\"’”)&/…")


@dataclass(frozen=True, slots=True)
class ProperNoun:
    """A name in prose, the kind of its bearer, and its position."""

    name: str
    kind: Kind
    start: int
    end: int


def find_proper_nouns(text: str, lower_words: Set[str]) -> list[ProperNoun]:
    """Return the names in a text. `lower_words` are the words that it also has in lower case: they are no names."""
    nouns = list(_candidates(text, lower_words))
    people = {noun.name for noun, certain in nouns if certain and noun.kind == "person"}
    return [noun for noun, certain in nouns if certain or noun.name in people]


def _candidates(text: str, lower_words: Set[str]) -> Iterator[tuple[ProperNoun, bool]]:
    """Yield possible names, and whether each is certain without another sentence that uses it."""
    for words, start, end, place in _capitalised(text):
        kind, name = _known(words, certain=place != "opening")
        if kind:
            yield ProperNoun(name, kind, start, end), True
        elif place != "after article" and _could_be_person(words, lower_words):
            certain = place == "within" or _followed_as_person(text, start, end, words)
            yield ProperNoun(name, "person", start, end), certain


def _capitalised(text: str) -> Iterator[tuple[list[str], int, int, Place]]:
    """Yield runs of capitalised words in prose without a sentence's opening word: words, start, end and place."""
    if "```" in text:
        text = _FENCED_CODE.sub(lambda block: " " * len(block.group()), text)
    for match in _NAMES.finditer(text):
        start, end = match.span()
        if not _part_of_code(text, start, end):
            words, place = _placed(match.group().split(" "), text, start)
            if words:
                yield words, start, end, place


def _part_of_code(text: str, start: int, end: int) -> bool:
    previous = text[start - 1 : start]
    following = text[end : end + 1]
    return (
        previous.isalnum()
        or previous in _CODE_BEFORE
        or following.isalnum()
        or following in _CODE_AFTER
    )


def _placed(words: list[str], text: str, start: int) -> tuple[list[str], Place]:
    """Return a run's words without a sentence's opening word, and their place in the sentence."""
    if not _opens_sentence(text, start):
        match = _WORD_BEFORE.search(text, max(start - 12, 0), start)
        opening = match[1].lower() if match else ""
    elif opening := _opening_word(words):
        words = words[1:]
    else:
        return words, "opening"
    return words, "after article" if opening in lexicon.ARTICLES else "within"


def _opening_word(words: list[str]) -> str:
    """Return a sentence's first word if only its position explains the capital, else ""."""
    first = words[0].lower().replace("’", "'")
    if first in lexicon.STARTERS or (
        first.endswith("'s") and first[:-2] in lexicon.STARTERS
    ):
        return first
    participle = len(words) > 1 and first.endswith(("ing", "ed"))
    if participle or (len(words) > 1 and words[1].lower() in lexicon.TOOLS):
        return first
    return ""


def _opens_sentence(text: str, start: int) -> bool:
    """Return whether a sentence may begin here: anywhere but after a word or a comma."""
    prefix = text[max(start - 2, 0) : start].rstrip(" ")
    return not prefix or not (prefix[-1].isalnum() or prefix[-1] in _WITHIN_SENTENCE)


def _known(words: list[str], *, certain: bool) -> tuple[Kind | None, str]:
    """Return the kind of a known tool or organisation and its usual spelling, or None and the name as written."""
    name = " ".join(words)
    low = name.lower()
    if tool := lexicon.TOOLS.get(low):
        return "tool", tool
    if low in lexicon.CAPITALISED_TOOLS:
        return ("tool" if certain or low not in lexicon.STARTERS else None), low
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
    if len(words) == 1 and words[0].endswith("ing"):
        return False
    return all(_could_be_name(word, lower_words) for word in words if word[0].isupper())


def _could_be_name(word: str, lower_words: Set[str]) -> bool:
    low = word.lower()
    if (
        len(word) < 2
        or low in lexicon.NO_NAMES
        or low in lexicon.STARTERS
        or low in lexicon.CAPITALISED_TOOLS
    ):
        return False
    if low in lower_words or (
        low.endswith(lexicon.NOUN_ENDINGS)
        and low not in lexicon.NAMES_WITH_NOUN_ENDINGS
    ):
        return False
    return word[1:].islower() or not word.isalpha() or word.startswith("Mc")


def _followed_as_person(text: str, start: int, end: int, words: list[str]) -> bool:
    """Return whether the text after a sentence's first words marks a person: possessive, label, or a person's verb."""
    if text.startswith(("'s ", "’s "), end):
        return True
    if _LABEL.match(text, end):
        return not start or text[start - 1] == "\n"
    following = _NEXT_WORD.match(text, end)
    if following and following[1] in lexicon.PERSON_VERBS:
        return True
    return len(words) > 1 and _SENTENCE_CONTINUES.match(text, end) is not None
