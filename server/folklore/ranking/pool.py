"""From what the branches found to one ranked pool: fused by rank, re-scored by evidence, lent to by neighbours."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from folklore.ranking.evidence import tail_evidence
from folklore.ranking.fusion import best_first, reciprocal_rank_fusion
from folklore.ranking.neighbours import spread
from folklore.ranking.weights import Branch, Ranking

Id = TypeVar("Id", UUID, str, int)


@dataclass(frozen=True, slots=True)
class Listed(Generic[Id]):
    """One branch's list, best first, and what its evidence counts."""

    branch: Branch
    ids: Sequence[Id]
    scores: Sequence[float]
    weight: float


@dataclass(frozen=True, slots=True)
class Fused(Generic[Id]):
    """The candidates of all branches: their RRF sums, their evidence by branch, and its sum; best first."""

    order: Sequence[Id]
    rrf: Mapping[Id, float]
    evidence: Mapping[Branch, Mapping[Id, float]]
    own: Mapping[Id, float]


@dataclass(frozen=True, slots=True)
class Pool(Generic[Id]):
    """The candidates and their neighbours by relevance, best first: own evidence and what neighbours lent."""

    order: Sequence[Id]
    relevance: Mapping[Id, float]


def fuse(lists: Sequence[Listed[Id]], ranking: Ranking, fetched: int) -> Fused[Id]:
    """Fuse the lists by rank, then score the pool by evidence: ranks alone forget how far a hit stands out.

    `fetched` is how many each branch was asked for. Equal evidence falls back on the fused rank, then on the id.
    """
    rrf = reciprocal_rank_fusion([(listed.weight, listed.ids) for listed in lists], ranking.rrf_k)
    evidence = {
        listed.branch: {
            id_: listed.weight * value
            for id_, value in zip(listed.ids, tail_evidence(listed.scores, fetched), strict=True)
        }
        for listed in lists
    }
    own = {id_: sum(by_id.get(id_, 0.0) for by_id in evidence.values()) for id_ in rrf}
    return Fused(best_first({id_: (value, rrf[id_]) for id_, value in own.items()}), rrf, evidence, own)


def lend(fused: Fused[Id], present: Container[Id], beside: Iterable[tuple[Id, Id, int]], ranking: Ranking) -> Pool[Id]:
    """Let those who are `present` lend to their neighbours in a session; `beside` holds (lender, gainer, places)."""
    own = {id_: value for id_, value in fused.own.items() if id_ in present}
    relevance = spread(own, beside, ranking.neighbours)
    return Pool(best_first({id_: (value, fused.rrf.get(id_, 0.0)) for id_, value in relevance.items()}), relevance)
