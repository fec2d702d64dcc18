"""Features of the candidates of a question: named, pure functions of what was read of them.

Those in RELEVANCE make up the relevance, which orders; those in CONFIDENCE depend on nothing but the question, the
memory and its neighbours in the session. The weights of both are trained (ranking/trained.py). Signals are what no
development set has: tags, ratings, last use, relations. Their weights are set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any

from folklore.lazy import NDArray, numpy as np
from folklore.ranking.numbers import (
    ASKING,
    BESIDE,
    DATE,
    ENOUGH,
    LEAST_FETCHED,
    LONG,
    NEAREST,
    NEIGHBOUR,
    PADDING,
    RANK,
    RELATED,
)
from folklore.ranking.weights import SIGNALS, Ranking

_LOWEST_PRIORITY = 4
# The value of a rating that a memory lacks.
_NEUTRAL = 0.5
# In place of 0 as a divisor.
_TINY = 1e-9


@dataclass(frozen=True)
class CueFacts:
    """Facts about the cues of n candidates: `cued` (n,) says which have any, the others are as those of texts."""

    cued: NDArray[np.bool_]
    cosines: NDArray[np.float64]
    in_cues: NDArray[np.bool_]
    sequence: NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """Facts about n candidates: a row for each; columns are words of the question.

    These are facts about the texts alone, but for `cues`; `nearest`, `in_text_or_cues` and `in_sequence` are the better of both.
    """

    # BM25 scores (n,), 0 outside the list of that branch, which ends after `fetched`.
    keyword: NDArray[np.float64]
    fetched: int
    # Cosines (n,) with the question, 0 without a vector.
    cosines: NDArray[np.float64]
    # Vectors (n, dimensions), that of the question if it can be compared, and the cosine of an unrelated text, which is
    # above 0 with some models.
    vectors: NDArray[np.float32]
    question: NDArray[np.float32] | None
    unrelated: float
    # Whether a candidate holds a word in any form (n, words): a long text in its best passage, and anywhere in it.
    in_text: NDArray[np.bool_]
    anywhere: NDArray[np.bool_]
    # The weight of each word (words,) by its rarity among the memories, and by its letters, which depend on no memory;
    # and whether it is a name.
    rarity: NDArray[np.float64]
    letters: NDArray[np.float64]
    names: NDArray[np.bool_]
    # The weight of the pairs of adjacent words that a text has in sequence (n,), and of all pairs.
    sequence: NDArray[np.float64]
    pairs: float
    # The nearness to a date of the question (n,), None if it names none.
    dates: NDArray[np.float64] | None
    # Lengths in lexemes (n,), and whether a text asks.
    lengths: NDArray[np.float64]
    asks: NDArray[np.bool_]
    # The rows (n, 4) of the neighbours one before and one after in the session, and two; -1 for none.
    beside: NDArray[np.int64]
    # Relations: the row of a memory, that of the related one, and the strength.
    related: Sequence[tuple[int, int, float]] = ()
    # None where no candidate has any.
    cues: CueFacts | None = None

    @cached_property
    def nearest(self) -> NDArray[np.float64]:
        """The cosine (n,) of the text or the cues, whichever is greater."""
        return self.nearer_by_cues(self.cosines)

    def above_unrelated(self, cosines: Any) -> Any:
        """Return cosines on a scale on which that of an unrelated text is 0."""
        return (cosines - self.unrelated) / (1.0 - self.unrelated)

    def nearer_by_cues(self, cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return cosines (n,), those of the cues where they are greater."""
        if self.cues is None:
            return cosines
        with_vector = self.cues.cosines != 0.0
        return np.where(with_vector, np.maximum(cosines, self.cues.cosines), cosines)

    @cached_property
    def in_text_or_cues(self) -> NDArray[np.bool_]:
        """The words (n, words) that the text, a long one in its best passage, or the cues hold."""
        if self.cues is None:
            return self.in_text
        return self.in_text | self.cues.in_cues

    @cached_property
    def in_sequence(self) -> NDArray[np.float64]:
        """The weight (n,) of pairs in sequence in the text or the cues, whichever is greater."""
        if self.cues is None:
            return self.sequence
        return np.maximum(self.sequence, self.cues.sequence)

    @cached_property
    def in_neighbours_alone(self) -> NDArray[np.bool_]:
        """The words (n, words) that a direct neighbour holds, and neither text nor cues."""
        of_direct_neighbours = _with_zeros(self.anywhere)[self.beside[:, :2]]
        only_there: NDArray[np.bool_] = (
            of_direct_neighbours.any(axis=1) & ~self.anywhere
        )
        if self.cues is None:
            return only_there
        return only_there & ~self.cues.in_cues

    @cached_property
    def dense_ranks(self) -> NDArray[np.int64]:
        """The number of candidates (n,) with a greater cosine; -1 for those without a vector."""
        return np.where(self.nearest != 0.0, _ranks(self.nearest), -1)

    @cached_property
    def reciprocal(self) -> NDArray[np.float64]:
        """The sum of the reciprocal ranks (n,) by BM25 and by cosine; ranks by cosine count up to LEAST_FETCHED."""
        keyword_ranks = np.where(self.keyword > 0.0, _ranks(self.keyword), -1)
        among_first = self.dense_ranks < LEAST_FETCHED
        by_cosine = np.where(among_first, cosine_rank(self), 0.0)
        return _reciprocal(keyword_ranks) + by_cosine


