"""Statements of the overview and of the activity, over the audit log, the usage log and the injections.

Those logs have no row-level security for readers: call their statements as the owner, with namespaces that the caller
may read.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from folklore.db.rows import Value, made
from folklore.db.store import Store, many, pairs


class EventKey(NamedTuple):
    """The values by which an event is sorted."""

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
    def key(self) -> EventKey:
        """Its sort key."""
        return EventKey(self.at, self.id, self.namespace)


@dataclass(frozen=True, slots=True)
class DayWrites:
    """Memories that an author wrote by one action on a day, which is given by its index among the days, from 0."""

    day: int
    author: str
    action: str
    memories: int


@dataclass(frozen=True, slots=True)
class AttentionRules:
    """Relations of contradictions, the time since which an unused memory was not used, and the highest count."""

    contradicts: str
    kept: str
    reviewed: str
    before: datetime
    day: str
    most: int


class ActivityStatements(Store):
    """The statements of the overview and of the activity.

    Most plans are those for lookups by index: planned for each list of namespaces, Postgres may read all memories
    again for each of thousands of empty ones.
    """

    changes = many(ActivityEvent, "fresh")
    events = many(ActivityEvent)
    events_since = many(ActivityEvent)
    written = many(DayWrites)
    recalled = pairs(int, int)
    newest_similar = pairs(str, int)

    async def attention(
        self,
        counts: type[Value],
        namespaces: Sequence[UUID],
        model: UUID | None,
        rules: AttentionRules,
        now: datetime,
    ) -> list[Value]:
        """Return the `counts` of what wants attention in each namespace, without a model none of pending embeddings."""
        statement = "activity/attention"
        values = asdict(rules)
        if model is None:
            statement = "activity/attention:no_vectors"
        else:
            values["model"] = model
        rows = await self.rows(statement, namespaces=namespaces, now=now, **values)
        return [made(counts, row) for row in rows]
