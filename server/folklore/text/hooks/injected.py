"""Notes as Folklore injects them into an assistant's session, their removal from texts, and quotations of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folklore.text.hooks.marks import encoded
from folklore.text.query.question import QuestionWords, plain

OPENING = "<folklore-notes>"
CLOSING = "</folklore-notes>"
# Words in sequence, or the share of all of a note's words by weight, that make a quotation of it.
_SEQUENCE = 5
_SHARE = 2 / 3
# Characters of a text that are compared with notes.
_COMPARED = 20_000


def block(heading: str, notes: Sequence[str]) -> str:
    """Return the text to inject: a heading and the notes, between marks by which it is found again."""
    return "\n".join([OPENING, *map(encoded, (heading, *notes)), CLOSING])


def without_blocks(text: str) -> str:
    """Return a text without what was injected into it. A block without its end reaches to the end of the text."""
    rest, *blocks = text.split(OPENING)
    for block_text in blocks:
        _, _, after = block_text.partition(CLOSING)
        rest = rest.rstrip(" \t") + after.lstrip(" \t").removeprefix("\n")
    return rest


@dataclass(frozen=True, slots=True)
class Quoting:
    """A text in plain form that may quote notes, and its sequences of five words."""

    text: str
    sequences: frozenset[tuple[str, ...]]
    # The text as it was written, for ids.
    source: str

    @classmethod
    def of(cls, text: str) -> Quoting:
        """Read a text."""
        plain_text = plain(text)
        sequences = frozenset(_sequences(plain_text.split()))
        return cls(plain_text, sequences, source=text)

    def uses(self, id_: object, note: str) -> bool:
        """Return whether the text names a note by its id, or quotes it."""
        return str(id_) in self.source or self.quotes(note)

    def quotes(self, note: str) -> bool:
        """Return whether the text holds five words of a note in sequence, or most of all its words by weight."""
        if not self.sequences.isdisjoint(_sequences(plain(note).split())):
            return True
        return self.share(note) >= _SHARE

    def share(self, note: str) -> float:
        """Return the share of a note's words, by weight, that the text holds; 0 for a note without words."""
        words = QuestionWords.of(note.split())
        shared = [word.weight for word in words.distinct if word.start in self.text]
        return sum(shared) / (words.weight or 1)


def quoting_of(text: str, *others: str) -> Quoting:
    """Return the beginning of a text and other texts, without injected notes, as what may quote memories."""
    return Quoting.of(without_blocks("\n".join([text[:_COMPARED], *others])))


def _sequences(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Return each five words in sequence."""
    return zip(*(words[offset:] for offset in range(_SEQUENCE)), strict=False)
