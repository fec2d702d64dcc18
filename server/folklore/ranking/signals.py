"""Signals of a memory that no development set has: tags, ratings, last use, relations. Their weights are set."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from folklore.lazy import NDArray, numpy as np
from folklore.ranking.features import Pool, relations
from folklore.ranking.numbers import RELATED
from folklore.ranking.weights import RATINGS, Ranking

_LOWEST_PRIORITY = 4
# The value of a rating that a memory lacks.
_NEUTRAL = 0.5


def signals_of(
    ranking: Ranking, pool: Pool, rows: Sequence[Any], pieces: Sequence[str], now: datetime
) -> dict[str, NDArray[np.float64]]:
    """Return the signals (n,) of the memories `rows` that have a weight, each times its weight."""
    signals = ranking.signals
    values: dict[str, list[float]] = {}
    spoken = {piece.strip(".,;:!?").casefold() for piece in pieces}
    if signals.tags > 0 and any(row["tags"] for row in rows):
        tags = [{part for tag in row["tags"] for part in (tag, *tag.replace("/", ":").split(":"))} for row in rows]
        values["tags"] = [len(spoken & parts) / max(len(spoken), 1) for parts in tags]
    for name in RATINGS:
        if getattr(signals, name) > 0 and any(row[name] is not None for row in rows):
            values[name] = [_rating(name, row[name]) - _NEUTRAL for row in rows]
    if signals.recency > 0:
        values["recency"] = [
            recency(row["last_recalled_at"] or row["created_at"], now, signals.half_life) for row in rows
        ]
    parts = {name: np.array(value) * float(getattr(signals, name)) for name, value in values.items()}
    return parts | ({"relations": relations(pool) * (RELATED * ranking.relations)} if pool.related else {})


def recency(used_at: datetime, now: datetime, half_life: timedelta) -> float:
    """Return 0.5^(age / half-life), in (0, 1]; a time in the future counts as now."""
    age = max(now - used_at, timedelta())
    return float(0.5 ** (age / half_life))


def _rating(name: str, value: float | None) -> float:
    if value is None:
        return _NEUTRAL
    return (_LOWEST_PRIORITY - value) / (_LOWEST_PRIORITY - 1) if name == "priority" else value
