"""What the desk is asked and gives, as values that JSON can carry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from folklore.db.stores.namespaces import NamespaceStats
from folklore.errors import InvalidInput
from folklore.memory.filters import FilterRequest
from folklore.memory.records.update import FIELDS
from folklore.model import Sort
from folklore.ranking.weights import Ranking, chosen

# Of what type a field is that may be changed; all others are text.
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "tags": (list, tuple), "paths": (list, tuple), "occurred_at": datetime, "expires_at": datetime,
    "importance": (int, float), "confidence": (int, float), "priority": int, "metadata": Mapping,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class RankingRequest:
    """A preset and the numbers that differ from it, as ranking.weights.chosen takes them."""

    preset: str = "balanced"
    weights: Mapping[str, float] = field(default_factory=dict)
    fusion: str | None = None
    rrf_k: float | None = None
    fetch_multiplier: float | None = None
    mmr_lambda: float | None = None
    min_score: float | None = None
    include_reflections: bool | None = None
    reflections_only: bool | None = None
    reflection_boost: float | None = None
    expand: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What `recall` is asked."""

    query: str
    namespaces: tuple[str, ...] = ()
    limit: int = 10
    filters: FilterRequest = FilterRequest()
    ranking: RankingRequest = RankingRequest()
    sort: Sort = "score"
    max_tokens: int | None = None
    cursor: str | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What is exported: these namespaces, or all that the caller may read; with or without vectors."""

    namespaces: tuple[str, ...] = ()
    embeddings: bool = False


@dataclass(frozen=True, slots=True)
class Stats:
    """What namespaces hold, exactly; without a model it is not known which memories owe a vector."""

    namespaces: tuple[NamespaceStats, ...]
    model: str | None
    engine: str


def ranking_of(request: RankingRequest) -> Ranking:
    """The ranking asked for. Raises InvalidInput."""
    return chosen(**{name: getattr(request, name) for name in RankingRequest.__dataclass_fields__})


def given_value(name: str, value: object) -> object:
    """The value of a field as JSON brought it, a time read from its text. Raises InvalidInput for another type."""
    if name.endswith("_at") and isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(name, "is not an ISO 8601 time.") from None
    wanted = _KINDS.get(name, str if name in FIELDS else object)
    parts = value if isinstance(value, list | tuple) else ()
    if isinstance(value, bool) or not isinstance(value, wanted) or not all(isinstance(part, str) for part in parts):
        raise InvalidInput(name, "has a value of the wrong type.")
    return value
