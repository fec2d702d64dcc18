"""What is known of a memory beside its text, and how it moves what that says: a factor, never a score of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cache

_NEUTRAL = 0.5


@dataclass(frozen=True, slots=True)
class Signals:
    """The weight of each signal; a weight of 1 doubles what a memory at the signal's top has of its own evidence.

    Each is worth something only to those who use it; benchmarks/RESULTS.md has what each was measured to do.
    """

    # How much of the question stands in the text as it is spelled, words side by side (text/exact.py).
    exact: float = 1.0
    # The share of the question's weight that the memory's words cover. Off: the branches weigh it already.
    overlap: float = 0.0
    # The share of the question's words that are tags of the memory.
    tags: float = 0.2
    # As its author or the team rated it; a memory nobody rated lies in the middle.
    importance: float = 0.2
    confidence: float = 0.1
    priority: float = 0.1
    # 0.5^(age / half-life) since the last use. Off: what is older is not less true.
    recency: float = 0.0
    half_life: timedelta = timedelta(days=30)

    @property
    def rated(self) -> tuple[str, ...]:
        """Those a memory may lack: their weight is handed on where nobody has them."""
        return ("importance", "confidence", "priority")

    @classmethod
    @cache
    def names(cls) -> tuple[str, ...]:
        """All of them."""
        return tuple(field.name for field in fields(cls) if field.name != "half_life")


def recency(used_at: datetime, now: datetime, half_life: timedelta) -> float:
    """0.5^(age / half-life), in (0, 1]; a time in the future counts as now."""
    age = max(now - used_at, timedelta())
    return float(0.5 ** (age / half_life))


def factors(signals: Signals, found: Sequence[Mapping[str, float | None]]) -> list[float]:
    """The factor of each candidate, at least 1: 1 + the weighted sum of its signals, each in [0, 1].

    A rating that no candidate has hands its weight on to those ratings that some have, in proportion; a candidate
    without a rating that others have lies in the middle. Multiplied with the evidence of the text, nothing here carries
    a memory that does not answer.
    """
    weights: dict[str, float] = {name: getattr(signals, name) for name in Signals.names()}
    rated = [name for name in signals.rated if weights[name] > 0]
    there = [name for name in rated if any(values.get(name) is not None for values in found)]
    whole, held = sum(weights[name] for name in rated), sum(weights[name] for name in there)
    for name in rated:
        weights[name] = weights[name] * whole / held if name in there else 0.0
    unsaid = {name: _NEUTRAL if name in there else 0.0 for name in weights}
    weighing = [(name, weight, unsaid[name]) for name, weight in weights.items() if weight > 0]
    result = [1.0] * len(found)
    for name, weight, otherwise in weighing:
        for place, values in enumerate(found):
            value = values.get(name)
            if value is None:
                result[place] += weight * otherwise
            elif value > 0.0:
                result[place] += weight * min(value, 1.0)
    return result
