"""From what the branches found to one ranked pool: fused by rank, re-scored by evidence, lent to by neighbours."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from folklore.ranking.evidence import tail_evidence
from folklore.ranking.fusion import best_first, reciprocal_rank_fusion
from folklore.ranking.neighbours import spread
from folklore.ranking.weights import Branch, Ranking

Id = TypeVar("Id", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Id]):
    """One branch's list, best first, and what its evidence counts."""

    branch: Branch
    ids: Sequence[Id]
    scores: Sequence[float]
    weight: float


@dataclass(frozen=True, slots=True)
class Pool(Generic[Id]):
    """Every candidate with its terms: RRF, evidence by branch, what neighbours lent, and the sum, best first."""

    order: Sequence[Id]
    fused: Mapping[Id, float]
    evidence: Mapping[Branch, Mapping[Id, float]]
    own: Mapping[Id, float]
    relevance: Mapping[Id, float]


def fuse(lists: Iterable[Listed[Id]], ranking: Ranking) -> dict[Id, float]:
    """The pool by reciprocal rank fusion: which candidates there are at all."""
    return reciprocal_rank_fusion([(listed.weight, listed.ids) for listed in lists], ranking.rrf_k)


def rescore(
    lists: Sequence[Listed[Id]],
    fused: Mapping[Id, float],
    beside: Iterable[tuple[Id, Id, int]],
    *,
    ranking: Ranking,
    fetched: int,
) -> Pool[Id]:
    """Order the pool by evidence; ranks alone forget how far a hit stands out from the rest of its list.

    `beside` holds (lender, gainer, places apart) for members of the pool and their neighbours; `fetched` is how many
    each branch was asked for. Equal relevance falls back on the fused rank, then on the id.
    """
    evidence = {
        listed.branch: {
            id_: listed.weight * value
            for id_, value in zip(listed.ids, tail_evidence(listed.scores, fetched), strict=True)
        }
        for listed in lists
    }
    own = {id_: sum(by_id.get(id_, 0.0) for by_id in evidence.values()) for id_ in fused}
    relevance = spread(own, beside, ranking.neighbours)
    order = best_first({id_: (value, fused.get(id_, 0.0)) for id_, value in relevance.items()})
    return Pool(order, fused, evidence, own, relevance)
