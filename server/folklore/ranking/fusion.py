"""Several ranked lists become one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Id = TypeVar("Id", bound=Hashable)


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


def best_first(scores: Mapping[Id, tuple[float, ...]]) -> list[Id]:
    """Ids by falling scores, the first counting most; equal ones by id, so that a question has one answer."""
    return sorted(scores, key=lambda id_: (*(-score for score in scores[id_]), str(id_)))
