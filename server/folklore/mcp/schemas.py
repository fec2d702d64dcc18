"""The shapes of arguments and answers. What is named here is relied upon: keep names, add freely.

Descriptions stand only where a name does not say enough: every session pays for them in tokens.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, WithJsonSchema

from folklore.model import DEFAULT_KIND, Draft, Link


def _time(value: object) -> object:
    # pydantic would take "2024" for seconds since 1970.
    if value is None or isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(str(value).strip())
    except ValueError:
        raise ValueError("must be an ISO 8601 time such as 2025-06-30 or 2025-06-30T09:30:00+02:00") from None


Time = Annotated[datetime, BeforeValidator(_time), WithJsonSchema({"type": "string"})]
Id = Annotated[UUID, WithJsonSchema({"type": "string"})]
Ids = Annotated[list[Id], Field(min_length=1, max_length=100)]
Words = list[str]
# Clients check answers against this schema; the format decides what a memory carries (memory/serializers.py).
Records = Annotated[
    list[dict[str, JsonValue]], WithJsonSchema({"type": "array", "items": {"type": "object", "required": ["id"]}})
]
Objects = Annotated[list[dict[str, JsonValue]], WithJsonSchema({"type": "array", "items": {"type": "object"}})]


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class LinkIn(_In):
    """What a new memory has to do with one that is there."""

    id: Id
    type: str | None = None
    strength: float | None = None


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
    supersedes: Id | None = None
    supersede_reason: str | None = None
    related: list[LinkIn] | None = None

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
            supersedes=self.supersedes,
            supersede_reason=self.supersede_reason,
            related=tuple(
                Link(link.id, link.type or "relates_to", 1.0 if link.strength is None else link.strength)
                for link in self.related or ()
            ),
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
    weights: Annotated[
        dict[str, float] | None, Field(description="of dense, keyword, relations, nearness or a signal")
    ] = None
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
    """What became of one memory, and what says nearly the same: id, similarity, content, author."""

    id: str
    status: str
    similar: Annotated[list[dict[str, JsonValue]] | None, WithJsonSchema({"type": "array"})] = None


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

    memories: Records
    searched: Words
    degraded: list[DegradedOut] | None = None
    truncated: bool | None = None
    cursor: str | None = None
    note: str | None = None


class RelationIn(_In):
    """A relation to be there, or with `remove` not to be."""

    from_: Annotated[Id, Field(alias="from")]
    to: Id
    type: str = "relates_to"
    strength: Annotated[float | None, Field(description="0 to 1")] = None
    remove: bool = False


class GetOut(BaseModel):
    """The answer of memory_get; `missing` are nowhere."""

    memories: Records
    missing: Words | None = None


class RecordOut(BaseModel):
    """A memory whole; what else it carries depends on what is set."""

    model_config = ConfigDict(extra="allow")

    id: str
    content: str
    revision: int


class ForgetOut(BaseModel):
    """The answer of memory_forget: what was forgotten, or with dry_run would be."""

    forgotten: Records
    already_forgotten: Words | None = None
    erased: bool | None = None
    dry_run: bool | None = None
    more: bool | None = None


class RelateOut(BaseModel):
    """The answer of memory_relate; each relation with from, type, to, strength."""

    created: Objects
    updated: Objects | None = None
    removed: Objects | None = None
    failed: Objects | None = None


class StatusOut(BaseModel):
    """The answer of memory_status."""

    version: str
    engine: str
    namespaces: Objects
    model: dict[str, JsonValue] | None = None
    embedding_debt: int | None = None
    degraded: list[DegradedOut] | None = None