def keyword_excess(pool: Pool) -> NDArray[np.float64]:
    """Return how far the BM25 score exceeds that of any memory outside the list, as a share of the greatest excess.

    Outside a full list no score is above its least one; outside a shorter list all are 0.
    """
    scores = pool.keyword[pool.keyword > 0.0]
    least = 0.0
    if len(scores) >= pool.fetched:
        least = float(scores.min())
    greatest_excess = float(scores.max(initial=0.0)) - least
    excess = np.maximum(pool.keyword - least, 0.0)
    return excess / max(greatest_excess, _TINY)


def scaled_cosine(pool: Pool) -> NDArray[np.float64]:
    """Return twice the cosine less the mean cosine with the nearest other candidates, as a share of the greatest value.

    A text that is near to many others is near to most questions (Conneau and others 2018, section 2.3, for one side).
    """
    to_each_other = pool.vectors @ pool.vectors.T
    np.fill_diagonal(to_each_other, -1.0)
    count = min(NEAREST, len(to_each_other) - 1)
    if count > 0:
        nearest_others = -np.partition(-to_each_other, count)[:, :count]
        density = nearest_others.mean(axis=1)
    else:
        density = pool.unrelated
    values = 2.0 * pool.nearest - pool.above_unrelated(density)
    values = np.where(pool.nearest != 0.0, np.maximum(values, 0.0), 0.0)
    return values / max(float(values.max(initial=0.0)), _TINY)


def cosine_rank(pool: Pool) -> NDArray[np.float64]:
    """Return 1 / (1 + rank / 10) among the cosines of the candidates, 0 without a vector."""
    return _reciprocal(pool.dense_ranks)


def coverage(pool: Pool) -> NDArray[np.float64]:
    """Return the share of the question's words that the text, a long one in its best passage, holds, by rarity.

    A date of the question counts as its rarest word.
    """
    weight = pool.in_text_or_cues @ pool.rarity
    total = float(pool.rarity.sum())
    if pool.dates is not None:
        rarest = float(pool.rarity.max(initial=1.0))
        weight = weight + rarest * pool.dates
        total = total + rarest
    return _share(weight, total)


def context(pool: Pool) -> NDArray[np.float64]:
    """Return the share of the question's words that only a direct neighbour holds, by rarity."""
    return _share(pool.in_neighbours_alone @ pool.rarity, pool.rarity.sum())


def sequence(pool: Pool) -> NDArray[np.float64]:
    """Return the share of the question's pairs of adjacent words that the text has in sequence."""
    return _share(pool.in_sequence, pool.pairs)


