"""Reciprocal rank fusion, ties, and the order of a reranker."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from folklore.lazy import NDArray, numpy as np
from folklore.ranking.numbers import ALONE

Id = TypeVar("Id", bound=Hashable)
Ordered = TypeVar("Ordered", UUID, str, int)


def reciprocal_rank_fusion(
    lists: Sequence[tuple[float, Sequence[Id]]], k: float
) -> dict[Id, float]:
    """Return for each id the sum over lists of weight / (k + rank), with ranks from 1.

    `lists` holds (weight, ids best first). Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and
    individual rank learning methods, SIGIR 2009 (there k = 60 and every weight 1).
    """
    scores: dict[Id, float] = {}
    for weight, ids in lists:
        for rank, id_ in enumerate(ids, start=1):
            scores[id_] = scores.get(id_, 0.0) + weight / (k + rank)
    return scores


def reranked(
    relevance: NDArray[np.float64], scores: NDArray[np.float64]
) -> tuple[list[int], NDArray[np.float64]]:
    """Sort the first len(scores) of n candidates by a reranker's scores of any scale; the others stay behind them.

    `relevance` (n,) is best first. Returns the indexes in their new order, and the relevance in that order: the reranked
    candidates divide their former range in proportion to their scores, so that diversity treats them as before. Equal
    scores keep their order; if all are equal, nothing changes.
    """
    count = len(scores)
    if count == 0 or float(scores.max()) == float(scores.min()):
        return list(range(len(relevance))), relevance

    # A stable sort keeps the order of equal scores.
    order = np.argsort(-scores, kind="stable").tolist()
    low = float(scores.min())
    high = float(scores.max())
    shares = (scores[order] - low) / (high - low)
    top = float(relevance[0])
    bottom = float(relevance[count - 1])
    of_reranked = bottom + (top - bottom) * shares

    others = range(count, len(relevance))
    return [*order, *others], np.concatenate([of_reranked, relevance[count:]])


def leads(relevance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the relevance (n,) of each candidate minus the greatest one of the others; ALONE without others."""
    if len(relevance) < 2:
        return np.full(len(relevance), ALONE)
    second, first = np.sort(relevance)[-2:]
    best_other = np.where(relevance < first, first, second)
    lead: NDArray[np.float64] = relevance - best_other
    return lead


def behind_best(
    relevance: NDArray[np.float64], cued: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the relevance (n,) of each candidate minus the greatest one: at most 0.

    A candidate with cues is compared with the best of those with cues, any other with the best of
    all: that a text without cues ranks first says little against one with cues.
    """
    best = np.full(len(relevance), relevance.max(initial=-np.inf))
    best[cued] = relevance[cued].max(initial=-np.inf)
    behind: NDArray[np.float64] = relevance - best
    return behind


def best_first(
    scores: Mapping[Ordered, float], second: Mapping[Ordered, float]
) -> list[Ordered]:
    """Return the ids by descending score, then second score, then ascending id: one question has one answer."""
    return sorted(scores, key=lambda id_: (-scores[id_], -second.get(id_, 0.0), id_))
