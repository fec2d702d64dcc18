"""Near-duplicates must not fill the slots of an answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def maximal_marginal_relevance(
    relevance: NDArray[np.float64],
    similarity: NDArray[np.float32],
    limit: int,
    trade_off: float,
) -> list[int]:
    """Pick `limit` of n candidates, one after the other, by trade_off x relevance - (1 - trade_off) x redundancy.

    `relevance` (n,) best first, any scale: it is divided by its maximum, so that the trade-off means the same for every
    question. `similarity` (n, n) cosines between candidates; redundancy is the greatest one to what was picked already.
    Returns indices in the order picked; equal values go to the lower index, and a trade-off of 1 keeps the order.
    Carbonell and Goldstein, The use of MMR, SIGIR 1998, equation 1.
    """
    count = len(relevance)
    if trade_off >= 1.0 or count <= 1:
        return list(range(min(limit, count)))
    top = float(relevance.max())
    scaled = relevance / top if top > 0 else relevance
    redundancy = np.zeros(count)
    similarity = _beyond_usual(similarity)
    open_ = np.ones(count, dtype=bool)
    picked: list[int] = []
    while len(picked) < min(limit, count):
        value = np.where(open_, trade_off * scaled - (1.0 - trade_off) * redundancy, -np.inf)
        best = int(value.argmax())
        picked.append(best)
        open_[best] = False
        redundancy = np.maximum(redundancy, similarity[best])
    return picked


def _beyond_usual(similarity: NDArray[np.float32]) -> NDArray[np.float32]:
    """Similarity above what is usual among the candidates, stretched to [0, 1].

    All candidates of one question are alike, in some models very much; only what goes beyond that is redundant.
    """
    count = len(similarity)
    usual = (float(similarity.sum()) - float(np.trace(similarity))) / (count * (count - 1))
    usual = min(max(usual, 0.8), 0.99)
    beyond: NDArray[np.float32] = np.clip((similarity - usual) / (1.0 - usual), 0.0, 1.0)
    return beyond
