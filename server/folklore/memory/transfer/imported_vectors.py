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
from folklore.memory.records.embedding import embed
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
        self._model = await self._active_model()
        usable = frozenset[int]()
        if self._model is not None:
            usable = _usable(batch, self._model)
        memories = []
        for memory in batch:
            if memory.vector is not None and memory.line not in usable:
                self._report.ignore("embedding", memory.place or f"line {memory.line}")
                memory = replace(memory, vector=None)
            memories.append(memory)
        return memories

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
            bare = [replace(memory, vector=None) for memory in batch]
            return await self.vectors(bare)
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
        model = await self._transfers.active_model()
        if model is not None:
            return model
        await self._memory.active_model.refresh()
        if self._memory.embedder is None:
            return None
        try:
            return await model_of(self._memory.embedder)
        except EmbedderUnavailable:
            return None


def _merge(
    batch: Sequence[TransferredMemory], embedded: Vectors | None
) -> list[Embedded | None]:
    """Return the vectors of a batch in order: its own, and the next embedded one for a memory without."""
    following = repeat(None) if embedded is None else iter(embedded.vectors)
    vectors: list[Embedded | None] = []
    for memory in batch:
        if memory.vector is None:
            vectors.append(next(following))
        else:
            vectors.append(_embedded(memory.vector))
    return vectors


def _embedded(vectors: ModelVector) -> Embedded:
    vector, *of_passages = _rows([vectors.vector, *_of_passages(vectors)])
    ranges = [(begin, end) for begin, end, _ in vectors.passages]
    cues = None if vectors.cues is None else _rows([vectors.cues])[0]
    return Embedded(vector, ranges, of_passages, cues)


def _of_passages(vectors: ModelVector) -> list[bytes]:
    return [vector for _, _, vector in vectors.passages]


def _usable(batch: Sequence[TransferredMemory], model: KnownModel) -> frozenset[int]:
    """Return the lines whose vectors can be used."""
    lines = []
    rows: list[bytes] = []
    for memory in batch:
        fitting = _fitting(memory, model)
        lines += [memory.line] * len(fitting)
        rows += fitting
    if not rows:
        return frozenset()
    # a vector with NaN or infinity has no length near 1 either
    with np.errstate(invalid="ignore"):
        lengths = np.linalg.norm(_rows(rows), axis=1)
    usable = set(lines)
    for line, length in zip(lines, lengths, strict=True):
        if not abs(length - 1) <= _TOLERANCE:
            usable.discard(line)
    return frozenset(usable)


def _fitting(memory: TransferredMemory, model: KnownModel) -> list[bytes]:
    """Return the vectors of a memory if they are of this model, and of the passages that it makes of the text."""
    vectors = memory.vector
    content = memory.draft.content
    if vectors is None or _identity(vectors) != _identity(model):
        return []
    if not vectors.passages and passages(
        content, *passage_rule(model.name, len(content))
    ):
        return []
    for begin, end, _ in vectors.passages:
        if not begin < end <= len(content):
            return []
    rows = [vectors.vector, *_of_passages(vectors)]
    if vectors.cues is not None:
        rows.append(vectors.cues)
    if any(len(row) != model.dimensions * HALF_BYTES for row in rows):
        return []
    return rows


def _identity(model: ModelVector | KnownModel) -> list[object]:
    return [getattr(model, name) for name in MODEL_IDENTITY]


def _rows(vectors: Sequence[bytes]) -> Row:
    """Return vectors of one dimension as rows (n, dimensions)."""
    halves = np.frombuffer(b"".join(vectors), dtype="<f2")
    return halves.astype(np.float32).reshape(len(vectors), -1)
