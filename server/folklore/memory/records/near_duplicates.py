"""Tell who stores something what is there already that says nearly the same. Reported, never merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import structlog

from folklore.errors import FolkloreError
from folklore.memory.context import MemoryContext
from folklore.model import Similar

log = structlog.get_logger(__name__)

# From this cosine on two texts are near-duplicates. A cosine cannot tell agreement from contradiction.
NEAR = 0.92
# How many of the newest memories of the namespace a batch is compared with: 1.5 million distances at 256 dimensions are
# some 0.3 s of one core for a batch of 500, 7 ms for one memory. Beyond those, only with who shares a rare word.
_NEWEST = 3_000


async def similar(
    library: MemoryContext, namespace: UUID, ids: Sequence[UUID], model: UUID, *, now: datetime
) -> tuple[Mapping[UUID, tuple[Similar, ...]], str | None]:
    """At most three near-duplicates of each memory just stored, the nearest first. One statement, after the commit.

    What fails here, or takes too long, is logged, told in words beside the answer, and costs the report only: the
    memories are stored.
    """
    if not ids:
        return {}, None
    try:
        return await library.embeddings.similar(namespace, ids, model, nearest=NEAR, newest=_NEWEST, now=now), None
    except FolkloreError as error:
        log.warning("similar_not_looked_for", count=len(ids), reason=error.message)
        return {}, unlooked_for(error.message)


def unlooked_for(reason: str) -> str:
    """What is told beside the answer of a store where near-duplicates could not be looked for."""
    return f"All is stored, but whether others say nearly the same could not be looked for: {reason}"
