"""The shapes of arguments and answers. What is named here is relied upon: keep names, add freely.

Descriptions stand only where a name does not say enough: every session pays for them in tokens.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

from folklore.model import DEFAULT_KIND, Draft

Time = Annotated[datetime, WithJsonSchema({"type": "string"})]
Words = list[str]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class MemoryIn(_In):
    """One memory of a batch."""

    content: str
    summary: str | None = None
    kind: str | None = None
    tags: Words | None = None
    source: str | None = None
    session: str | None = None
    occurred_at: Time | None = None
    importance: float | None = None
    confidence: float | None = None
    priority: int | None = None
    language: str | None = None
    expires_at: Time | None = None
    paths: Words | None = None
    commit: str | None = None
    metadata: dict[str, JsonValue] | None = None
    idempotency_key: str | None = None

    def draft(self) -> Draft:
        """The draft this states."""
        return Draft(
            content=self.content,
            summary=self.summary,
            kind=self.kind or DEFAULT_KIND,
            tags=tuple(self.tags or ()),
            source=self.source,
            session=self.session,
            occurred_at=self.occurred_at,
            importance=self.importance,
            confidence=self.confidence,
            priority=self.priority,
            language=self.language,
            expires_at=self.expires_at,
            paths=tuple(self.paths or ()),
            commit=self.commit,
            metadata=self.metadata,
            idempotency_key=self.idempotency_key,
        )


class FiltersIn(_In):
    """Which memories may answer."""

    kinds: Words | None = None
    tags: Words | None = None
    tag_mode: Literal["any", "all"] = "any"
    tag_match: Literal["prefix", "exact"] = "prefix"
    exclude_tags: Words | None = None
    source_prefix: str | None = None
    session: str | None = None
    author: str | None = None
    paths: Words | None = None
    time: Annotated[str | None, Field(description="e.g. last week, in March 2025, 2025-03-01..2025-03-09")] = None
    since: Time | None = None
    until: Time | None = None
    as_of: Time | None = None
    include_superseded: bool = False


class RankingIn(_In):
    """How results are ranked; the defaults suit nearly every question."""

    preset: Literal["balanced", "keyword", "semantic", "roaming"] = "balanced"
    fusion: Literal["rrf", "weighted"] | None = None
    weights: Annotated[dict[str, float] | None, Field(description="of dense, keyword, relations, or a signal")] = None
    rrf_k: float | None = None
    fetch_multiplier: float | None = None
    mmr_lambda: float | None = None
    min_score: Annotated[float | None, Field(description="leave out results of less evidence, 0 to 1")] = None
    sort: Literal["score", "time_asc", "time_desc", "updated_asc", "updated_desc"] = "score"
    include_reflections: bool | None = None
    reflection_boost: float | None = None
    reflections_only: bool | None = None
    expand: list[Literal["relations", "entities"]] | None = None
    embedding: list[float] | None = None


class StoredOut(BaseModel):
    """What became of one memory."""

    id: str
    status: str


class StoreOut(BaseModel):
    """The answer of memory_store, given after commit."""

    namespace: str
    stored: list[StoredOut]
    note: str | None = None


class DegradedOut(BaseModel):
    """A branch that could not take part."""

    branch: str
    reason: str


class RecallOut(BaseModel):
    """The answer of memory_recall and search_keywords, best first."""

    # Every client checks every answer against this; what a memory carries depends on the format (memory/present.py).
    memories: Annotated[
        list[dict[str, JsonValue]], WithJsonSchema({"type": "array", "items": {"type": "object", "required": ["id"]}})
    ]
    searched: Words
    degraded: list[DegradedOut] | None = None
    truncated: bool | None = None
    cursor: str | None = None
    note: str | None = None
