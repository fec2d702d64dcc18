"""Embeddings of memories that are stored or changed: at once, or after the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from folklore.db.stores.embeddings import PendingMemory
from folklore.db.stores.memories import PreparedMemory, Vectors
from folklore.errors import EmbedderUnavailable, FolkloreError
from folklore.log import get_logger
from folklore.memory.context import MemoryContext
from folklore.memory.context.active_model import embed_texts

log = get_logger(__name__)


async def _embed_batch(
    memory: MemoryContext, batch: Sequence[PreparedMemory]
) -> Vectors | None:
    # Each text once. Of equal ones the first is stored, so that its cues are embedded.
    drafts = {item.digest: item.draft for item in reversed(batch)}
    vectors = await embed(
        memory,
        [draft.content for draft in drafts.values()],
        [draft.cues for draft in drafts.values()],
    )
    if vectors is None:
        return None
    row_of = {text: row for row, text in enumerate(drafts)}
    return vectors.select(row_of[item.digest] for item in batch)


async def embed_soon(
    memory: MemoryContext, items: Sequence[PreparedMemory]
) -> tuple[Vectors | None, asyncio.Task[Vectors | None] | None]:
    """Embed a batch. If that takes longer than a store waits, return the task that goes on.

    The bundled model, which embeds a text in a tenth of a millisecond, is always waited for.
    """
    if not memory.embeds_later:
        return await _embed_batch(memory, items), None
    task = asyncio.create_task(_embed_batch(memory, items), name="folklore-embed")
    try:
        done, _ = await asyncio.wait({task}, timeout=memory.embedding_wait)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return task.result(), None
    return None, task


async def embed_later(
    memory: MemoryContext,
    namespace: UUID,
    items: Sequence[PreparedMemory],
    new: Sequence[UUID],
    embedding_task: asyncio.Task[Vectors | None],
    now: datetime,
) -> None:
    """Write the embeddings of stored memories when they are made; those that fail stay pending for the job."""
    try:
        vectors = await embedding_task
        if vectors is None:
            return
        rows = []
        pending = []
        for row, item in enumerate(items):
            if item.id in new:
                draft = item.draft
                rows.append(row)
                pending.append(
                    PendingMemory(item.id, draft.content, item.digest, draft.cues)
                )
        await memory.root.embeddings.backfill(
            namespace, pending, vectors.select(rows), now
        )
        memory.changed()
    except FolkloreError as error:
        log.warning("embeddings_left_pending", count=len(new), reason=error.message)


async def embed(
    memory: MemoryContext, texts: Sequence[str], cues: Sequence[Sequence[str]] = ()
) -> Vectors | None:
    """Embed texts, with the cues of each if given, by the active model.

    None without a reachable one: the embeddings are pending.
    """
    await memory.active_model.refresh()
    embedder = memory.embedder
    if embedder is None:
        return None
    try:
        return await embed_texts(embedder, texts, cues)
    except EmbedderUnavailable as error:
        log.warning("stored_without_vectors", count=len(texts), reason=error.message)
        return None
