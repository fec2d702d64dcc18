"""Diversity: similar texts neither fill an answer, nor does one of two similar texts disappear from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from folklore.lazy import NDArray, numpy as np
from folklore.ranking.numbers import RANGE, SIMILAR
from folklore.text.words import words

Id = TypeVar("Id", UUID, str, int)
Key = TypeVar("Key", bound=Hashable)

# Words by which texts are first compared: few begin with the same, and only those are read to their end.
_OPENING = 8
# Words that never turn a meaning.
_ARTICLES = frozenset({"a", "an", "the"})


def maximal_marginal_relevance(
    relevance: NDArray[np.float64],
    similarity: NDArray[np.float32],
    limit: int,
    trade_off: float,
) -> list[tuple[int, float]]:
    """Pick `limit` of n candidates, each with the greatest trade_off * relevance - (1 - trade_off) * redundancy.

    Redundancy is the greatest similarity to a picked candidate, 0 for the first pick. `relevance` (n,) in [0, 1];
    `similarity` (n, n). Returns (index, redundancy) in the order picked; equal values go to the lower index. Carbonell
    and Goldstein, SIGIR 1998, equation 1.
    """
    redundancy = np.zeros(len(relevance))
    picked: list[tuple[int, float]] = []
    while len(picked) < min(limit, len(relevance)):
        value = trade_off * relevance - (1.0 - trade_off) * redundancy
        value[[index for index, _ in picked]] = -np.inf
        best = int(value.argmax())
        to_best = similarity[best].astype(np.float64)
        is_first = not picked
        picked.append((best, float(redundancy[best])))
        redundancy = to_best if is_first else np.maximum(redundancy, to_best)
    return picked


def discounted_relevance(
    relevance: NDArray[np.float64],
    similarity: NDArray[np.float32],
    limit: int,
    trade_off: float,
) -> list[tuple[int, float]]:
    """Pick `limit` of n candidates, each with the greatest relevance * trade_off ^ redundancy.

    Redundancy is the number of picked texts that are nearly the same; partial similarity counts in part. Maximal
    marginal relevance subtracts a penalty instead, which puts a text of middling relevance behind the weakest one. A
    decision and its reversal have nearly the same vector: here the second of two stays before every text of less than
    trade_off times its relevance, while a long series of similar texts moves back step by step.

    `relevance` (n,) of any scale; `similarity` (n, n), cosines. Returns (index, redundancy) in the order picked; equal
    values go to the lower index. A trade-off of 1 keeps the order.
    """
    count = min(limit, len(relevance))
    repeated = np.clip((similarity - SIMILAR) / RANGE, 0.0, 1.0)
    # Most answers repeat nothing: then only the diagonal is above 0.
    repeats_nothing = np.count_nonzero(repeated) == np.count_nonzero(
        repeated.diagonal()
    )
    is_best_first = bool((relevance[:-1] >= relevance[1:]).all())
    if trade_off >= 1.0 or (repeats_nothing and is_best_first):
        return [(index, 0.0) for index in range(count)]

    redundancy = np.zeros(len(relevance))
    picked: list[tuple[int, float]] = []
    while len(picked) < count:
        value = relevance * trade_off**redundancy
        value[[index for index, _ in picked]] = -np.inf
        best = int(value.argmax())
        picked.append((best, float(redundancy[best])))
        redundancy += repeated[best]
    return picked


def group_near_duplicates(
    order: Sequence[Id],
    opening_of: Callable[[Id], str],
    text_of: Callable[[Id], str],
    time_of: Callable[[Id], datetime],
) -> dict[Id, list[Id]]:
    """Group ids, best first, by near-duplicates, in the order of their best ones.

    The key of a group is its newest id, and its value the others, newest first. Near-duplicates have the same words in
    the same order, articles left out. Only texts of the same opening are compared. Vectors take no part: an average of
    word vectors does not distinguish before from after, nor on from off, and a decision must not hide its reversal.
    """
    counts = Counter(map(opening_of, order))
    groups: dict[Hashable, list[Id]] = {}
    for id_ in order:
        key: Hashable = ()
        if counts[opening_of(id_)] > 1:
            key = tuple(word for word in words(text_of(id_)) if word not in _ARTICLES)
        groups.setdefault(key or (id_,), []).append(id_)

    others_by_newest: dict[Id, list[Id]] = {}
    for ids in groups.values():
        if len(ids) > 1:
            ids.sort(key=time_of, reverse=True)
        others_by_newest[ids[0]] = ids[1:]
    return others_by_newest


def opening(plain: str) -> str:
    """Return the first words of a plain text, articles left out: the same for all near-duplicates."""
    most = 4 * _OPENING  # articles among them
    first = plain.split(maxsplit=most)[:most]
    without_articles = [word for word in first if word not in _ARTICLES]
    return " ".join(without_articles[:_OPENING])


def share_words(one: Set[str], other: Set[str], least: float) -> bool:
    """Return True if two texts share this part of all their words (Jaccard index)."""
    both = len(one & other)
    return both > 0 and both >= least * (len(one) + len(other) - both)


def newest_first(order: Sequence[Key], newer: Mapping[Key, Sequence[Key]]) -> list[Key]:
    """Move the newer ids on a subject before the first older one.

    `newer` has for an id the newer ones on its subject, newest first; those that `order` does not have are inserted.
    """
    result: dict[Key, None] = {}

    def add(id_: Key) -> None:
        if id_ not in result:
            for other in newer.get(id_, ()):
                add(other)
            result[id_] = None

    for id_ in order:
        add(id_)
    return list(result)
