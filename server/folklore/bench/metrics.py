"""How good a ranking is: pure functions of what was answered (sources, best first) and what holds the answer.

Definitions as in Manning, Raghavan, Schütze, Introduction to Information Retrieval, chapter 8; relevance is binary. A
source that stands twice in a ranking counts at its first place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet


def recall_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """The share of the evidence among the first k."""
    return len(evidence & set(ranked[:k])) / len(evidence)


def hit_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """1 if any of the evidence is among the first k, else 0."""
    return float(not evidence.isdisjoint(ranked[:k]))


def all_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """1 if all of the evidence is among the first k, else 0."""
    return float(evidence <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """1 / place of the first of the evidence; 0 if there is none."""
    return next((1 / place for place, source in enumerate(ranked, start=1) if source in evidence), 0.0)


def ndcg_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """Discounted cumulative gain of the first k, as a share of the best that was possible."""
    places = {source: place for place, source in reversed([*enumerate(ranked[:k], start=1)])}
    gain = sum(1 / math.log2(places[source] + 1) for source in evidence if source in places)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(k, len(evidence)) + 1))
    return gain / ideal


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean; 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0 to 1) of the values do not exceed (nearest rank); 0 of nothing."""
    if not values:
        return 0.0
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]
