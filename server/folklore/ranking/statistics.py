"""Query and corpus statistics: weights of words, and the lines by which scores grow with the length of a text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from folklore.lazy import NDArray
from folklore.lazy import numpy as np

# A word that every second memory holds has this weight: the least that a piece of a question counts in its vector.
_FUNCTION_WORD = math.log(2)
# After so many postings, lexemes with less than this share of the greatest weight are not read: the commonest words
# take most of the time and change next to nothing.
_MANY_POSTINGS, _LEAST_SHARE = 1_500, 0.1
# k3 of Okapi BM25: a word that a question repeats counts at most five times.
_REPETITION = 4.0
# A line through N memories counts by N / (N + 20): one outlier among few would bend it.
_DOUBT = 20
# A line of keyword scores counts by V / (V + 0.2), V being the variance of size: among texts of similar length, or of
# records with and without an abstract, scores grow with length since the longer ones say more about their subject.
_NARROW = 0.2
# Least number of sampled vectors, if there are as many, whose distance from the line is kept.
_RESIDUALS = 150


def inverse_document_frequency(documents: float, total: float) -> float:
    """Return ln(1 + (N - n + 1/2) / (n + 1/2)), never negative (Robertson and Spärck Jones 1976, as BM25 uses it)."""
    return math.log1p((max(total - documents, 0.0) + 0.5) / (documents + 0.5))


def estimated_documents(count: int, *, total: int, bound: int) -> int:
    """Return the document frequency of a lexeme whose count stops at `bound`: then at least a quarter of all."""
    return max(count, total // 4) if count >= bound else count


def lexeme_weights(documents: Mapping[str, int], *, total: int, budget: int, bound: int) -> dict[str, float]:
    """Return the weights of the lexemes that a question reads, rarest first until `budget` postings are spent.

    The rarest lexeme is always read, so that a question of common words alone has an answer.
    """
    weights: dict[str, float] = {}
    postings = 0
    for lexeme, count in sorted(documents.items(), key=lambda entry: (entry[1], entry[0])):
        if count == 0:
            continue
        postings += count
        if weights and postings > budget:
            break
        frequency = estimated_documents(count, total=total, bound=bound)
        weight = inverse_document_frequency(frequency, max(total, frequency))
        if postings > _MANY_POSTINGS and weight < _LEAST_SHARE * max(weights.values(), default=0.0):
            break
        weights[lexeme] = weight
    return weights


def repetition_factor(times: int) -> float:
    """Return (k3 + 1) * n / (k3 + n) with k3 = 4: the factor on the weight of a word that a question has n times.

    Robertson and others: Okapi at TREC-3, 1994. A long question repeats what it is about.
    """
    return (_REPETITION + 1.0) * times / (_REPETITION + times)


def rarest_weights(places: Mapping[str, Sequence[int]], weights: Mapping[str, float], pieces: int) -> list[float]:
    """Return the weight of the rarest lexeme of each piece of a question; 0 for a piece without lexemes."""
    rarest = [0.0] * pieces
    for lexeme, found in places.items():
        for place in found:
            rarest[place] = max(rarest[place], weights.get(lexeme, 0.0))
    return rarest


def sampled_weights(documents: Sequence[int | None], total: int) -> list[float]:
    """Return the weight of each piece by the document frequency of its rarest word in a sample of `total` texts.

    A piece without a word (None) has weight 0.
    """
    return [0.0 if held is None else inverse_document_frequency(held, total) for held in documents]


def piece_weights(rarest: Sequence[float]) -> list[float]:
    """Return the factor of each piece in a question's vector: the square root of the weight of its rarest word."""
    return [math.sqrt(max(weight, _FUNCTION_WORD)) for weight in rarest]


@dataclass(frozen=True, slots=True)
class LengthLine:
    """Regression line of the similarity to any question over size = ln(length + 30).

    The line of q · v over size is linear in q: its slope is q · `slope` and its mean q · `mean`, so one pass over a
    sample of vectors serves every question. `residuals` (rows, dimensions) are sampled vectors minus the line.
    """

    mean: NDArray[np.float32]
    slope: NDArray[np.float32]
    mean_size: float
    residuals: NDArray[np.float32]

    @classmethod
    def through(cls, vectors: NDArray[np.float32], sizes: NDArray[np.float32]) -> LengthLine | None:
        """Return the line through vectors (n, dimensions) of texts of these sizes (n,); None without vectors."""
        if len(vectors) == 0:
            return None
        deviation = sizes - sizes.mean()
        variance = float(deviation @ deviation)
        mean = vectors.mean(axis=0)
        trust = len(sizes) / (len(sizes) + _DOUBT)
        slope = deviation @ (vectors - mean) * (trust / variance) if variance > 1e-6 else np.zeros_like(mean)
        some = slice(None, None, max(len(sizes) // _RESIDUALS, 1))
        residuals = vectors[some] - mean - np.outer(deviation[some], slope)
        return cls(mean, slope.astype(np.float32), float(sizes.mean()), residuals.astype(np.float32))

    def of(self, question: NDArray[np.float32]) -> QuestionLine:
        """Return the line of similarities to a question's vector (dimensions,)."""
        slope = float(self.slope @ question)
        return QuestionLine(slope, float(self.mean @ question) - slope * self.mean_size, self.residuals @ question)


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """Line of the similarities to one question: a score is similarity - slope * size, around `expected`.

    `residuals` (rows,) are the scores of some sampled memories minus `expected`.
    """

    slope: float
    expected: float
    residuals: NDArray[np.float32]

    @property
    def deviation(self) -> float:
        """The standard deviation of scores."""
        return float(np.sqrt(self.residuals @ self.residuals / len(self.residuals)))

    def score_of_best(self, share: float) -> float:
        """Return the score that about this share of all memories exceed, estimated from the sample."""
        place = len(self.residuals) - 1 - min(round(share * len(self.residuals)), len(self.residuals) - 1)
        return self.expected + float(np.partition(self.residuals, place)[place])


def score_line(
    weights: Mapping[str, float],
    sums: Mapping[str, tuple[float, float]],
    *,
    total: int,
    mean_size: float,
    size_variance: float,
) -> tuple[float, float]:
    """Return (mean, slope) of the line through a question's keyword scores over size; a memory without a match has 0.

    The slope is the regression slope * N / (N + 20) * V / (V + 0.2), with V = `size_variance`.

    `sums` has for each lexeme the sum of its scores over all memories, and of its scores times size.
    """
    scores = sized = 0.0
    for lexeme, weight in weights.items():
        score, score_times_size = sums.get(lexeme, (0.0, 0.0))
        scores += weight * score
        sized += weight * score_times_size
    memories = max(total, 1)
    covariance = (sized - scores * mean_size) / memories
    return scores / memories, covariance / (size_variance + _NARROW) * memories / (memories + _DOUBT)
