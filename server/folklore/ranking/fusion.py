"""Several ranked lists become one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

Id = TypeVar("Id", bound=Hashable)
Ordered = TypeVar("Ordered", UUID, str, int)


def reciprocal_rank_fusion(
    lists: Sequence[tuple[float, Sequence[Id]]],
    k: float,
) -> dict[Id, float]:
    """Score each id by the sum over lists of weight / (k + rank), rank from 1.

    `lists` holds (weight, ids best first). Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and
    individual rank learning methods, SIGIR 2009 (there with k = 60 and weight 1).
    """
    scores: dict[Id, float] = {}
    for weight, ids in lists:
        for rank, id_ in enumerate(ids, start=1):
            scores[id_] = scores.get(id_, 0.0) + weight / (k + rank)
    return scores


def best_first(scores: Mapping[Ordered, tuple[float, float]]) -> list[Ordered]:
    """Ids by falling score, then by the falling second score; equal ones by id, so that a question has one answer."""
    keyed = [(-first, -second, id_) for id_, (first, second) in scores.items()]
    keyed.sort()
    return [id_ for _, _, id_ in keyed]
