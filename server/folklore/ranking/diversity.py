"""Diversity: similar texts neither fill an answer, nor does one of two similar texts disappear from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.text.words import words

Id = TypeVar("Id", UUID, str, int)

# Cosine from which two texts begin to count as redundant, and the range to full redundancy. Light rewordings lie at
# 0.94 to 0.99 in the models measured, different facts on one subject below.
_SIMILAR, _RANGE = 0.95, 0.03
# Few texts begin with the same eight words; only those are read to their end.
_OPENING = 8


def maximal_marginal_relevance(
    relevance: NDArray[np.float64], similarity: NDArray[np.float32], limit: int, trade_off: float
) -> list[tuple[int, float]]:
    """Pick `limit` of n candidates, each with the greatest trade_off * relevance - (1 - trade_off) * redundancy.

    Redundancy is the greatest similarity to a picked candidate, 0 for the first pick. `relevance` (n,) in [0, 1];
    `similarity` (n, n). Returns (index, redundancy) in the order picked; equal values go to the lower index. Carbonell
    and Goldstein, SIGIR 1998, equation 1.
    """
    redundancy = np.zeros(len(relevance))
    available = np.ones(len(relevance), dtype=bool)
    picked: list[tuple[int, float]] = []
    while len(picked) < min(limit, len(relevance)):
        value = np.where(available, trade_off * relevance - (1.0 - trade_off) * redundancy, -np.inf)
        best = int(value.argmax())
        nearest = similarity[best] if not picked else np.maximum(redundancy, similarity[best])
        picked.append((best, float(redundancy[best])))
        available[best] = False
        redundancy = np.asarray(nearest, dtype=np.float64)
    return picked


def discounted_relevance(
    relevance: NDArray[np.float64], similarity: NDArray[np.float32], limit: int, trade_off: float
) -> list[tuple[int, float]]:
    """Pick `limit` of n candidates, each with the greatest relevance * trade_off ^ redundancy.

    Redundancy is the number of picked texts that are nearly the same; partial similarity counts in part. Maximal
    marginal relevance subtracts a penalty instead, which puts a text of middling relevance behind the weakest one. A
    decision and its reversal have nearly the same vector: here the second of two stays before every text of less than
    trade_off times its relevance, while a long series of similar texts moves back step by step.

    `relevance` (n,) of any scale; `similarity` (n, n), cosines. Returns (index, redundancy) in the order picked; equal
    values go to the lower index. A trade-off of 1 keeps the order.
    """
    count = len(relevance)
    if trade_off >= 1.0 or count <= 1:
        return [(place, 0.0) for place in range(min(limit, count))]
    repeated = np.clip((similarity - _SIMILAR) / _RANGE, 0.0, 1.0)
    # Most answers repeat nothing: then only the diagonal is above 0.
    distinct = int(np.count_nonzero(repeated)) == int(np.count_nonzero(repeated.diagonal()))
    if distinct and bool((relevance[:-1] >= relevance[1:]).all()):
        return [(place, 0.0) for place in range(min(limit, count))]
    redundancy = np.zeros(count)
    available = np.ones(count, dtype=bool)
    picked: list[tuple[int, float]] = []
    while len(picked) < min(limit, count):
        value = np.where(available, relevance * trade_off**redundancy, -np.inf)
        best = int(value.argmax())
        picked.append((best, float(redundancy[best])))
        available[best] = False
        redundancy += repeated[best]
    return picked


def split_near_duplicates(order: Sequence[Id], text_of: Callable[[Id], str], most: int) -> tuple[list[Id], list[Id]]:
    """Split ids, best first, into `most` representatives and the near-duplicates before the last of them.

    Near-duplicates have the same words in the same order. Vectors take no part: an average of word vectors does not
    distinguish before from after, nor on from off, and a decision must not hide its reversal.
    """
    firsts: dict[tuple[str, ...], Id] = {}
    wordings: set[tuple[str, ...]] = set()
    representatives: list[Id] = []
    near_duplicates: list[Id] = []
    for id_ in order:
        if len(representatives) == most:
            break
        first = firsts.setdefault(tuple(islice(words(text_of(id_)), _OPENING)), id_)
        if first != id_:
            wordings.add(tuple(words(text_of(first))))
            wording = tuple(words(text_of(id_)))
            if wording in wordings:
                near_duplicates.append(id_)
                continue
            wordings.add(wording)
        representatives.append(id_)
    return representatives, near_duplicates
