"""Ask a reranker about the best of the fused order; one that fails leaves it as it was, and the answer says so."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray

from folklore.db.stores.recall_rows import Candidate
from folklore.embedding.protocol import Reranker
from folklore.errors import RerankerUnavailable
from folklore.model import Degraded
from folklore.ranking.rerank import reordered
from folklore.text.clean import clean

_READ_OF_QUESTION = 4_000

log = structlog.get_logger(__name__)


async def reranked(
    reranker: Reranker,
    question: str,
    order: list[UUID],
    relevance: NDArray[np.float64],
    candidates: Mapping[UUID, Candidate],
    degraded: list[Degraded],
) -> tuple[list[UUID], NDArray[np.float64]]:
    """The candidates (n,) best first and their relevance, the first `reranker.pool` of them in its order.

    Before diversity, not after: a reranker judges each text alone and would bring duplicates back together.
    """
    question = clean(question[:_READ_OF_QUESTION]).text.strip()
    texts = [candidates[id_].content for id_ in order[: reranker.pool]]
    try:
        scores = await reranker.scores(question, texts)
    except RerankerUnavailable as error:
        log.warning("not_reranked", reason=error.message)
        degraded.append(Degraded("rerank", error.message))
        return order, relevance
    places, relevance = reordered(relevance, scores)
    return [order[place] for place in places], relevance
