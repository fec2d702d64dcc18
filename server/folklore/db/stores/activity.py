"""Statements of the overview and of the activity, over the audit log, the usage log and the injections.

Those logs have no row-level security for readers: call their statements as the owner, with namespaces that the caller
may read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

from folklore.db.database import Database
from folklore.db.rows import made, short


class Place(NamedTuple):
    """The place of an event in the order of events."""

    at: datetime
    id: UUID
    namespace: UUID


@dataclass(frozen=True, slots=True)
class ActivityEvent:
    """Write, or recall of the memories of one namespace; `memories` are the first five of `amount`."""

    namespace: UUID
    id: UUID
    at: datetime
    author: str
    agent: str | None
    action: str
    amount: int
    memories: tuple[UUID, ...]

    @property
    def place(self) -> Place:
        """Its place in the order of events."""
        return Place(self.at, self.id, self.namespace)


@dataclass(frozen=True, slots=True)
class Written:
    """Memories that an author wrote by one action on a day, which is given by its place among the days, from 0."""

    day: int
    author: str
    action: str
    memories: int


@dataclass(frozen=True, slots=True)
class NamespaceAttention:
    """Counts of one namespace: pairs that contradict each other, and memories."""

    namespace: str
    contradictions: int
    unused: int
    tied: int
    without_vector: int = 0


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Memory in an answer or in an injected text."""

    id: UUID
    at: datetime
    kind: Literal["recall", "injection"]
    author: str
    rank: int
    score: float | None
    session: str | None
    used: str | None
    used_at: datetime | None


@dataclass(frozen=True, slots=True)
class AttentionRules:
    """Relations of contradictions, the time since which an unused memory was not used, and the highest count."""

    contradicts: str
    kept: str
    reviewed: str
    unused_since: datetime
    most: int


@dataclass(frozen=True, slots=True)
class SimilarRules:
    """Greatest distance of near-duplicates, relations that settle them, and numbers of memories that are compared."""

    distance: float
    settled: Sequence[str]
    newest: int
    compared: int


class ActivityStatements:
    """The statements of the overview and of the activity. Every method is one.

    Their plans are those for lookups by index: planned for each list of namespaces, Postgres may read all memories
    again for each of thousands of empty ones.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def events(
        self,
        namespaces: Sequence[UUID],
        actions: Sequence[str],
        *,
        author: str | None,
        before: Place,
        recalled_since: datetime,
        limit: int,
    ) -> list[ActivityEvent]:
        """Return the events before a place, newest first, of recalls those since a time."""
        return await self._database.all(
            ActivityEvent,
            "activity/events",
            namespaces=namespaces,
            actions=actions,
            author=author,
            before_at=before.at,
            before_id=before.id,
            before_namespace=before.namespace,
            recalled_since=recalled_since,
            fetch=limit,
        )

    async def events_since(
        self, namespaces: Sequence[UUID], actions: Sequence[str], *, author: str | None, since: datetime, limit: int
    ) -> list[ActivityEvent]:
        """Return the first events from a time on, oldest first."""
        return await self._database.all(
            ActivityEvent,
            "activity/events_since",
            namespaces=namespaces,
            actions=actions,
            author=author,
            since=since,
            fetch=limit,
        )

    async def written(
        self, namespaces: Sequence[UUID], actions: Sequence[str], starts: Sequence[datetime]
    ) -> list[Written]:
        """Count the memories that were written, by day, author and action; `starts` are the beginnings of the days."""
        return await self._database.all(
            Written, "activity/written", namespaces=namespaces, actions=actions, starts=starts
        )

    async def recalled(self, namespaces: Sequence[UUID], starts: Sequence[datetime]) -> dict[int, int]:
        """Count the memories that were recalled on each day, by its place in `starts`."""
        rows = await self._database.rows("activity/recalled", namespaces=namespaces, starts=starts)
        return {row["day"]: row["memories"] for row in rows}

    async def attention(
        self, namespaces: Sequence[UUID], model: UUID | None, rules: AttentionRules, now: datetime
    ) -> list[NamespaceAttention]:
        """Count what wants attention in each namespace; without a model, no pending embeddings are counted."""
        return await self._database.all(
            NamespaceAttention,
            "activity/attention:no_vectors" if model is None else "activity/attention",
            namespaces=namespaces,
            contradicts=rules.contradicts,
            kept=rules.kept,
            reviewed=rules.reviewed,
            before=rules.unused_since,
            day=rules.unused_since.date().isoformat(),
            most=rules.most,
            now=now,
            **({} if model is None else {"model": model}),
        )

    async def newest_similar(
        self, namespaces: Sequence[UUID], model: UUID, rules: SimilarRules, now: datetime
    ) -> dict[str, int]:
        """Count the newest memories that are near-duplicates of older ones, by the name of their namespace."""
        rows = await self._database.rows(
            "activity/newest_similar", namespaces=namespaces, model=model, now=now, **asdict(rules)
        )
        return {row["namespace"]: row["similar"] for row in rows}

    async def uses(self, namespace: UUID, memory: UUID, *, caller: str | None, limit: int) -> list[MemoryUse]:
        """Return the latest uses of a memory, newest first; injections of one caller, or of all."""
        rows = await self._database.rows(
            "activity/uses", namespace=namespace, memory=memory, caller=caller, fetch=limit
        )
        return [made(MemoryUse, row, score=short(row["score"])) for row in rows]
