"""Backfill: make pending embeddings batch by batch, while stores and recalls go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from time import monotonic
from uuid import UUID

from folklore.db.stores.embeddings import FIRST, Embeddings
from folklore.db.stores.memories import Vectors
from folklore.embedding import Embedder
from folklore.errors import EmbedderUnavailable
from folklore.log import get_logger
from folklore.memory.context.active_model import embed_texts
from folklore.text.cues import as_text

log = get_logger(__name__)

Clock = Callable[[], datetime]
# Receives after every batch the number of memories so far.
Report = Callable[[int], None]

_LONGEST_PAUSE = 15.0


@dataclass(frozen=True, slots=True)
class Pace:
    """Memories in a batch, at most so many a second, and for how many seconds a failing service is tried again."""

    batch: int = 256
    per_second: float | None = None
    patience: float = 120.0


@dataclass(frozen=True, slots=True)
class Filled:
    """Counts of a backfill: memories read, embeddings written, texts without a word that the model knows."""

    memories: int = 0
    embeddings: int = 0
    wordless: int = 0

    @property
    def skipped(self) -> int:
        """Memories that were changed or locked meanwhile; they stay pending."""
        return self.memories - self.embeddings - self.wordless

    def __add__(self, more: Filled) -> Filled:
        return Filled(
            self.memories + more.memories,
            self.embeddings + more.embeddings,
            self.wordless + more.wordless,
        )


@dataclass(slots=True)
class Backfill:
    """Makes the pending embeddings of one model. Every batch is committed; a new run finds only what is pending."""

    embeddings: Embeddings
    embedder: Embedder
    model: UUID
    _: KW_ONLY
    now: Clock
    pace: Pace = Pace()
    report: Report = lambda _done: None
    _done: int = field(default=0, init=False)

    async def fill(self, namespaces: Sequence[UUID]) -> Filled:
        """Make every pending embedding of these namespaces at the configured pace and report progress.

        Raises EmbedderUnavailable if the service fails for longer than the pace's patience.
        """
        total = Filled()
        began = monotonic()
        async for filled in self.batches(namespaces):
            total += filled
            self.report(self._done)
            if self.pace.per_second is not None:
                end = began + (total.embeddings + total.wordless) / self.pace.per_second
                await asyncio.sleep(max(0.0, end - monotonic()))
        return total

    async def batches(self, namespaces: Sequence[UUID]) -> AsyncIterator[Filled]:
        """Make the pending embeddings of these namespaces; yield the counts of each batch after its commit."""
        most = self.pace.batch
        texts = self.embeddings
        for namespace in namespaces:
            cursor = FIRST
            while pending := await texts.pending(
                namespace=namespace, model=self.model, most=most, after=cursor
            ):
                vectors = await self._embed(
                    [memory.content for memory in pending],
                    [memory.cues for memory in pending],
                )
                count = await self.embeddings.backfill(
                    namespace, pending, vectors, self.now()
                )
                self._done += len(pending)
                yield Filled(
                    len(pending),
                    count,
                    sum(vector is None for vector in vectors.vectors),
                )
                if len(pending) < most:
                    break
                cursor = pending[-1].id
            await self._make_cues(namespace)

    async def _make_cues(self, namespace: UUID) -> None:
        """Make the vectors of cues that changed since the embeddings of their memories were made."""
        most = self.pace.batch
        cursor = FIRST
        while pending := await self.embeddings.cues_pending(
            namespace=namespace, model=self.model, most=most, after=cursor
        ):
            vectors = await self._embed([as_text(memory.cues) for memory in pending])
            await self.embeddings.write_cues(namespace, pending, vectors)
            cursor = pending[-1].id

    async def _embed(
        self, texts: Sequence[str], cues: Sequence[Sequence[str]] = ()
    ) -> Vectors:
        began = monotonic()
        pause = 1.0
        while True:
            try:
                vectors = await embed_texts(self.embedder, texts, cues)
            except EmbedderUnavailable as error:
                if monotonic() - began + pause > self.pace.patience:
                    raise
                log.info("backfill_waiting", seconds=pause, reason=error.message)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if vectors.model != self.model:
                raise EmbedderUnavailable(
                    f"The service answers with {vectors.by.label}, which is not the model being filled."
                )
            return vectors
