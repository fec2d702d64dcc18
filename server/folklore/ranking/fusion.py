"""Fusion of the branches' lists into one score for each candidate, and its spread to neighbours."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar
from uuid import UUID

from folklore.lazy import NDArray
from folklore.lazy import numpy as np
from folklore.ranking.weights import Branch, Ranking

Id = TypeVar("Id", bound=Hashable)
Ordered = TypeVar("Ordered", UUID, str, int)

# The dense branch counts by half more where the best keyword hit covers nothing of the question.
_UNCOVERED = 0.5


@dataclass(frozen=True, slots=True)
class BranchList(Generic[Ordered]):
    """The list of one branch, best first.

    `scores` order it. `similarities` are absolute, 0 to 1: the cosine, or the score as a share of the question's best
    times the part of the question that this one covers. `weight` is that of its standardised scores.
    """

    branch: Branch
    ids: Sequence[Ordered]
    scores: Sequence[float]
    weight: float
    similarities: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Fused(Generic[Ordered]):
    """The candidates of all branches, best first, with their own score in [0, 1] and its parts."""

    order: Sequence[Ordered]
    rrf: Mapping[Ordered, float]
    standardised: Mapping[Branch, Mapping[Ordered, float]]
    own: Mapping[Ordered, float]


@dataclass(frozen=True, slots=True)
class Scored(Generic[Ordered]):
    """Candidates and their neighbours, best first: relevance = (own * signals + spread) * nearness."""

    order: Sequence[Ordered]
    relevance: Mapping[Ordered, float]
    spread: Mapping[Ordered, float]


def reciprocal_rank_fusion(lists: Sequence[tuple[float, Sequence[Id]]], k: float) -> dict[Id, float]:
    """Return for each id the sum over lists of weight / (k + rank), with ranks from 1.

    `lists` holds (weight, ids best first). Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and
    individual rank learning methods, SIGIR 2009 (there k = 60 and every weight 1).
    """
    scores: dict[Id, float] = {}
    for weight, ids in lists:
        for rank, id_ in enumerate(ids, start=1):
            scores[id_] = scores.get(id_, 0.0) + weight / (k + rank)
    return scores


def standardised_scores(scores: Sequence[float], fetched: int) -> list[float]:
    """Return max(score - cut, 0) / (mean of these over `fetched` places) for each score of a branch.

    `scores` are best first, relative to the mean of the scope. The cut is the last of `fetched` scores; a shorter list
    is cut at 0, the mean. Branches of any scale become comparable: for an exponential tail the unit is its mean.
    """
    cut = max(scores[-1], 0.0) if len(scores) >= fetched else 0.0
    excess = [max(score - cut, 0.0) for score in scores[:fetched]]
    mean = sum(excess) / fetched
    return [value / mean if mean > 1e-12 else 0.0 for value in excess]


def dense_weight(base: float, coverage: float) -> float:
    """Return the weight of the dense branch where the best keyword hit covers this share of the question."""
    return base * (1.0 + _UNCOVERED * (1.0 - min(max(coverage, 0.0), 1.0)))


def top_score_significance(best: float, deviation: float, total: int, times: float) -> float:
    """Return min(1, (best / chance)²), with chance = times * deviation * sqrt(2 ln total).

    The best of `total` scores without meaning, of mean 0, is about deviation * sqrt(2 ln total).
    """
    chance = math.sqrt(2.0 * math.log(max(total, 2))) * deviation * times
    return 1.0 if chance <= 0.0 else min(1.0, (max(best, 0.0) / chance) ** 2)


def model_trust(blurs_beyond: float | None, mean_length: float) -> float:
    """Return how far a model distinguishes texts of this mean length in lexemes, 0 to 1."""
    return 1.0 if blurs_beyond is None else min(1.0, blurs_beyond / max(mean_length, 1.0))


def fuse(lists: Sequence[BranchList[Ordered]], ranking: Ranking, fetched: int) -> Fused[Ordered]:
    """Fuse the lists of the branches, each asked for `fetched` candidates, by the kind of fusion in `ranking`.

    calibrated  own = sum of weight * standardised score, as a share of the best
    rrf         own = sum of weight / (k + rank), as a share of the best
    weighted    own = weighted mean of the similarities

    Equal scores are ordered by rrf, then by id.
    """
    rrf = reciprocal_rank_fusion([(ranking.weight(found.branch), found.ids) for found in lists], ranking.rrf_k)
    standardised: dict[Branch, dict[Ordered, float]] = {}
    total = dict.fromkeys(rrf, 0.0)
    for found in lists:
        own_list = standardised[found.branch] = {}
        for id_, value in zip(found.ids, standardised_scores(found.scores, fetched), strict=True):
            own_list[id_] = found.weight * value
            total[id_] += own_list[id_]
    if ranking.fusion == "weighted":
        own = _weighted_mean(lists, ranking)
    else:
        own = _shares_of_best(rrf if ranking.fusion == "rrf" else total)
    return Fused(best_first(own, rrf), rrf, standardised, own)


def score(
    fused: Fused[Ordered],
    signals: Mapping[Ordered, float],
    links: Iterable[tuple[Ordered, Ordered, float]],
    nearness: Mapping[Ordered, float] = MappingProxyType({}),
) -> Scored[Ordered]:
    """Return relevance = (own * signals + spread) * nearness of the candidates that have signals, and of neighbours.

    `links` holds (from, to, strength). Signals do not spread: a neighbour is not more relevant for being linked to an
    important memory.
    """
    boosted = {id_: fused.own[id_] * factor for id_, factor in signals.items() if id_ in fused.own}
    spread = spread_scores({id_: fused.own[id_] for id_ in boosted}, links)
    relevance = {
        id_: (boosted.get(id_, 0.0) + spread.get(id_, 0.0)) * nearness.get(id_, 1.0) for id_ in {**boosted, **spread}
    }
    return Scored(best_first(relevance, fused.rrf), relevance, spread)


def spread_scores(scores: Mapping[Id, float], links: Iterable[tuple[Id, Id, float]]) -> dict[Id, float]:
    """Return for each neighbour the sum of strength * score over its links (from, to, strength).

    A spread score does not spread again. Sums are made in order of size, so that the order of links does not matter.
    """
    parts: dict[Id, list[float]] = {}
    for from_, to, strength in links:
        if strength > 0 and scores.get(from_, 0.0) > 0:
            parts.setdefault(to, []).append(strength * scores[from_])
    return {id_: sum(sorted(values)) for id_, values in parts.items()}


def reranked(relevance: NDArray[np.float64], scores: NDArray[np.float64]) -> tuple[list[int], NDArray[np.float64]]:
    """Sort the first len(scores) of n candidates by a reranker's scores of any scale; the others stay behind them.

    `relevance` (n,) is best first. Returns the places in their new order, and the relevance in that order: the reranked
    candidates divide their former range in proportion to their scores, so that diversity treats them as before. Equal
    scores keep their order; if all are equal, nothing changes.
    """
    count = len(scores)
    if count == 0 or float(scores.max()) == float(scores.min()):
        return list(range(len(relevance))), relevance
    order = sorted(range(count), key=lambda place: (-float(scores[place]), place))
    low, high = float(scores.min()), float(scores.max())
    bottom, top = float(relevance[count - 1]), float(relevance[0])
    divided = bottom + (top - bottom) * (scores[order] - low) / (high - low)
    return [*order, *range(count, len(relevance))], np.concatenate([divided, relevance[count:]])


def best_first(scores: Mapping[Ordered, float], second: Mapping[Ordered, float]) -> list[Ordered]:
    """Return the ids by descending score, then second score, then ascending id: one question has one answer."""
    keyed = [(-value, -second.get(id_, 0.0), id_) for id_, value in scores.items()]
    keyed.sort()
    return [id_ for _, _, id_ in keyed]


def _weighted_mean(lists: Sequence[BranchList[Ordered]], ranking: Ranking) -> dict[Ordered, float]:
    """Return the weighted mean of similarities. An id outside a list has 0 there; an empty list has no weight."""
    active = [found for found in lists if found.ids]
    whole = sum(ranking.weight(found.branch) for found in active)
    sums: dict[Ordered, float] = {}
    for found in active:
        for id_, similarity in zip(found.ids, found.similarities, strict=True):
            sums[id_] = sums.get(id_, 0.0) + ranking.weight(found.branch) / whole * min(max(similarity, 0.0), 1.0)
    return sums


def _shares_of_best(values: Mapping[Ordered, float]) -> dict[Ordered, float]:
    best = max(values.values(), default=0.0)
    return {id_: value / best if best > 0 else 0.0 for id_, value in values.items()}
