"""Make the vectors a model lacks, page by page, while stores and recalls go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from uuid import UUID

import structlog

from folklore.db.stores.embeddings import FIRST, Debts, Owing
from folklore.db.stores.memories import Vectors
from folklore.embedding.protocol import Embedder
from folklore.errors import EmbedderUnavailable
from folklore.memory.models.vectors import vectors_of

log = structlog.get_logger(__name__)

Clock = Callable[[], datetime]
# Told after every page: how many memories were paid by now, and what is going on, for a person.
Tell = Callable[[int, str], None]

_LONGEST_PAUSE = 15.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast to go: memories a page, at most so many a second, how many seconds a failing service is waited for."""

    batch: int = 256
    per_second: float | None = None
    patience: float = 120.0


@dataclass(frozen=True, slots=True)
class Filled:
    """What was done: vectors written, and texts that no vector can be made of (not a single known word)."""

    paid: int
    wordless: int


class Backfill:
    """Fills one model. What is done stays done: broken off at any point, the next run finds only what is still owed."""

    def __init__(self, debts: Debts, embedder: Embedder, model: UUID, *, now: Clock, pace: Pace = Pace()) -> None:
        self._debts = debts
        self._embedder = embedder
        self._model = model
        self._now = now
        self._pace = pace
        self._done = 0

    async def fill(self, namespaces: Sequence[UUID], tell: Tell = lambda _done, _words: None) -> Filled:
        """Make every vector that these namespaces owe.

        Raises EmbedderUnavailable when the service fails for longer than the pace's patience.
        """
        paid = wordless = 0
        began = monotonic()
        for namespace in namespaces:
            after = FIRST
            while page := await self._debts.batch(namespace, self._model, most=self._pace.batch, after=after):
                vectors = await self._patiently(page, tell)
                paid += await self._debts.pay(namespace, page, vectors, self._now())
                wordless += sum(vector is None for vector in vectors.vectors)
                self._done += len(page)
                after = page[-1].id
                tell(self._done, f"{self._done:,} memories, {paid / max(monotonic() - began, 0.01):,.0f} a second")
                if self._pace.per_second is not None:
                    await asyncio.sleep(max(0.0, began + (paid + wordless) / self._pace.per_second - monotonic()))
        return Filled(paid, wordless)

    async def _patiently(self, page: Sequence[Owing], tell: Tell) -> Vectors:
        began, pause = monotonic(), 1.0
        while True:
            try:
                vectors = await vectors_of(self._embedder, [item.content for item in page])
            except EmbedderUnavailable as error:
                if monotonic() - began + pause > self._pace.patience:
                    raise
                log.info("backfill_waits", seconds=pause, reason=error.message)
                tell(self._done, f"waiting: {error.message}")
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if vectors.model != self._model:
                raise EmbedderUnavailable(
                    f"The service answers with another model than the one being filled ({vectors.by.label})."
                )
            return vectors
