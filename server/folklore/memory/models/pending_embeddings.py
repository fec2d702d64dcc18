"""Pay the embedding debt: memories that were stored while the model was down, or before it was chosen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.stores.embeddings import FIRST, Debts
from folklore.embedding.protocol import Embedder
from folklore.memory.models.vectors import vectors_of

# Texts embedded in one call and written in one transaction: about 50 ms of the bundled model.
BATCH = 64


@dataclass(frozen=True, slots=True)
class Paid:
    """What became of one batch: vectors written, texts in which the model knows no word, and the rest, left."""

    memories: int
    written: int
    wordless: int


async def pay(
    debts: Debts, embedder: Embedder, namespaces: Sequence[UUID], *, now: datetime, batch: int = BATCH
) -> AsyncIterator[Paid]:
    """Embed and write batch by batch; each is committed before it is told, so that stopping loses nothing.

    What is left owes still and is found by the next run. Raises EmbedderUnavailable, DatabaseUnavailable.
    """
    model = await embedder.model()
    for namespace in namespaces:
        after = FIRST
        while owing := await debts.batch(namespace, model.id, after=after, most=batch):
            after = owing[-1].id
            made = await vectors_of(embedder, [item.content for item in owing])
            written = await debts.pay(namespace, owing, made, now)
            yield Paid(len(owing), written, sum(vector is None for vector in made.vectors))
            if len(owing) < batch:
                break
