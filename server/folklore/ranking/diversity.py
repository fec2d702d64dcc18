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
    """As `picked_with_redundancy`, the indices alone."""
    return [place for place, _ in picked_with_redundancy(relevance, similarity, limit, trade_off)]


def picked_with_redundancy(
    relevance: NDArray[np.float64],
    similarity: NDArray[np.float32],
    limit: int,
    trade_off: float,
) -> list[tuple[int, float]]:
    """Pick `limit` of n candidates, one after the other, by what each adds to those picked before.

    Value = trade_off x relevance x (1 - redundancy) - (1 - trade_off) x redundancy: maximal marginal relevance
    (Carbonell and Goldstein, SIGIR 1998, equation 1), where in addition a duplicate's own relevance counts for nothing.
    `relevance` (n,) best first, any scale: it is divided by its maximum, so that the trade-off means the same for every
    question. `similarity` (n, n) cosines between candidates; redundancy follows from the greatest one to what was
    picked. Returns (index, redundancy in [0, 1] when it was picked) in the order picked; equal values go to the lower
    index; a trade-off of 1 keeps the order.
    """
    count = len(relevance)
    if trade_off >= 1.0 or count <= 1:
        return [(place, 0.0) for place in range(min(limit, count))]
    similarity = _duplication(similarity)
    if not _any_beside_itself(similarity) and bool((relevance[:-1] >= relevance[1:]).all()):
        return [(place, 0.0) for place in range(min(limit, count))]  # nothing repeats anything, as mostly
    top = float(relevance.max())
    scaled = relevance / top if top > 0 else relevance
    redundancy = np.zeros(count)
    open_ = np.ones(count, dtype=bool)
    picked: list[tuple[int, float]] = []
    while len(picked) < min(limit, count):
        marginal = trade_off * scaled * (1.0 - redundancy) - (1.0 - trade_off) * redundancy
        # What has no relevance at all is no answer, however new it is: it comes after the last duplicate.
        value = np.where(open_, np.where(scaled > 0, marginal, scaled - 1.0), -np.inf)
        best = int(value.argmax())
        picked.append((best, float(redundancy[best])))
        open_[best] = False
        redundancy = np.maximum(redundancy, similarity[best])
    return picked


def _any_beside_itself(similarity: NDArray[np.float32]) -> bool:
    """Whether anything is above 0 off the diagonal of a symmetric matrix whose diagonal is never below 0."""
    return int(np.count_nonzero(similarity)) > int(np.count_nonzero(similarity.diagonal()))


def _duplication(similarity: NDArray[np.float32]) -> NDArray[np.float32]:
    """How far two texts are the same: 0 below a cosine of 0.95, 1 from 0.98 on.

    Light rewordings lie at 0.94 to 0.99 in the models measured, different facts on one subject below; to count plain
    likeness as redundancy cost up to 1.4 points of R@10 where alike texts are different answers (code).
    """
    same: NDArray[np.float32] = np.clip((similarity - 0.95) / 0.03, 0.0, 1.0)
    return same
