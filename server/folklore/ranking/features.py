"""Features of a candidate besides its branch scores: signals, links in its session, nearness to the question."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from folklore.lazy import NDArray
from folklore.lazy import numpy as np
from folklore.ranking.weights import RATINGS, SIGNALS, Ranking, Signals

Id = TypeVar("Id", bound=Hashable)
Ordered = TypeVar("Ordered", UUID, str, int)

# The value of a rating that a candidate lacks and others have; also the nearness of a candidate without a vector.
_NEUTRAL = 0.5
# Weight of the cosine in words' coverage, as in confidence.
_COSINE = 0.5


def recency(used_at: datetime, now: datetime, half_life: timedelta) -> float:
    """Return 0.5^(age / half-life), in (0, 1]; a time in the future counts as now."""
    age = max(now - used_at, timedelta())
    return float(0.5 ** (age / half_life))


def signal_factors(signals: Signals, candidates: Sequence[Mapping[str, float | None]]) -> list[float]:
    """Return 1 + the weighted sum of the signals of each candidate, each in [0, 1].

    A rating that no candidate has passes its weight to the ratings that some have, in proportion. A factor multiplies
    a score, so signals alone do not bring a memory into an answer.
    """
    factors = [1.0] * len(candidates)
    for name, weight in _effective_weights(signals, candidates).items():
        missing = _NEUTRAL if name in RATINGS else 0.0
        for place, values in enumerate(candidates):
            value = values.get(name)
            factors[place] += weight * (missing if value is None else min(max(value, 0.0), 1.0))
    return factors


def _effective_weights(signals: Signals, candidates: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    """Return the weights of the signals, those of missing ratings passed on."""
    weights: dict[str, float] = {name: getattr(signals, name) for name in SIGNALS}
    rated = {name: weights.pop(name) for name in RATINGS}
    present = {name for values in candidates for name in rated if values.get(name) is not None}
    held = sum(rated[name] for name in present)
    factor = sum(rated.values()) / held if held > 0 else 0.0
    return weights | {name: rated[name] * factor for name in present}


def spread_share(length: float, ranking: Ranking, *, asks: bool) -> float:
    """Return the share of a neighbour's score that a text of so many lexemes takes, 0 to 1.

    min(1, neighbours_longest / length), since a long text has words of its own; times neighbours_asking for a text that
    asks, since that is seldom an answer.
    """
    share = min(1.0, ranking.neighbours_longest / max(length, 1.0))
    return share * ranking.neighbours_asking if asks else share


def session_links(
    sessions: Mapping[object, list[tuple[int, Ordered, float]]], strengths: Sequence[float]
) -> Iterator[tuple[Ordered, Ordered, float]]:
    """Yield the links (from, to, strength) between neighbours of each session, in both directions.

    A session lists (position, id, spread share); the strength is that of the distance times the share of the receiver.
    """
    for members in sessions.values():
        members.sort()
        for place, (position, id_, share) in enumerate(members):
            for other_position, other, other_share in members[place + 1 :]:
                distance = other_position - position
                if distance > len(strengths):
                    break
                if distance > 0:
                    yield id_, other, strengths[distance - 1] * other_share
                    yield other, id_, strengths[distance - 1] * share


def best_passage(coverages: Sequence[float], cosines: Sequence[float]) -> int:
    """Return the place of the passage with the greatest coverage + cosine / 2."""
    values = np.asarray(coverages) + _COSINE * np.asarray(cosines)
    return int(values.argmax())


def nearness_factors(
    cosines: NDArray[np.float32], lengths: Sequence[int | None], line: tuple[float, float], weight: float
) -> list[float]:
    """Return 1 + weight * excess / greatest excess of each candidate (n,), at least 1.

    The excess is cosine - slope * ln(length + 30) - expected, at least 0, with `line` = (slope, expected). A candidate
    without a vector (length None) has half of the greatest. Returns nothing if no candidate has an excess.
    """
    slope, expected = line
    counted = np.array([-1 if length is None else length for length in lengths])
    missing = counted < 0
    excess = np.where(missing, 0.0, cosines - slope * np.log(counted + 30.0) - expected)
    greatest = float(excess.max(initial=0.0))
    if greatest <= 0.0:
        return []
    shares = np.where(missing, _NEUTRAL, np.maximum(excess, 0.0) / greatest)
    factors: list[float] = (1.0 + weight * shares).tolist()
    return factors
