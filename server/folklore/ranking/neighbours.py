"""What stands beside a good answer in the same session is part of it: a reply carries few of its question's words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Id = TypeVar("Id", bound=Hashable)


def spread(
    scores: Mapping[Id, float],
    beside: Iterable[tuple[Id, Id, int]],
    strengths: Sequence[float],
) -> dict[Id, float]:
    """Each memory gains, from every neighbour with a score, strength[gap - 1] x score x (score / best score).

    The square keeps middling neighbours from carrying one another: only one that stands out lends much.

    `beside` holds (seed, neighbour, gap): the seed lends, the neighbour gains, and may enter the pool by it. Only own
    scores are lent, never gains, so nothing cascades. The order of `beside` does not matter beyond rounding: gains are
    added in order of size.
    """
    best = max(scores.values(), default=0.0)
    if best <= 0.0:
        return dict(scores)
    gains: dict[Id, list[float]] = {}
    for seed, neighbour, gap in beside:
        if 1 <= gap <= len(strengths) and seed in scores:
            gains.setdefault(neighbour, []).append(strengths[gap - 1] * scores[seed] * scores[seed] / best)
    together = dict(scores)
    for id_, lent in gains.items():
        together[id_] = together.get(id_, 0.0) + sum(sorted(lent))
    return together
