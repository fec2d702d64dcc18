"""What a scope holds, remembered for a moment: every question weighs its words against it, and it changes slowly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from uuid import UUID

from folklore.db.stores.recall_rows import Lexemes, Measures
from folklore.ranking.length import LengthLine
from folklore.text.words import SampledFrequencies

Key = tuple[tuple[UUID, ...], UUID | None]
# A lexeme of a piece, in how many memories it is, what it says in them together, and that times their size; then the
# spellings it stands for: none may be held yet, but be stored while it is remembered.
Read = tuple[tuple[str, int, tuple[float, float], tuple[str, ...]], ...]
# In which languages a piece was read, and BM25's constants, which decide what a lexeme says.
Way = tuple[tuple[str, ...], float, float]

# A lexeme of so many memories is common: its number hardly changes while it is remembered.
_COMMON = 100
_MOST_PIECES = 5_000
_MOST_SCOPES = 64
# From so many memories on, what is stored within a minute does not change what is usual.
_LARGE = 1_000
_SECONDS, _SECONDS_OF_SMALL, _SECONDS_OF_USUAL = 60.0, 2.0, 3600.0


def key_of(namespaces: Iterable[UUID], model: UUID | None) -> Key:
    """Under what the measures of a scope are remembered."""
    return tuple(sorted(namespaces)), model


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of one scope, its length line, its usual words if it holds many, and how common words read there."""

    measures: Measures
    line: LengthLine | None
    usual: SampledFrequencies | None
    _common: dict[Way, dict[str, Read]] = field(default_factory=dict)

    @classmethod
    def of(cls, measures: Measures, usual: SampledFrequencies | None) -> Measured:
        """From what the database measured; the samples have said what they had to, and are not kept."""
        line = LengthLine.through(measures.vectors, measures.sizes)
        return cls(replace(measures, vectors=measures.vectors[:0], sizes=measures.sizes[:0], texts=None), line, usual)

    def known(self, way: Way) -> dict[str, Read]:
        """The pieces whose every lexeme is common, read in this way."""
        return self._common.setdefault(way, {})

    def learn(self, way: Way, pieces: Sequence[str], read: Lexemes, bound: int) -> None:
        """Remember those of the pieces that read as common words only, counted to the end."""
        spelled: dict[tuple[int, str], list[str]] = {}
        for word, spelling in read.spelled.items():
            for place in spelling.places:
                spelled.setdefault((place, spelling.stem), []).append(word)
        found: dict[int, list[tuple[str, int, tuple[float, float], tuple[str, ...]]]] = {
            place: [] for place in range(len(pieces))
        }
        for lexeme, places in read.places.items():
            for place in places:
                words = tuple(spelled.get((place, lexeme), ()))
                found[place].append((lexeme, read.documents[lexeme], read.sums[lexeme], words))
        known = self.known(way)
        if len(known) > _MOST_PIECES:
            known.clear()
        for place, lexemes in found.items():
            if all(_COMMON <= documents < bound for _, documents, _, _ in lexemes):
                known[pieces[place]] = tuple(lexemes)


class RecentMeasures:
    """Measures of the scopes asked lately: those of large scopes for a minute, of small ones for a few seconds."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[float, Measured]] = {}
        self._usual: dict[tuple[UUID, ...], tuple[float, SampledFrequencies]] = {}

    def usual(self, namespaces: Iterable[UUID]) -> SampledFrequencies | None:
        """The usual words of a scope, if they were learned within the hour."""
        until, usual = self._usual.get(tuple(sorted(namespaces)), (0.0, None))
        return usual if monotonic() < until else None

    def learn(self, namespaces: Iterable[UUID], texts: Sequence[str]) -> SampledFrequencies:
        """Learn the usual words of a scope from its oldest texts, which stay while others come."""
        if len(self._usual) >= _MOST_SCOPES:
            self._usual.clear()
        usual = SampledFrequencies.of(texts)
        self._usual[tuple(sorted(namespaces))] = monotonic() + _SECONDS_OF_USUAL, usual
        return usual

    def get(self, key: Key) -> Measured | None:
        """What is known of a scope, unless it is too old."""
        until, measured = self._known.get(key, (0.0, None))
        return measured if monotonic() < until else None

    def put(self, key: Key, measured: Measured) -> None:
        """Remember it."""
        if len(self._known) >= _MOST_SCOPES:
            self._known.clear()
        seconds = _SECONDS if measured.measures.total >= _LARGE else _SECONDS_OF_SMALL
        self._known[key] = (monotonic() + seconds, measured)

    def clear_small(self) -> None:
        """Forget the scopes that what was just stored may have changed."""
        self._known = {key: entry for key, entry in self._known.items() if entry[1].measures.total >= _LARGE}
