"""How much a memory's scores say: not their size, which no two branches share, but how far they stand out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

_FUNCTION_WORD = math.log(2)
_FLATNESS = 0.25
_UNCOVERED_GAIN = 0.5
_MANY, _LITTLE = 1_500, 0.1


def tail_evidence(scores: Sequence[float], fetched: int) -> list[float]:
    """How far each of a branch's best scores stands out from where its list was cut.

    `scores` best first, relative to the mean of the scope; at most `fetched`, whose last is the cut. Evidence is the
    excess over the cut in units of its mean over `fetched` places, so that branches of any scale are comparable (for an
    exponential tail the unit is its mean); where one memory alone holds a rare word it has nearly all there is. A list
    that ended before is cut at 0, the mean. A flat list, whose end is nearly as good as its beginning, is damped.
    """
    cut = max(scores[-1], 0.0) if len(scores) >= fetched else 0.0
    excess = [max(score - cut, 0.0) for score in scores[:fetched]]
    mean = sum(excess) / fetched + _FLATNESS * cut
    return [value / mean if mean > 1e-12 else 0.0 for value in excess]


def inverse_document_frequency(documents: float, total: float) -> float:
    """ln(1 + (N - n + 1/2) / (n + 1/2)), never negative (Robertson and Spärck Jones 1976, as BM25 uses it)."""
    return math.log1p((max(total - documents, 0.0) + 0.5) / (documents + 0.5))


def taken_for(count: int, *, total: int, bound: int) -> int:
    """In how many memories a lexeme is taken to be: one whose count reached `bound` in at least a quarter of them."""
    return max(count, total // 4) if count >= bound else count


def weigh(documents: Mapping[str, int], *, total: int, budget: int, bound: int) -> dict[str, float]:
    """Inverse document frequency of the lexemes a question may read, rarest first until `budget` postings are spent.

    The rarest lexeme is always read, so that a question of common words alone is still answered.
    """
    weights: dict[str, float] = {}
    read = 0
    for lexeme, count in sorted(documents.items(), key=lambda entry: (entry[1], entry[0])):
        if count == 0:
            continue
        read += count
        if weights and read > budget:
            break
        seen = taken_for(count, total=total, bound=bound)
        weight = inverse_document_frequency(seen, max(total, seen))
        if read > _MANY and weight < _LITTLE * max(weights.values(), default=0.0):
            break  # says next to nothing beside the rarest, and takes most of the time
        weights[lexeme] = weight
    return weights


def rarest_weights(places: Mapping[str, Sequence[int]], weights: Mapping[str, float], pieces: int) -> list[float]:
    """The weight of the rarest lexeme of each piece of a question; 0 of a piece without one, a function word."""
    rarest = [0.0] * pieces
    for lexeme, found in places.items():
        for place in found:
            rarest[place] = max(rarest[place], weights.get(lexeme, 0.0))
    return rarest


def sampled_weights(documents: Sequence[int | None], total: int) -> list[float]:
    """The weight of each piece of a question by how many of a sample of `total` texts hold its rarest word.

    0 of a piece without a word (None).
    """
    return [0.0 if held is None else inverse_document_frequency(held, total) for held in documents]


def piece_weights(rarest: Sequence[float]) -> list[float]:
    """How much each piece of a question counts in its vector: the square root of the weight of what is rarest in it.

    None counts less than a word that every second memory holds, as a function word does.
    """
    return [math.sqrt(max(weight, _FUNCTION_WORD)) for weight in rarest]


def question_mass(documents: Mapping[str, int], *, total: int) -> float:
    """The weight of all words of a question, those that no memory holds included; dates (`@...`) aside."""
    return sum(
        inverse_document_frequency(count, total) for lexeme, count in documents.items() if not lexeme.startswith("@")
    )


def dense_weight(base: float, coverage: float) -> float:
    """The dense branch counts by half more where the best keyword hit covers nothing of the question."""
    return base * (1.0 + _UNCOVERED_GAIN * (1.0 - min(max(coverage, 0.0), 1.0)))


def standing(best: float, spread: float, total: int, times: float) -> float:
    """How far the best of a list is no chance, 0 to 1, by which its evidence counts.

    `best` is its score and `spread` the standard deviation of the scores of all `total` memories, whose mean is 0. The
    best of so many scores that mean nothing stands out by about sqrt(2 ln total) deviations; one that stands out
    `times` as far counts whole, less far by the square.
    """
    chance = math.sqrt(2.0 * math.log(max(total, 2))) * spread * times
    return 1.0 if chance <= 0.0 else min(1.0, (max(best, 0.0) / chance) ** 2)


def sharpness(blurs_beyond: float | None, mean_length: float) -> float:
    """How far a model's nearness is to be trusted among texts of this mean length in lexemes, 0 to 1."""
    return 1.0 if blurs_beyond is None else min(1.0, blurs_beyond / max(mean_length, 1.0))
