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
Context = Literal["opening", "within", "after article"]  # in a sentence

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


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of capitalised words in prose, without the opening word of a sentence, and its range with that word."""

    words: list[str]
    start: int
    end: int
    context: Context


def find_proper_nouns(text: str, lower_words: Set[str]) -> list[ProperNoun]:
    """Return the names in a text. `lower_words` are the words that it also has in lower case: they are no names."""
    candidates = list(_candidates(text, lower_words))
    people = set()
    for noun, is_certain in candidates:
        if is_certain and noun.kind == "person":
            people.add(noun.name)
    return [
        noun for noun, is_certain in candidates if is_certain or noun.name in people
    ]


def _candidates(text: str, lower_words: Set[str]) -> Iterator[tuple[ProperNoun, bool]]:
    """Yield possible names, and whether each is certain without another sentence that uses it."""
    for run in _runs(text):
        kind, name = _known(run.words, certain=run.context != "opening")
        if kind:
            yield ProperNoun(name, kind, run.start, run.end), True
            continue
        if run.context == "after article" or not _could_be_person(run, lower_words):
            continue
        is_certain = run.context == "within" or _followed_as_person(text, run)
        yield ProperNoun(name, "person", run.start, run.end), is_certain


def _runs(text: str) -> Iterator[_Run]:
    if "```" in text:
        text = _FENCED_CODE.sub(lambda block: " " * len(block.group()), text)
    for match in _NAMES.finditer(text):
        start, end = match.span()
        if _part_of_code(text, start, end):
            continue
        words, context = _in_sentence(match.group().split(" "), text, start)
        if words:
            yield _Run(words, start, end, context)


def _part_of_code(text: str, start: int, end: int) -> bool:
    previous = text[start - 1 : start]
    following = text[end : end + 1]
    return (
        previous.isalnum()
        or previous in _CODE_BEFORE
        or following.isalnum()
        or following in _CODE_AFTER
    )


def _in_sentence(words: list[str], text: str, start: int) -> tuple[list[str], Context]:
    """Return capitalised words without the opening word of a sentence, and what is before them."""
    if _opens_sentence(text, start):
        previous = _opening_word(words)
        if not previous:
            return words, "opening"
        words = words[1:]
    else:
        match = _WORD_BEFORE.search(text, max(start - 12, 0), start)
        previous = match[1].lower() if match else ""
    return words, "after article" if previous in lexicon.ARTICLES else "within"


def _opening_word(words: list[str]) -> str:
    """Return a sentence's first word if only its position explains the capital, else ""."""
    first = words[0].lower().replace("’", "'")
    if first in lexicon.STARTERS or first.removesuffix("'s") in lexicon.STARTERS:
        return first
    if len(words) == 1:
        return ""
    is_participle = first.endswith(("ing", "ed"))
    if is_participle or words[1].lower() in lexicon.TOOLS:
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


def _could_be_person(run: _Run, lower_words: Set[str]) -> bool:
    if len(run.words) == 1 and run.words[0].endswith("ing"):
        return False
    capitalised = [word for word in run.words if word[0].isupper()]
    return all(_could_be_name(word, lower_words) for word in capitalised)


def _could_be_name(word: str, lower_words: Set[str]) -> bool:
    low = word.lower()
    if len(word) < 2 or low in lower_words:
        return False
    if low in lexicon.NO_NAMES or low in lexicon.STARTERS:
        return False
    if low in lexicon.CAPITALISED_TOOLS:
        return False
    has_noun_ending = low.endswith(lexicon.NOUN_ENDINGS)
    if has_noun_ending and low not in lexicon.NAMES_WITH_NOUN_ENDINGS:
        return False
    return word[1:].islower() or not word.isalpha() or word.startswith("Mc")


def _followed_as_person(text: str, run: _Run) -> bool:
    """Return whether the text after a sentence's first words marks a person: possessive, label, or a person's verb."""
    if text.startswith(("'s ", "’s "), run.end):
        return True
    if _LABEL.match(text, run.end):
        return run.start == 0 or text[run.start - 1] == "\n"
    next_word = _NEXT_WORD.match(text, run.end)
    if next_word and next_word[1] in lexicon.PERSON_VERBS:
        return True
    goes_on = _SENTENCE_CONTINUES.match(text, run.end) is not None
    return goes_on and len(run.words) > 1
