"""The best candidates in the order of somebody who read question and text together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def reordered(relevance: NDArray[np.float64], scores: NDArray[np.float64]) -> tuple[list[int], NDArray[np.float64]]:
    """Sort the first len(scores) of n candidates by a reranker's scores, any scale; the rest stay behind them.

    `relevance` (n,) best first. Returns the places in their new order, and the relevance in that order: the reranked
    share out the span they held together in proportion to their scores, so that what follows (diversity) weighs them
    as it would have. Equal scores keep the order there was; if all are equal nothing changes.
    """
    count = len(scores)
    if count == 0 or float(scores.max()) == float(scores.min()):
        return list(range(len(relevance))), relevance
    best_first = sorted(range(count), key=lambda place: (-float(scores[place]), place))
    low, high = float(scores.min()), float(scores.max())
    bottom, top = float(relevance[count - 1]), float(relevance[0])
    spread = bottom + (top - bottom) * (scores[best_first] - low) / (high - low)
    return [*best_first, *range(count, len(relevance))], np.concatenate([spread, relevance[count:]])