def neighbours(pool: Pool, columns: slice = slice(2)) -> NDArray[np.float64]:
    """Return the reciprocal ranks of the neighbours, less for a long text and for one that asks.

    They are those of these columns of `beside`: the direct ones unless others are given.
    """
    rows = pool.beside[:, columns]
    nearby: NDArray[np.float64] = _with_zeros(pool.reciprocal)[rows].sum(axis=1)
    less_for_long = LONG / np.maximum(pool.lengths, LONG)
    less_for_asking = np.where(pool.asks, ASKING, 1.0)
    return nearby * less_for_long * less_for_asking


def relations(pool: Pool) -> NDArray[np.float64]:
    """Return the reciprocal ranks of related candidates, times the strength of the relation."""
    values = np.zeros(len(pool.keyword))
    for row, related_row, strength in pool.related:
        values[row] += strength * pool.reciprocal[related_row]
    return values


def letters_held(pool: Pool) -> NDArray[np.float64]:
    """Return the share of the question's words that the text or the cues hold, by their letters.

    Those that only a neighbour holds count less. It is as if the question had one more word, which no text has.
    """
    words = pool.in_text_or_cues + NEIGHBOUR * pool.in_neighbours_alone
    weight = words @ pool.letters
    total = float(pool.letters.sum())
    if pool.dates is not None:
        weight = weight + DATE * pool.dates
        total = total + DATE
    return _share(weight, total + min(total, PADDING))


def sequence_held(pool: Pool) -> NDArray[np.float64]:
    """Return `sequence` as if the question had one more pair, which no text has."""
    return _share(pool.in_sequence, pool.pairs + min(pool.pairs, PADDING))


def meaning(pool: Pool) -> NDArray[np.float64]:
    """Return the cosine of the question with the memory and half of its direct neighbours."""
    if pool.question is None:
        return np.zeros(len(pool.keyword))
    padded = _with_zeros(pool.vectors)
    before = padded[pool.beside[:, 0]]
    after = padded[pool.beside[:, 1]]
    vectors = pool.vectors + BESIDE * (before + after)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    cosines = vectors @ pool.question / np.maximum(lengths, _TINY)
    return pool.nearer_by_cues(pool.above_unrelated(cosines.astype(float)))


def unnamed(pool: Pool) -> NDArray[np.float64]:
    """Return 1 if the question has names, and neither the text nor a direct neighbour holds one."""
    if not pool.names.any():
        return np.zeros(len(pool.keyword))
    words = pool.in_text_or_cues | pool.in_neighbours_alone
    has_a_name = words[:, pool.names].any(axis=1)
    return np.where(has_a_name, 0.0, 1.0)


def cue_cosine(pool: Pool) -> NDArray[np.float64]:
    """Return the cosine of the cues, 0 without any."""
    if pool.cues is None:
        return np.zeros(len(pool.keyword))
    return np.maximum(pool.cues.cosines, 0.0)


def cue_coverage(pool: Pool) -> NDArray[np.float64]:
    """Return the share of the question's words that the cues hold, by rarity."""
    if pool.cues is None:
        return np.zeros(len(pool.keyword))
    return _share(pool.cues.in_cues @ pool.rarity, float(pool.rarity.sum()))


def cue_words(pool: Pool) -> NDArray[np.float64]:
    """Return how many words of the question the cues hold, by their letters, from 0 to nearly 1.

    It is no share of the question: a remark of two words is soon covered by chance, and five
    words that the cues of one memory hold say as much in a long question as in a short one.
    """
    if pool.cues is None:
        return np.zeros(len(pool.keyword))
    weight = pool.cues.in_cues @ pool.letters
    return weight / (weight + ENOUGH)


def cued(pool: Pool) -> NDArray[np.float64]:
    """Return 1 for a memory with cues: it has two texts that may resemble a question by chance."""
    if pool.cues is None:
        return np.zeros(len(pool.keyword))
    return pool.cues.cued.astype(float)


