"""Notes as Folklore injects them into an assistant's session, their removal from texts, and quotations of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from folklore.text.clean import clean
from folklore.text.query.question import QuestionWords, plain

OPENING, CLOSING = "<folklore-notes>", "</folklore-notes>"
# The bracket that begins a mark, and those that look like it.
_BRACKET = re.compile(
    "[<\uff1c\ufe64\u2039\u3008\u27e8\u2329\u276c\u276e\u2770\u02c2\u1438]"
)
_ESCAPED = "&lt;"
_LETTERS = "folklorenotes"
# Words in sequence, or the share of all of a note's words by weight, that make a quotation of it.
_SEQUENCE, _SHARE = 5, 2 / 3


def block(heading: str, notes: Sequence[str]) -> str:
    """Return the text to inject: a heading and the notes, between marks by which it is found again."""
    return "\n".join([OPENING, *map(encoded, (heading, *notes)), CLOSING])


def encoded(text: str) -> str:
    """Return a text in one line in which nothing reads as a mark: the bracket of what could is written `&lt;`.

    Other brackets stay, so that code and HTML remain readable. Takes its own result as it is.
    """
    line = " ".join(clean(text).text.split())
    places = [match.start() for match in _BRACKET.finditer(line)]
    parts = [line[begin:end] for begin, end in pairwise([0, *places, len(line)])]
    return "".join(
        _ESCAPED + part[1:] if _reads_as_mark(part[1:]) else part for part in parts
    )


def _reads_as_mark(text: str) -> bool:
    """Return whether the letters after a bracket are those of a mark, whatever else is between them.

    A letter of another alphabet may look like any of them, so it is taken for all.
    """
    letters = "".join(islice(_letters(text.partition(">")[0]), len(_LETTERS)))
    return len(letters) == len(_LETTERS) and all(
        letter == expected or not letter.isascii()
        for letter, expected in zip(letters, _LETTERS, strict=True)
    )


def _letters(text: str) -> Iterator[str]:
    for char in text:
        plain_char = char if char.isascii() else unicodedata.normalize("NFKD", char)[0]
        if plain_char.isalnum():
            yield plain_char.lower()[0]


def without_blocks(text: str) -> str:
    """Return a text without what was injected into it. A block without its end reaches to the end of the text."""
    head, *blocks = text.split(OPENING)
    tails = [
        block.partition(CLOSING)[2].lstrip(" \t").removeprefix("\n") for block in blocks
    ]
    *followed, last = head, *tails
    return "".join([*(part.rstrip(" \t") for part in followed), last])


@dataclass(frozen=True, slots=True)
class Quoting:
    """A text in plain form that may quote notes, and its sequences of five words."""

    text: str
    sequences: frozenset[tuple[str, ...]]

    @classmethod
    def of(cls, text: str) -> Quoting:
        """Read a text."""
        spelled = plain(text)
        return cls(spelled, frozenset(_sequences(spelled.split())))

    def quotes(self, note: str) -> bool:
        """Return whether the text holds five words of a note in sequence, or most of all its words by weight."""
        if not self.sequences.isdisjoint(_sequences(plain(note).split())):
            return True
        return self.share(note) >= _SHARE

    def share(self, note: str) -> float:
        """Return the share of a note's words, by weight, that the text holds; 0 for a note without words."""
        words = QuestionWords.of(note.split()).words
        weight = sum(word.weight for word in words if word.start in self.text)
        return weight / (sum(word.weight for word in words) or 1)


def _sequences(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[place:] for place in range(_SEQUENCE)), strict=False)
