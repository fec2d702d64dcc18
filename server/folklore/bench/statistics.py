"""What a comparison of two rankings, or of two kinds of question, is worth: pure, seeded functions of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROUNDS = 10_000
_SEED = 20_090_707
_AT_ONCE = 1_000_000  # draws held in memory


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and the 95 % interval around it."""

    mean: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        """Rounded."""
        return {"difference": round(self.mean, 4), "low": round(self.low, 4), "high": round(self.high, 4)}


def resampled_means(differences: Sequence[float], rounds: int = ROUNDS) -> NDArray[np.float64]:
    """The means (rounds,) of as many values drawn with replacement, always the same draws for the same count.

    Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13 (percentile method); the pair is the question.
    """
    values = np.asarray(differences, dtype=np.float64)
    if not len(values):
        return np.zeros(rounds)
    rng = np.random.default_rng(_SEED)
    step = max(_AT_ONCE // len(values), 1)
    parts = [
        values[rng.integers(0, len(values), (min(step, rounds - start), len(values)))].mean(axis=1)
        for start in range(0, rounds, step)
    ]
    return np.concatenate(parts)


def paired_bootstrap(differences: Sequence[float], rounds: int = ROUNDS) -> Interval:
    """The mean of per-question differences and its 95 % bootstrap interval; zeros of nothing."""
    return mean_of_sets([differences], rounds)


def mean_of_sets(sets: Sequence[Sequence[float]], rounds: int = ROUNDS) -> Interval:
    """The mean over sets of their mean differences, each set drawn from by itself, so that a small one counts alike."""
    if not sets:
        return Interval(0.0, 0.0, 0.0)
    drawn = np.mean([resampled_means(differences, rounds) for differences in sets], axis=0)
    means = [float(np.mean(differences)) if len(differences) else 0.0 for differences in sets]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(float(np.mean(means)), float(low), float(high))


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """The probability that a positive scores above a negative, ties counting half; 0.5 where either is missing.

    The area under the receiver operating characteristic, as the Mann-Whitney statistic (Hanley and McNeil 1982).
    """
    if not len(positive) or not len(negative):
        return 0.5
    lower = np.sort(np.asarray(negative, dtype=np.float64))
    below = np.searchsorted(lower, positive, side="left")
    not_above = np.searchsorted(lower, positive, side="right")
    return float((below + not_above).mean() / (2 * len(lower)))


def floor_keeping(share: float, scores: Sequence[float]) -> float:
    """The greatest of the scores that at least `share` (0 to 1) of them reach; 0 of nothing."""
    ordered = sorted(scores, reverse=True)
    if not ordered:
        return 0.0
    # Not ceil(share * n): 0.95 * 20 is 19.000000000000004 in some orders of arithmetic.
    needed = min(max(int(np.ceil(share * len(ordered) - 1e-9)), 1), len(ordered))
    return ordered[needed - 1]
