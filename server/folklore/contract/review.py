"""Events of memories, and memories that want a decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal
from uuid import UUID

from folklore.contract.argument_types import (
    NamespaceNames,
    UpTo200,
    UpTo1000,
    Words,
    between,
)
from folklore.contract.requests import Request, Returns
from folklore.model import Memory, Stale, Whole

# How a review remembers what is kept: the relation of two memories, and the key of metadata with the day.
DISTINCT = "distinct_from"
REVIEWED = "reviewed"
# Actions of events: writes of the text or the fields of memories, and recalls.
Action = Literal[
    "store",
    "import",
    "update",
    "merge",
    "retag",
    "supersede",
    "forget",
    "restore",
    "undo",
    "recall",
]
# The same as people say it: stored 3 memories.
DONE: Mapping[str, str] = {
    "store": "stored", "import": "imported", "update": "changed", "merge": "merged", "retag": "retagged",
    "supersede": "superseded", "forget": "forgot", "restore": "restored", "undo": "undid a change of",
    "recall": "recalled",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Event:
    """Write or recall of `amount` memories of one namespace; `memories` are the first that the caller may read.

    An answer with memories of several namespaces is an event in each, with the same id. `ids` are all memories of a
    write, in a log of the caller's own writes.
    """

    id: UUID
    at: datetime
    author: str
    action: str
    amount: int
    namespace: str
    memories: tuple[Memory, ...]
    agent: str | None = None
    ids: tuple[UUID, ...] = ()


class LogRequest(Request, Returns[tuple[Event, ...]]):
    """Read who stored, changed and forgot memories, newest first; with `mine`, only the caller's own writes."""

    namespaces: NamespaceNames = ()
    kinds: Words = ()
    tags: Words = ()
    author: str | None = None
    time: str | None = None
    mine: bool = False
    limit: UpTo1000 = 50


@dataclass(frozen=True, slots=True)
class Activity:
    """Events, and cursors: `after` the latest ones that were given, `before` the earliest.

    Of a page before another, only `before` is given; of a feed only `after`. With `more`, others follow in the same
    direction.
    """

    events: tuple[Event, ...]
    after: str | None = None
    before: str | None = None
    more: bool = False


class ActivityRequest(Request, Returns[Activity]):
    """Read writes and recalls, newest first: the latest, those `before` a cursor or, oldest first, those `after` one.

    `actions` limits them to some, such as store, forget or recall. Of one author, recalls of the last 30 days are read.
    """

    namespaces: NamespaceNames = ()
    author: str | None = None
    actions: tuple[Action, ...] = ()
    after: str | None = None
    before: str | None = None
    limit: UpTo200 = 50


@dataclass(frozen=True, slots=True)
class Use:
    """Memory in an answer (`recall`) or in a text that a hook injected (`injection`), and its rank there, from 1.

    `session` is that of the server or of the assistant; `used` the first use of an injected memory afterwards.
    """

    id: UUID
    at: datetime
    kind: Literal["recall", "injection"]
    author: str
    rank: int
    score: float | None = None
    session: str | None = None
    used: str | None = None
    used_at: datetime | None = None


class UsesRequest(Request, Returns[tuple[Use, ...]]):
    """Read in which answers a memory was, and in which texts that hooks injected, newest first.

    Injected texts are the caller's own; the owner reads those of every author.
    """

    id: UUID
    namespaces: NamespaceNames = ()
    limit: UpTo200 = 50


@dataclass(frozen=True, slots=True)
class DayCounts:
    """A day in the caller's time zone, and the numbers of memories that were stored and recalled on it."""

    day: date
    stored: int
    recalled: int


@dataclass(frozen=True, slots=True)
class AuthorChanges:
    """An author, an action, and the number of memories that it changed."""

    author: str
    action: str
    memories: int


@dataclass(frozen=True, slots=True)
class Attention:
    """Counts of what wants attention in a namespace. They stop at 100, pending embeddings at 50,000.

    `similar` are those among the newest memories that are near-duplicates of an older one. Memories `tied` to files can
    be stale, which a process with the working copy finds out.
    """

    namespace: str
    contradictions: int
    unused: int
    tied: int
    pending_embeddings: int = 0
    similar: int = 0


@dataclass(frozen=True, slots=True)
class Overview:
    """Numbers of the days, oldest first; changes of the last seven days by author; what wants attention.

    `failed_jobs` are background jobs whose last run failed, for the owner alone.
    """

    days: tuple[DayCounts, ...]
    changes: tuple[AuthorChanges, ...]
    attention: tuple[Attention, ...]
    failed_jobs: tuple[str, ...] = ()


class OverviewRequest(Request, Returns[Overview]):
    """Count what happened in the last `days`, in the caller's time zone, and what wants attention."""

    namespaces: NamespaceNames = ()
    days: Annotated[Whole, between(1, 365)] = 30


ReviewReason = Literal["contradiction", "similar", "unused", "cues"]


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """A memory, or two of which the older comes first, that want a decision.

    `similarity` is that of near-duplicates. Stale memories have the files that changed; a process that has the working
    copy finds them.
    """

    reason: ReviewReason | Literal["stale"]
    memories: tuple[Memory, ...]
    similarity: float | None = None
    stale: tuple[Stale, ...] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """Memories of a namespace that want a decision. `after` continues; None at the end."""

    namespace: str
    items: tuple[ReviewItem, ...]
    after: UUID | None = None


class ReviewRequest(Request, Returns[Review]):
    """List memories of a namespace that want a decision for a reason, near-duplicates page by page (`after`)."""

    reason: ReviewReason
    namespace: str | None = None
    after: UUID | None = None
    unused_days: Annotated[Whole, between(1, 36_500)] = 180
    limit: UpTo1000 = 50
