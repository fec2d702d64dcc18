"""Cache of what recalls read about words and vectors; the same in every view of the memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from cachetools import LRUCache, TTLCache

if TYPE_CHECKING:  # imports numpy
    from folklore.db.stores.recall_words import Analysed

_SECONDS, _SCOPES = 60.0, 64
# Words of fresh memories are packed at most once in so many seconds.
_PACKED_EVERY = 10.0
_PIECES = 20_000

# A piece of a question, and the languages in which it is read.
ReadPiece = tuple[tuple[str, ...], str]


@dataclass(frozen=True, slots=True)
class StatisticsCache:
    """Lexemes of pieces of questions, which depend on nothing else, and for a minute what searches of vectors need.

    `totals` are the memories of recent scopes. `vectors` has, by scope and model, about how many vectors the HNSW index
    has and how many of them are in scope.
    """

    packed: TTLCache[str, bool] = field(default_factory=lambda: TTLCache(1, _PACKED_EVERY))
    pieces: LRUCache[ReadPiece, Sequence[Analysed]] = field(default_factory=lambda: LRUCache(_PIECES))
    totals: TTLCache[object, int] = field(default_factory=lambda: TTLCache(_SCOPES, _SECONDS))
    vectors: TTLCache[tuple[object, UUID], tuple[int, int]] = field(default_factory=lambda: TTLCache(_SCOPES, _SECONDS))