Feature = Callable[[Pool], "NDArray[np.float64]"]
Parts = dict[str, "NDArray[np.float64]"]
# The features of a preset's weight `keyword`, `dense`, `exact`, `neighbours`, `relations`: it multiplies theirs.
RELEVANCE: Mapping[str, tuple[Feature, str]] = {
    "keyword excess": (keyword_excess, "keyword"),
    "scaled cosine": (scaled_cosine, "dense"),
    "cosine rank": (cosine_rank, "dense"),
    "coverage": (coverage, "keyword"),
    "context": (context, "neighbours"),
    "sequence": (sequence, "exact"),
    "neighbours": (neighbours, "neighbours"),
    "neighbours beyond": (partial(neighbours, columns=slice(2, 4)), "neighbours"),
    "cue coverage": (cue_coverage, "keyword"),
    "cue cosine": (cue_cosine, "dense"),
}


def group_of(name: str) -> str:
    """Return the group of a part of the relevance; `signals` for those that are no feature."""
    return RELEVANCE[name][1] if name in RELEVANCE else "signals"


CONFIDENCE: Mapping[str, Feature] = {
    "letters held": letters_held,
    "sequence held": sequence_held,
    "meaning": meaning,
    "unnamed": unnamed,
    "cue words": cue_words,
    "cue meaning": cue_cosine,
    "cued": cued,
}
# Features that are 0 for a memory without cues.
OF_CUES = frozenset(("cue coverage", "cue cosine", "cue words", "cue meaning", "cued"))


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of greater scores for each (n,): equal ones have equal ranks."""
    return np.searchsorted(np.sort(-scores), -scores)


def _reciprocal(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(ranks >= 0, 1.0 / (1.0 + ranks / RANK), 0.0)


def _with_zeros(rows: NDArray[Any]) -> NDArray[Any]:
    """Return rows with one of zeros at the end, where the index -1 of a missing neighbour finds it."""
    return np.concatenate([rows, np.zeros_like(rows[:1])])


def _share(values: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    if total > 0:
        return values / total
    return np.zeros(len(values))


def signals_of(
    ranking: Ranking,
    pool: Pool,
    rows: Sequence[Any],
    tokens: Sequence[str],
    now: datetime,
) -> Parts:
    """Return the signals (n,) of the memories `rows` that have a weight, each times its weight."""
    parts: Parts = {}
    words = frozenset(token.strip(".,;:!?").casefold() for token in tokens)
    half_life = ranking.signals.half_life
    for name in SIGNALS:
        weight = float(getattr(ranking.signals, name))
        if weight <= 0:
            continue
        values = [_signal(name, row, words, now, half_life) for row in rows]
        if any(value is not None for value in values):
            parts[name] = np.array([value or 0.0 for value in values]) * weight
    if pool.related:
        parts["relations"] = relations(pool) * (RELATED * ranking.relations)
    return parts


def _signal(
    name: str, row: Any, words: frozenset[str], now: datetime, half_life: timedelta
) -> float | None:
    """Return a signal of a memory, None without one: a rating by its distance from the middle."""
    if name == "recency":
        return recency(row["last_recalled_at"] or row["created_at"], now, half_life)
    if name == "tags":
        return _share_in_tags(words, row["tags"])
    rating = row[name]
    if rating is None:
        return None
    if name == "priority":
        rating = (_LOWEST_PRIORITY - rating) / (_LOWEST_PRIORITY - 1)
    return float(rating) - _NEUTRAL


def _share_in_tags(words: frozenset[str], tags: Sequence[str]) -> float | None:
    """Return the share of words that are tags or levels of tags, None without tags."""
    if not tags:
        return None
    names = set(tags)
    for tag in tags:
        names.update(tag.replace("/", ":").split(":"))
    return len(words & names) / max(len(words), 1)


def recency(used_at: datetime, now: datetime, half_life: timedelta) -> float:
    """Return 0.5^(age / half-life), in (0, 1]; a time in the future counts as now."""
    age = max(now - used_at, timedelta())
    return float(0.5 ** (age / half_life))
