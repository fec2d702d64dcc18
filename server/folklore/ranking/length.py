"""Long texts are near to every question; what is left of a similarity when length is taken off is what it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Of so many texts at least, if there are, it is kept how far they lie from the line.
_KEPT = 150
# A line through few memories would be bent by one that stands out: it is trusted by N / (N + 20).
_DOUBT = 20


@dataclass(frozen=True, slots=True)
class LengthLine:
    """How similarity to any question grows with a text's size, the logarithm of its length + 30.

    The regression line of q · v over size is linear in q: its slope is q · `slope` and its mean q · `mean`, so one pass
    over a sample of vectors serves every question. `around` (rows, dimensions) are some of the sample without what the
    line explains, by which it is told for any question how similarities lie around it.
    """

    mean: NDArray[np.float32]
    slope: NDArray[np.float32]
    mean_size: float
    around: NDArray[np.float32]

    @classmethod
    def through(cls, vectors: NDArray[np.float32], sizes: NDArray[np.float32]) -> LengthLine | None:
        """The line through vectors (n, dimensions) of texts of these sizes (n,); None of none."""
        if len(vectors) == 0:
            return None
        away = sizes - sizes.mean()
        spread = float(away @ away)
        mean = vectors.mean(axis=0)
        trust = len(sizes) / (len(sizes) + _DOUBT)
        slope = away @ (vectors - mean) * (trust / spread) if spread > 1e-6 else np.zeros_like(mean)
        some = slice(None, None, max(len(sizes) // _KEPT, 1))
        around = vectors[some] - mean - np.outer(away[some], slope)
        return cls(mean, slope.astype(np.float32), float(sizes.mean()), around.astype(np.float32))

    def of(self, question: NDArray[np.float32]) -> QuestionLine:
        """The line of similarities to a question's vector (dimensions,)."""
        slope = float(self.slope @ question)
        return QuestionLine(slope, float(self.mean @ question) - slope * self.mean_size, self.around @ question)


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """The line of similarities to one question over size: its slope, what is `expected` at size 0, and how far some of
    the sample lie `away` (rows,) from it. A similarity less slope times size is a score."""

    slope: float
    expected: float
    away: NDArray[np.float32]

    @property
    def spread(self) -> float:
        """The standard deviation of similarities around the line."""
        return float(np.sqrt(self.away @ self.away / len(self.away)))

    def passed_by(self, share: float) -> float:
        """The score that about this share of all texts pass, judged by the sample."""
        place = len(self.away) - 1 - min(round(share * len(self.away)), len(self.away) - 1)
        return self.expected + float(np.partition(self.away, place)[place])


def score_line(
    weights: Mapping[str, float],
    sums: Mapping[str, tuple[float, float]],
    *,
    total: int,
    mean_size: float,
    size_variance: float,
) -> tuple[float, float]:
    """(mean, slope) of the line through a question's keyword scores over size, those without a match being 0.

    A score is the weighted sum of what the question's lexemes say in a memory, so the line is one of theirs: `sums` has
    for each what it says in all `total` memories together, and that times their size. Trusted as `LengthLine` is.
    """
    scores = sized = 0.0
    for lexeme, weight in weights.items():
        evidence, with_size = sums.get(lexeme, (0.0, 0.0))
        scores += weight * evidence
        sized += weight * with_size
    memories = max(total, 1)
    spread = max(memories * size_variance, 1e-9)
    return scores / memories, (sized - scores * mean_size) / spread * memories / (memories + _DOUBT)
