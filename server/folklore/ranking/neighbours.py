"""What stands beside a good answer, or is related to it, is part of it: a reply carries few of its question's words."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from folklore.ranking.weights import Ranking

Id = TypeVar("Id", bound=Hashable)


def spread(scores: Mapping[Id, float], beside: Iterable[tuple[Id, Id, float]]) -> dict[Id, float]:
    """What each memory gains from its neighbours with a score: strength x score, summed.

    `beside` holds (lender, gainer, strength); the gainer needs no score of its own. Only own scores are lent, never
    gains, so nothing cascades. The order of `beside` does not matter: gains are added in order of size.
    """
    gains: dict[Id, list[float]] = {}
    for lender, gainer, strength in beside:
        if strength > 0 and scores.get(lender, 0.0) > 0:
            gains.setdefault(gainer, []).append(strength * scores[lender])
    return {id_: sum(sorted(lent)) for id_, lent in gains.items()}


def room(length: float, ranking: Ranking, *, asks: bool) -> float:
    """How much of what its neighbours say is missing from a text of so many lexemes and can be its own, 0 to 1.

    A long one has words of its own, one of few says little (by the square root, since a few words can be an answer),
    and who asks something is seldom the one who answers it.
    """
    fits = 1.0
    if length < ranking.neighbours_least:
        fits = math.sqrt(length / ranking.neighbours_least)
    elif length > ranking.neighbours_length:
        fits = ranking.neighbours_length / length
    return fits * ranking.neighbours_asking if asks else fits


def guessed_length(text: str) -> int:
    """About how many lexemes a text has, where nobody counted them; at least 1."""
    return len(text) // 8 + 1
