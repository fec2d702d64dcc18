"""Search by keyword alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from folklore.memory.context import MemoryContext
from folklore.memory.recall.pipeline import RecallRequest, recall
from folklore.model import Answer, Filters
from folklore.ranking.weights import Ranking


async def search(
    library: MemoryContext,
    query: str,
    *,
    namespaces: Sequence[str] = (),
    limit: int = 10,
    filters: Filters = Filters(),
    cursor: str | None = None,
    now: datetime,
) -> Answer:
    """Memories that hold the words or phrases of the query, the rarest words counting most.

    Neighbours and relations lend nothing.
    """
    request = RecallRequest(
        query=query,
        namespaces=namespaces,
        limit=limit,
        filters=filters,
        ranking=Ranking(dense=0.0, neighbours=(), relations=0.0, mmr_lambda=1.0),
        branches=("keyword",),
        literal=True,
        cursor=cursor,
    )
    return await recall(library, request, now=now)
