"""Similar memories: stored memories whose text is similar to a new one. They are reported, never merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import structlog

from folklore.errors import FolkloreError
from folklore.memory.context import RequestContext
from folklore.model import Similar

log = structlog.get_logger(__name__)

# Least cosine of two similar texts. A cosine does not distinguish agreement from contradiction.
_NEAREST = 0.92
# The newest memories of the namespace that a batch is compared with: 1.5 million distances at 256 dimensions take about
# 0.3 s of one core for a batch of 500, 7 ms for one memory. Older ones are compared where they share a rare word.
_NEWEST = 3_000
_UNKNOWN = "Everything is stored, but similar memories could not be looked up:"


async def find_similar(
    context: RequestContext, namespace: UUID, ids: Sequence[UUID], model: UUID | None
) -> tuple[Mapping[UUID, tuple[Similar, ...]], list[str]]:
    """Return at most three similar memories for each new one, the nearest first, or a note why they are unknown.

    One statement, after the commit: an error here is logged and noted, and the memories are stored all the same.
    Without `model` the new memories have no embeddings yet.
    """
    memory = context.memory
    if not ids or (model is None and memory.embedder is None):
        return {}, []
    if model is None:
        return {}, [f"{_UNKNOWN} the embedding model is unavailable."]
    try:
        found = await memory.embeddings.similar(
            namespace, ids, model, nearest=_NEAREST, newest=_NEWEST, now=context.now
        )
    except FolkloreError as error:
        log.warning("similar_memories_unknown", count=len(ids), reason=error.message)
        return {}, [f"{_UNKNOWN} {error.message}"]
    return found, []
