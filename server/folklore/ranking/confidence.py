"""Confidence that a result answers its question, from the words of the question that it covers and from its cosine.

Ranking needs to know which memory is better; confidence, whether any is good. Fitted on questions of one conversation
asked of another (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from folklore.ranking.statistics import inverse_document_frequency

# Number of the rarest words of a question that are distinguished: one bit each, in a bigint.
MAX_WORDS = 62
# Weight of a word that a neighbour holds, in words of the memory itself.
_NEIGHBOUR = 0.8
# Share of a word that no memory holds, added to every question: one of few words would soon be covered whole.
_UNCOVERED = 0.75
# Weight of the cosine in words' coverage.
_COSINE = 0.5
# Logistic regression on as many questions with an answer as without.
_SLOPE, _BIAS = 10.5, -6.3


@dataclass(frozen=True, slots=True)
class QuestionTerms:
    """The words and date terms of a question that some memory holds, as (bits, weight); any of its bits means held.

    `total` is the weight of all words, also of those that no memory holds, and of the time that the question names.
    """

    words: Sequence[tuple[int, float]]
    dates: Sequence[tuple[int, float]]
    total: float

    @classmethod
    def of(
        cls,
        weights: Mapping[str, float],
        documents: Mapping[str, int],
        dated: Collection[str],
        total: int,
        stems: Mapping[str, str] = MappingProxyType({}),
    ) -> QuestionTerms:
        """Make them from the `weights` of lexemes, in the order of their bits, and all `documents`, zeros included.

        A time counts once, as its date term (`@...`), which needs no word in the text; the lexemes that spell it,
        `dated`, are left out. A word as it is spelled counts as its stem (`stems`): either suffices.
        """
        bits = _bits(weights, stems)
        words = [(bit, weights[word]) for word, bit in bits.items() if not _is_date_term(word) and word not in dated]
        dates = [(bit, weights[word]) for word, bit in bits.items() if _is_date_term(word)]
        absent = [lexeme for lexeme, count in documents.items() if count == 0 and lexeme not in dated]
        # A lexeme that no memory holds has this weight.
        rarest = inverse_document_frequency(0, total)
        absent_dates = len(list(filter(_is_date_term, absent)))
        of_words = sum(weight for _, weight in words) + rarest * (len(absent) - absent_dates)
        of_date = max((weight for _, weight in dates), default=rarest * min(absent_dates, 1))
        whole = of_words + of_date
        return cls(words, dates, whole + _UNCOVERED * rarest if whole > 0 else 0.0)

    def coverage(self, own: int, neighbours: int) -> float:
        """Return the share of the question, 0 to 1, that a memory with these bits and its neighbours cover."""
        if self.total <= 0:
            return 0.0
        covered = 0.0
        for bit, weight in self.words:
            if own & bit:
                covered += weight
            elif neighbours & bit:
                covered += _NEIGHBOUR * weight
        date = 0.0
        for bit, weight in self.dates:
            date = max(date, weight if own & bit else _NEIGHBOUR * weight if neighbours & bit else 0.0)
        return (covered + date) / self.total


def _bits(weights: Mapping[str, float], stems: Mapping[str, str]) -> dict[str, int]:
    """Return the bits of the rarest lexemes, those of a spelled word with those of its stem."""
    bits: dict[str, int] = {}
    for place, lexeme in enumerate(islice(weights, MAX_WORDS)):
        stem = stems.get(lexeme, lexeme)
        bits[stem] = bits.get(stem, 0) | 1 << place
    return bits


def _is_date_term(lexeme: str) -> bool:
    return lexeme.startswith("@")


def confidences(
    coverages: Sequence[float | None], cosines: Sequence[float], *, among: int | None = None
) -> list[float]:
    """Return 1 / (1 + exp(-(10.5 * (value + best) / 2 - 6.3))) for each result, value = coverage + 0.5 * cosine.

    `best` is the greatest value of the first `among` results, or of all: any result may show that there is an answer.
    Without coverage (None) the cosine takes its place.
    """
    values = [
        (cosine if coverage is None else coverage) + _COSINE * cosine
        for coverage, cosine in zip(coverages, cosines, strict=True)
    ]
    best = max(values[:among], default=0.0)
    return [1.0 / (1.0 + math.exp(-(_SLOPE * (value + best) / 2 + _BIAS))) for value in values]
