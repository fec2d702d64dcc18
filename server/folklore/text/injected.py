"""Notes as Folklore injects them into an assistant's session, their removal from texts, and quotations of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folklore.text.question import QuestionWords, plain

OPENING, CLOSING = "<folklore-notes>", "</folklore-notes>"
_BLOCK = re.compile(rf"[ \t]*{OPENING}.*?(?:{CLOSING}[ \t]*\n?|\Z)", re.DOTALL)
_MARK = re.compile(r"<(/?folklore-notes)", re.IGNORECASE)
# Words in sequence, or the share of all of a note's words by weight, that make a quotation of it.
_SEQUENCE, _SHARE = 5, 2 / 3


def block(heading: str, notes: Sequence[str]) -> str:
    """Return the text to inject: a heading and the notes, between marks by which it is found again."""
    return "\n".join([OPENING, heading, *notes, CLOSING])


def unmarked(text: str) -> str:
    """Return a text without marks, which would end the block around it."""
    return _MARK.sub(r"\1", text)


def without_blocks(text: str) -> str:
    """Return a text without what was injected into it. A block without its end reaches to the end of the text."""
    return _BLOCK.sub("", text) if OPENING in text else text


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
        words = plain(note).split()
        if not self.sequences.isdisjoint(_sequences(words)):
            return True
        asked = QuestionWords.of(note.split()).words
        held = sum(word.weight for word in asked if word.start in self.text)
        return held >= _SHARE * sum(word.weight for word in asked) > 0


def _sequences(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(*(words[place:] for place in range(_SEQUENCE)), strict=False)
