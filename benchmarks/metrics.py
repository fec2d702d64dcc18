"""Metrics of a ranking, intervals of a difference and measures of a score: pure functions.

A ranking is a list of sources, best first; a source that occurs twice counts at its first place. Relevance is binary;
definitions as in Manning, Raghavan, Schütze, Introduction to Information Retrieval, chapter 8.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence, Set as AbstractSet
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

ROUNDS = 10_000
_SEED = 20_090_707
_DRAWS_AT_ONCE = 1_000_000  # bounds the memory of the bootstrap


def recall_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """Return the share of the evidence among the first k."""
    return len(evidence & set(ranked[:k])) / len(evidence)


def hit_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """Return 1 if any of the evidence is among the first k, else 0."""
    return float(not evidence.isdisjoint(ranked[:k]))


def all_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """Return 1 if all of the evidence is among the first k, else 0."""
    return float(evidence <= set(ranked[:k]))


def reciprocal_rank(ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """Return 1 / rank of the first evidence; 0 if none is found."""
    return next(
        (
            1 / place
            for place, source in enumerate(ranked, start=1)
            if source in evidence
        ),
        0.0,
    )


def ndcg_at(k: int, ranked: Sequence[str], evidence: AbstractSet[str]) -> float:
    """Return the discounted cumulative gain of the first k as a share of the best possible one."""
    places = {
        source: place for place, source in reversed([*enumerate(ranked[:k], start=1)])
    }
    gain = sum(
        1 / math.log2(places[source] + 1) for source in evidence if source in places
    )
    ideal = sum(
        1 / math.log2(place + 1) for place in range(1, min(k, len(evidence)) + 1)
    )
    return gain / ideal


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 for no values."""
    return math.fsum(values) / len(values) if values else 0.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0 to 1) of the values do not exceed (nearest rank)."""
    if not values:
        return 0.0
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean difference and its 95 % interval."""

    difference: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Values, one per question. Questions of one group (a conversation) depend on each other and are drawn together.

    Without groups each question is its own.
    """

    values: Sequence[float]
    groups: Sequence[Hashable] = field(default=())


def resampled_means(
    sample: Sample, rounds: int = ROUNDS, stream: int = 0
) -> NDArray[np.float64]:
    """Return the means (rounds,) of bootstrap samples of whole groups; a stream has the same draws in every run.

    Efron and Tibshirani, An Introduction to the Bootstrap, chapters 8 and 13.
    """
    names = sample.groups or range(len(sample.values))
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    if not places:
        return np.zeros(rounds)
    rows = [places[name] for name in names]
    sums = np.bincount(rows, weights=np.asarray(sample.values, dtype=np.float64))
    counts = np.bincount(rows)
    rng = np.random.default_rng([_SEED, stream])
    step = max(_DRAWS_AT_ONCE // len(places), 1)
    means = []
    for start in range(0, rounds, step):
        drawn = rng.integers(0, len(places), (min(step, rounds - start), len(places)))
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    return np.concatenate(means)


def interval(*samples: Sample, rounds: int = ROUNDS) -> Interval:
    """Return the mean over the samples of their means, with its bootstrap interval (percentiles).

    Each sample is drawn from independently, so that a small set weighs as much as a large one.
    """
    if not samples:
        return Interval(0.0, 0.0, 0.0)
    drawn = np.mean(
        [
            resampled_means(sample, rounds, stream)
            for stream, sample in enumerate(samples)
        ],
        axis=0,
    )
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(
        mean([mean(sample.values) for sample in samples]), float(low), float(high)
    )


def auroc(positive: Sequence[float], negative: Sequence[float]) -> float:
    """Return the probability that a positive scores above a negative, ties counting half; 0.5 if either is missing.

    The area under the receiver operating characteristic, as the Mann-Whitney statistic (Hanley and McNeil 1982).
    """
    if not len(positive) or not len(negative):
        return 0.5
    lower = np.sort(np.asarray(negative, dtype=np.float64))
    below = np.searchsorted(lower, positive, side="left")
    not_above = np.searchsorted(lower, positive, side="right")
    return float((below + not_above).mean() / (2 * len(lower)))


def floor_keeping(share: float, scores: Sequence[float]) -> float:
    """Return the greatest of the scores that at least `share` (0 to 1) of them reach; 0 for no scores."""
    ordered = sorted(scores, reverse=True)
    if not ordered:
        return 0.0
    # The subtraction absorbs rounding: 0.95 * 20 may be 19.000000000000004.
    needed = min(max(math.ceil(share * len(ordered) - 1e-9), 1), len(ordered))
    return ordered[needed - 1]
