"""How sure it is that an answer answers: from the words of the question that a memory and those beside it hold, and its
cosine.

Ranking needs to know which memory is better; this, whether any is good. Measured on questions of one conversation asked
of another (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from folklore.ranking.standard_scores import inverse_document_frequency

# Of the words a question reads so many of the rarest are told apart: one bit each, in a bigint.
MOST_WORDS = 62
# What is said beside a memory counts a little less than what it says itself.
_BESIDE = 0.8
# A question of few words is soon covered whole: it counts as if it had most of a word more, which nothing holds.
_UNASKED = 0.75
_COSINE = 0.5
# Fitted on the same questions, as many that have an answer as have none.
_SLOPE, _BIAS = 10.5, -6.3


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for: the bits and weights of the words that some memory holds, and of the times. Any bit of
    several tells that a memory holds the word.

    `whole`: the weight of all its words, those that nothing holds included, and of the time it names.
    """

    words: Sequence[tuple[int, float]]
    times: Sequence[tuple[int, float]]
    whole: float

    @classmethod
    def of(
        cls,
        weights: Mapping[str, float],
        documents: Mapping[str, int],
        dated: Collection[str],
        total: int,
        spelled: Mapping[str, str] = MappingProxyType({}),
    ) -> Asked:
        """`weights` of the lexemes in the order of their bits; `documents` has those that nothing holds as well.

        A time counts once, as the mark (`@...`) under which memories of that time are posted: no text need say it. The
        lexemes it was written with, `dated`, are left out, and so are all beyond MOST_WORDS. A word as it is `spelled`
        is its stem once more: either is enough.
        """
        bits: dict[str, int] = {}
        for place, lexeme in enumerate(islice(weights, MOST_WORDS)):
            stem = spelled.get(lexeme, lexeme)
            bits[stem] = bits.get(stem, 0) | 1 << place
        words = [(bit, weights[word]) for word, bit in bits.items() if word[:1] != "@" and word not in dated]
        times = [(bit, weights[word]) for word, bit in bits.items() if word[:1] == "@"]
        nowhere = [lexeme for lexeme, count in documents.items() if count == 0 and lexeme not in dated]
        missing = inverse_document_frequency(0, total)
        whole = sum(weight for _, weight in words) + missing * sum(lexeme[:1] != "@" for lexeme in nowhere)
        if times:
            whole += max(weight for _, weight in times)
        elif any(lexeme[:1] == "@" for lexeme in nowhere):
            whole += missing
        return cls(words, times, whole + _UNASKED * missing if whole > 0 else 0.0)

    def covered(self, held: int, beside: int) -> float:
        """How much of the question is covered, 0 to 1, by a memory that holds the words and times of these bits, taken
        together with those that the memories beside it hold."""
        if self.whole <= 0:
            return 0.0
        covered = 0.0
        for bit, weight in self.words:
            if held & bit:
                covered += weight
            elif beside & bit:
                covered += _BESIDE * weight
        time = 0.0
        for bit, weight in self.times:
            time = max(time, weight if held & bit else _BESIDE * weight if beside & bit else 0.0)
        return (covered + time) / self.whole


def calibrated(coverages: Sequence[float | None], cosines: Sequence[float], *, among: int | None = None) -> list[float]:
    """The probability-like evidence, between 0 and 1, that each result of one answer answers.

    Half of it is the best one's, of the first `among` if given: whether there is an answer any of them can tell, which
    one it is each by itself.
    Where no words count (None) the cosine stands in for them.
    """
    own = [
        (cosine if coverage is None else coverage) + _COSINE * cosine
        for coverage, cosine in zip(coverages, cosines, strict=True)
    ]
    best = max(own[:among], default=0.0)
    return [1.0 / (1.0 + math.exp(-(_SLOPE * (value + best) / 2 + _BIAS))) for value in own]
