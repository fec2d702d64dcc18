"""Measures and samples of a scope, remembered for a short time: every question needs them, and they change slowly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Generic, TypeVar
from uuid import UUID

from folklore.db.stores.recall_rows import Lexemes, Measures, Sample
from folklore.ranking.length import LengthLine
from folklore.text.words import SampledFrequencies

Key = TypeVar("Key")
Value = TypeVar("Value")

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


class _Kept(Generic[Key, Value]):
    """Values that are forgotten after some time."""

    def __init__(self) -> None:
        self._entries: dict[Key, tuple[float, Value]] = {}

    def get(self, key: Key) -> Value | None:
        """Return the value, unless it is too old."""
        entry = self._entries.get(key)
        return entry[1] if entry is not None and monotonic() < entry[0] else None

    def put(self, key: Key, value: Value, seconds: float) -> None:
        """Keep the value for some seconds."""
        if len(self._entries) >= _MOST_SCOPES:
            self._entries.clear()
        self._entries[key] = (monotonic() + seconds, value)

    def drop(self, unwanted: Callable[[Value], bool]) -> None:
        """Forget some of the values."""
        self._entries = {key: entry for key, entry in self._entries.items() if not unwanted(entry[1])}


@dataclass(frozen=True, slots=True)
class Sampled:
    """The length line of a scope in one model, from a sample of its vectors, and its usual words if it holds many."""

    line: LengthLine | None
    usual: SampledFrequencies | None
    indexed: bool
    many: bool

    @classmethod
    def of(cls, sample: Sample, usual: SampledFrequencies | None) -> Sampled:
        """Learn from a sample, which is not kept."""
        line = LengthLine.through(sample.vectors, sample.sizes)
        return cls(line, usual if sample.many else None, sample.indexed, sample.many)


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of one scope, and how common words read there."""

    measures: Measures
    _common: dict[Way, dict[str, Read]] = field(default_factory=dict)

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
    """Measures and samples of the scopes of recent questions: of large ones for a minute, of small ones for seconds."""

    def __init__(self) -> None:
        self._measured: _Kept[frozenset[UUID], Measured] = _Kept()
        self._sampled: _Kept[tuple[frozenset[UUID], UUID], Sampled] = _Kept()
        self._usual: _Kept[frozenset[UUID], SampledFrequencies] = _Kept()

    def get(self, namespaces: Iterable[UUID]) -> Measured | None:
        """Return the measures of a scope, unless they are too old."""
        return self._measured.get(frozenset(namespaces))

    def put(self, namespaces: Iterable[UUID], measured: Measured) -> None:
        """Remember the measures of a scope."""
        self._measured.put(frozenset(namespaces), measured, _seconds(many=measured.measures.total >= _LARGE))

    def sampled(self, namespaces: Iterable[UUID], model: UUID) -> Sampled | None:
        """Return what the samples of a scope said in a model, unless it is too old."""
        return self._sampled.get((frozenset(namespaces), model))

    def put_sampled(self, namespaces: Iterable[UUID], model: UUID, sampled: Sampled) -> None:
        """Remember what the samples of a scope said in a model."""
        self._sampled.put((frozenset(namespaces), model), sampled, _seconds(many=sampled.many))

    def usual(self, namespaces: Iterable[UUID]) -> SampledFrequencies | None:
        """Return the usual words of a scope, if they were learned within the hour."""
        return self._usual.get(frozenset(namespaces))

    def learn(self, namespaces: Iterable[UUID], texts: Sequence[str]) -> SampledFrequencies:
        """Learn the usual words of a scope from its oldest texts, which stay while others come."""
        usual = SampledFrequencies.of(texts)
        self._usual.put(frozenset(namespaces), usual, _SECONDS_OF_USUAL)
        return usual

    def clear_small(self) -> None:
        """Forget the scopes that a store may just have changed."""
        self._measured.drop(lambda measured: measured.measures.total < _LARGE)
        self._sampled.drop(lambda sampled: not sampled.many)


def _seconds(*, many: bool) -> float:
    return _SECONDS if many else _SECONDS_OF_SMALL
