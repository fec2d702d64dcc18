"""Diversity: a series of alike texts must not fill an answer, nor may the second of two be lost."""

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
    """Pick `limit` of n candidates, the best first, each by what it adds to those picked before it.

    value = relevance x trade_off ^ redundancy

    Redundancy is the number of picked texts that this one is like; one that is partly like it counts in part. Maximal
    marginal relevance (Carbonell and Goldstein, SIGIR 1998, equation 1) subtracts a penalty instead, which puts a text
    of middling relevance behind the weakest one. A decision and its reversal have nearly the same vector: here the
    second of two keeps its place before every text of less than trade_off x its relevance, while a long series of
    alike texts moves back step by step.

    `relevance` (n,) on any scale; `similarity` (n, n), cosines between candidates. Returns (index, redundancy when it
    was picked) in the order picked; equal values go to the lower index. A trade-off of 1 keeps the order.
    """
    count = len(relevance)
    if trade_off >= 1.0 or count <= 1:
        return [(place, 0.0) for place in range(min(limit, count))]
    similarity = _duplication(similarity)
    if not _any_off_diagonal(similarity) and bool((relevance[:-1] >= relevance[1:]).all()):
        return [(place, 0.0) for place in range(min(limit, count))]  # most answers repeat nothing
    redundancy = np.zeros(count)
    open_ = np.ones(count, dtype=bool)
    picked: list[tuple[int, float]] = []
    while len(picked) < min(limit, count):
        value = np.where(open_, relevance * trade_off**redundancy, -np.inf)
        best = int(value.argmax())
        picked.append((best, float(redundancy[best])))
        open_[best] = False
        redundancy += similarity[best]
    return picked


def _any_off_diagonal(similarity: NDArray[np.float32]) -> bool:
    """Return True if anything off the diagonal is above 0, in a symmetric matrix of values that are never below 0."""
    return int(np.count_nonzero(similarity)) > int(np.count_nonzero(similarity.diagonal()))


def _duplication(similarity: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return how far two texts are alike: 0 up to a cosine of 0.95, 1 from 0.98 on.

    Light rewordings lie at 0.94 to 0.99 in the models measured, different facts on one subject below; to count plain
    likeness as redundancy cost up to 1.4 points of R@10 where alike texts are different answers (code).
    """
    same: NDArray[np.float32] = np.clip((similarity - 0.95) / 0.03, 0.0, 1.0)
    return same
