"""From what the branches found to one ranked pool: fused, moved by signals, lent to by neighbours."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar
from uuid import UUID

from folklore.ranking.fusion import best_first, reciprocal_rank_fusion
from folklore.ranking.neighbours import spread
from folklore.ranking.standard_scores import tail_evidence
from folklore.ranking.weights import Branch, Ranking

Id = TypeVar("Id", UUID, str, int)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Id]):
    """One branch's list, best first, and what its evidence counts.

    `scores` order it; `similarities` are absolute, 0 to 1: the cosine, or the score as a share of the query's best
    times how much of the question that one covers. `trust`, 0 to 1, is how far its ranks can be relied upon here.
    """

    branch: Branch
    ids: Sequence[Id]
    scores: Sequence[float]
    weight: float
    similarities: Sequence[float] = ()
    trust: float = 1.0


@dataclass(frozen=True, slots=True)
class Fused(Generic[Id]):
    """The candidates of all branches, best first: their own relevance in [0, 1], and what it is made of.

    `lent` is what each may lend to its neighbours, in [0, 1].
    """

    order: Sequence[Id]
    rrf: Mapping[Id, float]
    evidence: Mapping[Branch, Mapping[Id, float]]
    own: Mapping[Id, float]
    lent: Mapping[Id, float]


@dataclass(frozen=True, slots=True)
class Pool(Generic[Id]):
    """The candidates and their neighbours by relevance, best first, and what neighbours lent to whom."""

    order: Sequence[Id]
    relevance: Mapping[Id, float]
    gained: Mapping[Id, float]


def fuse(lists: Sequence[Listed[Id]], ranking: Ranking, fetched: int) -> Fused[Id]:
    """Fuse the lists by rank and by evidence: ranks alone forget how far a hit stands out, evidence alone trusts a
    branch that is sure of itself for the wrong reason.

    `fetched` is how many each branch was asked for. Equal relevance falls back on the fused rank, then on the id.
    """
    # Ranks know the weights that were asked for; evidence also how much the model's and the words' are worth here.
    rrf = reciprocal_rank_fusion(
        [(ranking.weight(listed.branch) * listed.trust, listed.ids) for listed in lists], ranking.rrf_k
    )
    evidence: dict[Branch, dict[Id, float]] = {}
    whole = dict.fromkeys(rrf, 0.0)
    for listed in lists:
        own_list = evidence[listed.branch] = {}
        for id_, value in zip(listed.ids, tail_evidence(listed.scores, fetched), strict=True):
            own_list[id_] = listed.weight * value
            whole[id_] += own_list[id_]
    if ranking.fusion == "weighted":
        own = lent = _weighted_sum(lists, ranking)
    else:
        lent = _shares(whole)
        ranks = _shares(rrf)
        share = ranking.rrf_share
        own = {id_: (1.0 - share) * value + share * ranks[id_] for id_, value in lent.items()}
    return Fused(best_first({id_: (value, rrf[id_]) for id_, value in own.items()}), rrf, evidence, own, lent)


def _weighted_sum(lists: Sequence[Listed[Id]], ranking: Ranking) -> dict[Id, float]:
    """The weighted mean of the similarities; who is not in a list has 0 there, and an empty list has no weight."""
    active = [listed for listed in lists if listed.ids]
    whole = sum(ranking.weight(listed.branch) for listed in active)
    sums: dict[Id, float] = {}
    for listed in active:
        for id_, similarity in zip(listed.ids, listed.similarities, strict=True):
            sums[id_] = sums.get(id_, 0.0) + ranking.weight(listed.branch) / whole * min(max(similarity, 0.0), 1.0)
    return sums


def _shares(values: Mapping[Id, float]) -> dict[Id, float]:
    best = max(values.values(), default=0.0)
    return {id_: value / best if best > 0 else 0.0 for id_, value in values.items()}


def lend(
    fused: Fused[Id],
    present: Collection[Id],
    factors: Mapping[Id, float],
    beside: Iterable[tuple[Id, Id, float]],
    nearness: Mapping[Id, float] = MappingProxyType({}),
) -> Pool[Id]:
    """Move those who are `present` by the factor of their signals, and let them lend to those beside them.

    `beside` holds (lender, gainer, strength). What is lent is evidence alone: neither ranks, which are never far apart,
    nor importance or another boost spread. All of it, what was lent too, counts by the factor of its `nearness`.
    """
    moved = {id_: value * factors.get(id_, 1.0) for id_, value in fused.own.items() if id_ in present}
    lent = {id_: fused.lent[id_] for id_ in moved}
    gained = spread(lent, beside)
    relevance = {
        id_: (moved.get(id_, 0.0) + gained.get(id_, 0.0)) * nearness.get(id_, 1.0) for id_ in {**moved, **gained}
    }
    order = best_first({id_: (value, fused.rrf.get(id_, 0.0)) for id_, value in relevance.items()})
    return Pool(order, relevance, gained)
