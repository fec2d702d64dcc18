"""How much a memory's scores say: not their size, which no two branches share, but how far they stand out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """How a branch's scores lie over the whole scope of a question."""

    mean: float
    deviation: float

    @classmethod
    def over(cls, total: float, squares: float, count: int) -> Spread:
        """From the sums of the scores and of their squares over `count` memories; those without a score count as 0."""
        if count <= 0:
            return cls(0.0, 0.0)
        mean = total / count
        return cls(mean, math.sqrt(max(squares / count - mean * mean, 0.0)))

    def standard(self, score: float) -> float:
        """The standard score, cut at 0: what is below the mean is no evidence against a memory."""
        return max(0.0, (score - self.mean) / self.deviation) if self.deviation > 1e-9 else 0.0


def inverse_document_frequency(documents: float, total: float) -> float:
    """ln(1 + (N - n + 1/2) / (n + 1/2)), never negative (Robertson and Spärck Jones 1976, as BM25 uses it)."""
    return math.log1p((max(total - documents, 0.0) + 0.5) / (documents + 0.5))


def weigh(documents: Mapping[str, int], *, total: int, budget: int, bound: int) -> dict[str, float]:
    """Inverse document frequency of the lexemes a question may read, rarest first until `budget` postings are spent.

    The rarest lexeme is always read, so that a question of common words alone is still answered. A count that reached
    `bound` stands for a lexeme of at least a quarter of the memories.
    """
    weights: dict[str, float] = {}
    read = 0
    for lexeme, count in sorted(documents.items(), key=lambda entry: (entry[1], entry[0])):
        if count == 0:
            continue
        read += count
        if weights and read > budget:
            break
        seen = max(count, total // 4) if count >= bound else count
        weights[lexeme] = inverse_document_frequency(seen, max(total, seen))
    return weights
