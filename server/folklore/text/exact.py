"""How exactly a text says what a question says: whole words as they are spelled, and words side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# What a text is about it says first; a long one is not searched to its end.
_READ = 2_000
_MOST_WORDS = 32
_FURTHEST = 3
_EDGES = ".,;:!?\"'()[]{}<>`*…“”‘’«»"


@dataclass(frozen=True, slots=True)
class ExactQuestion:
    """The words of a question that weigh something, and those that stand side by side in it, with what each counts."""

    words: tuple[tuple[str, float], ...]
    pairs: tuple[tuple[str, str, float], ...]
    total: float

    @classmethod
    def of(cls, pieces: Sequence[str], weights: Sequence[float]) -> ExactQuestion:
        """From its pieces between white space, with the weight of each; a pair counts as its lighter half."""
        spelled = [(piece.strip(_EDGES).casefold(), weight) for piece, weight in zip(pieces, weights, strict=True)]
        spelled = spelled[:_MOST_WORDS]
        words = {word: weight for word, weight in spelled if word and weight > 0}
        pairs = {
            (left, right): min(weight, other)
            for (left, weight), (right, other) in pairwise(spelled)
            if left in words and right in words
        }
        return cls(
            tuple(words.items()),
            tuple((left, right, weight) for (left, right), weight in pairs.items()),
            sum(words.values()) + sum(pairs.values()),
        )

    def likeness(self, text: str) -> float:
        """0 for a text that holds half of it or less, 1 for one that holds all.

        Some words in common are what the branches weigh already; to count them twice was measured to cost.
        """
        read = text[:_READ].casefold()
        there = {word: weight for word, weight in self.words if word in read}
        most = sum(there.values())
        if 4.0 * most >= self.total:
            most += sum(weight for left, right, weight in self.pairs if left in there and right in there)
        if 2.0 * most <= self.total:
            return 0.0  # as most texts: not worth a closer look
        return max(0.0, 2.0 * self._held(read) / self.total - 1.0)

    def share(self, text: str) -> float:
        """How much of it a text holds, 0 to 1; 0 of a question without a word that weighs anything."""
        if self.total <= 0:
            return 0.0
        read = text[:_READ].casefold()
        return self._held(read) / self.total

    def _held(self, read: str) -> float:
        ends = {word: list(_whole(word, read)) for word, _ in self.words if word in read}
        held = sum(weight for word, weight in self.words if ends.get(word))
        for left, right, weight in self.pairs:
            if ends.get(left) and ends.get(right) and any(_follows(read, end, right) for end in ends[left]):
                held += weight
        return held


def _whole(word: str, text: str) -> Iterator[int]:
    """Where the word ends, each time it stands in the text as a word and not within a longer one."""
    start = text.find(word)
    while start >= 0:
        end = start + len(word)
        if not (_is_letter(text, start - 1) and _is_letter(text, start)) and not (
            _is_letter(text, end - 1) and _is_letter(text, end)
        ):
            yield end
        start = text.find(word, start + 1)


def _follows(text: str, end: int, word: str) -> bool:
    """Whether the word stands within three signs of punctuation or white space after this place."""
    place = end
    while place < min(end + _FURTHEST, len(text)) and not _is_letter(text, place):
        place += 1
    return text.startswith(word, place) and not (
        _is_letter(text, place + len(word) - 1) and _is_letter(text, place + len(word))
    )


def _is_letter(text: str, place: int) -> bool:
    return 0 <= place < len(text) and (text[place].isalnum() or text[place] == "_")
