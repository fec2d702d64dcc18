"""What stands beside a good answer, or is related to it, is part of it: a reply carries few of its question's words."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Id = TypeVar("Id", bound=Hashable)


def spread(scores: Mapping[Id, float], beside: Iterable[tuple[Id, Id, float]]) -> dict[Id, float]:
    """What each memory gains from its neighbours with a score: strength x score x (score / best score), summed.

    The square keeps middling neighbours from carrying one another: only one that stands out lends much.

    `beside` holds (lender, gainer, strength); the gainer needs no score of its own. Only own scores are lent, never
    gains, so nothing cascades. The order of `beside` does not matter: gains are added in order of size.
    """
    best = max(scores.values(), default=0.0)
    if best <= 0.0:
        return {}
    gains: dict[Id, list[float]] = {}
    for lender, gainer, strength in beside:
        if strength > 0 and scores.get(lender, 0.0) > 0:
            gains.setdefault(gainer, []).append(strength * scores[lender] * scores[lender] / best)
    return {id_: sum(sorted(lent)) for id_, lent in gains.items()}


def guessed_length(text: str) -> int:
    """About how many lexemes a text has, where nobody counted them; at least 1."""
    return len(text) // 8 + 1
