"""The values every room speaks in: frozen, free of behaviour that needs a database, a model or a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

Vector = Sequence[float]
JsonObject = Mapping[str, object]
StoreStatus = Literal["stored", "duplicate", "superseded_old"]
TagMode = Literal["any", "all"]
TagMatch = Literal["prefix", "exact"]
Sort = Literal["score", "time_asc", "time_desc", "updated_asc", "updated_desc"]
FusionMethod = Literal["rrf", "weighted"]
Role = Literal["reader", "writer", "admin"]
# Whether who comes over HTTP needs a token: as soon as there is one, always, never.
Demand = Literal["auto", "always", "never"]
SecretPolicy = Literal["refuse", "redact", "off"]

DEFAULT_KIND = "note"
DEFAULT_LANGUAGE = "english"


@dataclass(frozen=True, slots=True)
class Grant:
    """A namespace that a token opens, and in which role."""

    namespace: UUID
    name: str
    role: Role


@dataclass(frozen=True, slots=True)
class Access:
    """What a token opens. `key` proves to the database whose transaction it is: a secret, never shown."""

    token: UUID
    key: str = field(repr=False)
    grants: tuple[Grant, ...] = ()

    @property
    def namespaces(self) -> tuple[UUID, ...]:
        """The namespaces it opens."""
        return tuple(grant.namespace for grant in self.grants)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: taken from the authenticated connection or the operating system, never from arguments.

    Without `access` everything is open: the person who runs the process, or the holder of an owner's token. `home` is
    where a token writes when the caller does not say.
    """

    author: str
    agent: str | None = None
    may_write: bool = True
    access: Access | None = None
    token: UUID | None = None
    home: str | None = None


@dataclass(frozen=True, slots=True)
class Namespace:
    """A shared notebook; everything stored hangs on one."""

    id: UUID
    name: str
    language: str = DEFAULT_LANGUAGE
    description: str | None = None
    memories: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    deleted_at: datetime | None = None
    deleted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """What a draft has to do with a memory that is there: from the draft, to `id`."""

    id: UUID
    type: str
    strength: float = 1.0


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory as its author states it, before it is checked, embedded and stored."""

    content: str
    summary: str | None = None
    kind: str = DEFAULT_KIND
    tags: tuple[str, ...] = ()
    source: str | None = None
    session: str | None = None
    position: int | None = None
    occurred_at: datetime | None = None
    importance: float | None = None
    confidence: float | None = None
    priority: int | None = None
    language: str | None = None
    expires_at: datetime | None = None
    paths: tuple[str, ...] = ()
    commit: str | None = None
    metadata: JsonObject | None = None
    idempotency_key: str | None = None
    supersedes: UUID | None = None
    supersede_reason: str | None = None
    related: tuple[Link, ...] = ()
    # Only an import may set these; a tool call cannot.
    id: UUID | None = None
    author: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory, whole."""

    id: UUID
    namespace: str
    content: str
    kind: str
    created_at: datetime
    updated_at: datetime
    author: str
    language: str
    summary: str | None = None
    tags: tuple[str, ...] = ()
    source: str | None = None
    session: str | None = None
    position: int | None = None
    agent: str | None = None
    paths: tuple[str, ...] = ()
    commit: str | None = None
    importance: float | None = None
    confidence: float | None = None
    priority: int | None = None
    quality: float | None = None
    metadata: JsonObject | None = None
    occurred_at: datetime | None = None
    expires_at: datetime | None = None
    forgotten_at: datetime | None = None
    superseded_at: datetime | None = None
    superseded_by: UUID | None = None
    last_recalled_at: datetime | None = None
    recall_count: int = 0
    revision: int = 1

    @property
    def when(self) -> datetime:
        """When it was true, as far as anybody said; else when it was stored."""
        return self.occurred_at or self.created_at


@dataclass(frozen=True, slots=True)
class Similar:
    """A memory that says nearly the same, by the cosine of the two texts."""

    id: UUID
    similarity: float
    content: str
    author: str


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one draft of a batch, and what was there already that says nearly the same."""

    id: UUID
    status: StoreStatus
    similar: tuple[Similar, ...] = ()


@dataclass(frozen=True, slots=True)
class Relation:
    """What one memory has to do with another: typed, directed, of a strength from 0 to 1."""

    from_id: UUID
    type: str
    to_id: UUID
    strength: float = 1.0
    author: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """A change: who, when, and what the columns it touched held before. `revision` is the number until then."""

    memory_id: UUID
    revision: int
    action: str
    author: str
    changed_at: datetime
    before: JsonObject
    agent: str | None = None
    reason: str | None = None
    undoes: int | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """Which memories may answer. Every filter stands in every branch's statement, before its limit."""

    kinds: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    tag_mode: TagMode = "any"
    tag_match: TagMatch = "prefix"
    exclude_tags: tuple[str, ...] = ()
    source_prefix: str | None = None
    session: str | None = None
    author: str | None = None
    paths: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None
    include_superseded: bool = False
    # True: reflections alone; False: none of them.
    reflections: bool | None = None
    # What `since` and `until` were worked out from, if that was words ("past week"): the same words ask for other times
    # a moment later, and a cursor must know the question again.
    said: str | None = field(default=None, compare=False)

    @property
    def empty(self) -> bool:
        """True when nothing is said."""
        return self == Filters()

    @property
    def narrow(self) -> bool:
        """True when something leaves memories out, as how tags are compared and as of when do not by themselves."""
        how = {"tag_mode": "any", "tag_match": "prefix", "as_of": None, "include_superseded": False}
        return replace(self, **how) != Filters()  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Degraded:
    """A branch that could not take part in an answer, and why."""

    branch: str
    reason: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory in an answer, with its place there."""

    memory: Memory
    score: float | None = None
    explain: JsonObject | None = None
    # What brought it in, if it does not answer by itself: relations, entities.
    expanded: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What recall, search and list give back, best first."""

    memories: tuple[Recalled, ...]
    searched: tuple[str, ...]
    degraded: tuple[Degraded, ...] = ()
    truncated: bool = False
    cursor: str | None = None
    note: str | None = None
    explain: JsonObject | None = field(default=None)
    # How many of the memories which branch brought: dense, keyword, both, or neither (beside another, or expanded).
    found_by: Mapping[str, int] = field(default_factory=dict)
