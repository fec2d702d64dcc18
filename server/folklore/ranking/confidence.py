"""Confidence that a memory answers a question: a function of the two and of the memory's neighbours in its session.

No term depends on what else is stored or on other results, so that the same memory has the same confidence in every
answer. Ranking needs to know which memory is better; confidence, whether any is good. Fitted on questions that were
asked of memories that cannot answer them (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import math

from folklore.model import Match

# Share of a word that only a neighbour in the session holds.
NEIGHBOUR = 0.9
# Weight of a word that is never held, added to every question, at most its own weight: one of few words would soon be
# covered whole.
_UNCOVERED = 5.0
# Logistic regression. The cosine is 0 for an unrelated text.
_COVERAGE, _COSINE, _SEQUENCE, _NO_NAME, _BIAS = 5.0, 9.0, 4.0, -4.0, -4.9
# Cosine of a usual result, where there is no vector.
_USUAL = 0.3
# Least confidence of a strong and of a fair match, and the levels to which a score is rounded down: within a level the
# order is that of relevance, which is the better one.
_STRONG, _FAIR = 0.95, 0.25
_LEVELS = (_STRONG, 0.5, _FAIR, 0.1)


def share(held: float, total: float) -> float:
    """Return the share of a question's weight that is held, as if the question had one more long word."""
    return held / (total + min(total, _UNCOVERED)) if total > 0 else 0.0


def confidence(coverage: float, sequence: float, cosine: float | None, *, unnamed: bool) -> float:
    """Return 1 / (1 + exp(-(5 coverage + 9 cosine + 4 sequence - 4 unnamed - 4.9))).

    `coverage` is the share of the question's words, `sequence` that of its pairs of words, `unnamed` whether it names
    someone or something that neither the memory nor a neighbour mentions. Without a vector (None) the cosine is 0.3.
    """
    near = _USUAL if cosine is None else cosine
    value = _COVERAGE * coverage + _COSINE * near + _SEQUENCE * sequence + _NO_NAME * unnamed + _BIAS
    return 1.0 / (1.0 + math.exp(-value))


def match_of(score: float) -> Match:
    """Return the match that a confidence is: strong from 0.95, fair from 0.25, else weak."""
    return "strong" if score >= _STRONG else "fair" if score >= _FAIR else "weak"


def rounded(value: float) -> float:
    """Return the score of a confidence: rounded down to 0.95, 0.5, 0.25, 0.1 or 0."""
    return next((level for level in _LEVELS if value >= level), 0.0)
