"""Weights of the words of a question by their document frequencies."""

import math
from collections.abc import Mapping

# After so many postings, lexemes with less than this share of the greatest weight are not read: the commonest words
# take most of the time and change next to nothing.
_MANY_POSTINGS = 1_500
_LEAST_SHARE = 0.1


def inverse_document_frequency(documents: float, total: float) -> float:
    """Return ln(1 + (N - n + 1/2) / (n + 1/2)), never negative (Robertson and Spärck Jones 1976, as BM25 uses it)."""
    return math.log1p((max(total - documents, 0.0) + 0.5) / (documents + 0.5))


def lexeme_weights(
    documents: Mapping[str, int], *, total: int, budget: int
) -> dict[str, float]:
    """Return the weights of the lexemes that a question reads, rarest first until `budget` postings are spent.

    The rarest lexeme is always read, so that a question of common words alone has an answer.
    """
    weights: dict[str, float] = {}
    postings = 0
    greatest = 0.0
    for lexeme in sorted(documents, key=lambda lexeme: (documents[lexeme], lexeme)):
        count = documents[lexeme]
        if count == 0:
            continue
        postings += count
        if weights and postings > budget:
            break
        weight = inverse_document_frequency(count, max(total, count))
        if postings > _MANY_POSTINGS and weight < _LEAST_SHARE * greatest:
            break
        weights[lexeme] = weight
        greatest = max(greatest, weight)
    return weights
