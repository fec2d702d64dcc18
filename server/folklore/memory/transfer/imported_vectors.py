"""Imported vectors: a memory that brings a vector of the active model need not be embedded again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING
from uuid import UUID

from folklore.contract.transfer import Report
from folklore.db.stores.memories import Embedded, Vectors
from folklore.db.stores.models import KnownModel
from folklore.db.stores.transfer import (
    HALF_BYTES,
    MODEL_IDENTITY,
    ModelVector,
    TransferredMemory,
    Transfers,
)
from folklore.embedding import passage_rule
from folklore.errors import EmbedderUnavailable
from folklore.lazy import NDArray, numpy as np
from folklore.memory.context import MemoryContext
from folklore.memory.context.active_model import model_of
from folklore.memory.records.store import embed
from folklore.text.passages import passages

if TYPE_CHECKING:
    Row = NDArray[np.float32]

# Largest difference of a vector's length from 1. Rounding to half floats changes that of a unit vector by under 0.1 %.
_TOLERANCE = 0.01


class ImportedVectors:
    """Chooses between the vectors that imported memories bring and the embedder."""

    def __init__(
        self, memory: MemoryContext, transfers: Transfers, report: Report
    ) -> None:
        self._memory = memory
        self._transfers = transfers
        self._report = report
        self._model: KnownModel | None = None

    async def without_unusable(
        self, batch: Sequence[TransferredMemory]
    ) -> list[TransferredMemory]:
        """Remove and report the vectors that cannot be used. At most one statement.

        A usable vector is of the active model and its dimensions, finite, and of length 1 within 1 %. Those of a long
        text are usable if it has passages, and all of them are. That of cues counts with them. If nothing was ever
        embedded, the embedder's model counts, which is about to become the active one.
        """
        if all(memory.vector is None for memory in batch):
            return list(batch)
        model = self._model = await self._active_model()
        if model is None:
            usable = frozenset[int]()
        else:
            usable = _usable(batch, model)
        for memory in batch:
            if memory.vector is not None and memory.line not in usable:
                self._report.ignore("embedding", memory.place or f"line {memory.line}")
        return [
            memory if memory.line in usable else replace(memory, vector=None)
            for memory in batch
        ]

    async def vectors(
        self, batch: Sequence[TransferredMemory]
    ) -> tuple[Vectors | None, frozenset[UUID]]:
        """Return the vectors of a batch without unusable ones, and the ids whose embedding is pending.

        Embeds only the texts of memories without a vector, and none if that would take long.
        """
        without = [memory for memory in batch if memory.vector is None]
        computed = await self._embedded(without)
        pending = frozenset(memory.id for memory in without if computed is None)
        if self._model is None or len(without) == len(batch):
            return computed, pending
        # another model became active meanwhile
        if computed is not None and computed.model != self._model.id:
            return await self.vectors(
                [replace(memory, vector=None) for memory in batch]
            )
        return Vectors(self._model, _merge(batch, computed)), pending

    async def _embedded(self, memories: Sequence[TransferredMemory]) -> Vectors | None:
        if self._memory.embeds_later or not memories:
            return None
        drafts = [memory.draft for memory in memories]
        return await embed(
            self._memory,
            [draft.content for draft in drafts],
            [draft.cues for draft in drafts],
        )

    async def _active_model(self) -> KnownModel | None:
        if (model := await self._transfers.active_model()) is not None:
            return model
        await self._memory.active_model.refresh()
        if (embedder := self._memory.embedder) is None:
            return None
        try:
            return await model_of(embedder)
        except EmbedderUnavailable:
            return None


def _merge(
    batch: Sequence[TransferredMemory], embedded: Vectors | None
) -> list[Embedded | None]:
    """Return the vectors of a batch in order: its own, and the next embedded one for a memory without."""
    rest = repeat(None) if embedded is None else iter(embedded.vectors)
    return [
        next(rest) if memory.vector is None else _embedded(memory.vector)
        for memory in batch
    ]


def _embedded(item: ModelVector) -> Embedded:
    vector, *passages = _rows([item.vector, *_of_passages(item)])
    ranges = [(begin, end) for begin, end, _ in item.passages]
    cues = None if item.cues is None else _rows([item.cues])[0]
    return Embedded(vector, ranges, passages, cues)


def _all_of(item: ModelVector) -> list[bytes]:
    of_cues = [] if item.cues is None else [item.cues]
    return [item.vector, *_of_passages(item), *of_cues]


def _of_passages(item: ModelVector) -> list[bytes]:
    return [vector for _, _, vector in item.passages]


def _usable(batch: Sequence[TransferredMemory], model: KnownModel) -> frozenset[int]:
    rows = [(memory.line, row) for memory in batch for row in _fitting(memory, model)]
    if not rows:
        return frozenset()
    lines, vectors = zip(*rows, strict=True)
    # a vector with NaN or infinity has no length near 1 either
    with np.errstate(invalid="ignore"):
        lengths = np.linalg.norm(_rows(vectors), axis=1)
    wrong = {
        line
        for line, length in zip(lines, lengths, strict=True)
        if not abs(length - 1) <= _TOLERANCE
    }
    return frozenset(lines) - wrong


def _fitting(memory: TransferredMemory, model: KnownModel) -> list[bytes]:
    """Return the vectors of a memory if they are of this model, and of the passages that it makes of the text."""
    item = memory.vector
    content = memory.draft.content
    if item is None or _identity(item) != _identity(model):
        return []
    fits = all(begin < end <= len(content) for begin, end, _ in item.passages)
    if not item.passages:
        fits = not passages(content, *passage_rule(model.name, len(content)))
    vectors = _all_of(item)
    if fits and all(len(row) == model.dimensions * HALF_BYTES for row in vectors):
        return vectors
    return []


def _identity(item: ModelVector | KnownModel) -> list[object]:
    return [getattr(item, name) for name in MODEL_IDENTITY]


def _rows(vectors: Sequence[bytes]) -> Row:
    """Return vectors of one dimension as rows (n, dimensions)."""
    halves = np.frombuffer(b"".join(vectors), dtype="<f2")
    return halves.astype(np.float32).reshape(len(vectors), -1)
