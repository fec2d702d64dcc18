"""Audit log of writes and denied accesses, never with a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID, uuid4

from folklore.db.database import Database, Session
from folklore.model import Caller

# For entries that concern no namespace: denied accesses, tokens.
NOWHERE = UUID(int=0)

Write = Literal[
    "store", "update", "merge", "retag", "move", "supersede", "forget", "restore", "undo", "erase", "relate",
    "unrelate", "import", "namespace_create", "namespace_rename", "namespace_describe", "namespace_share",
    "namespace_delete", "namespace_restore", "namespace_merge", "namespace_erase", "token_create", "token_revoke",
    "invite", "join", "preset_save", "preset_delete", "link_create", "sign_in",
]  # fmt: skip
WRITES: tuple[Write, ...] = get_args(Write)

# A larger batch is counted in `amount`.
_NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A write, or denied accesses with the tried action. `memories` are ids, at most 1,000 of `amount`."""

    namespace: UUID
    id: UUID
    at: datetime
    principal: str
    action: str
    outcome: str
    amount: int = 1
    memories: tuple[UUID, ...] = ()
    token: UUID | None = None
    agent: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """Entry to be logged; `amount` counts memories, or anything else if there are none."""

    namespace: UUID
    action: str
    memories: Sequence[UUID] = ()
    amount: int | None = None
    detail: str | None = None
    outcome: str = "done"


async def log_entry(session: Session, entry: NewEntry, *, caller: Caller, now: datetime) -> None:
    """Log a write within its transaction, or denied accesses. One statement."""
    await session.rows(
        "audit/insert",
        namespace=entry.namespace,
        id=uuid4(),
        now=now,
        principal=caller.author,
        token=caller.token,
        agent=caller.agent,
        action=entry.action,
        outcome=entry.outcome,
        amount=len(entry.memories) if entry.amount is None else entry.amount,
        ids=entry.memories[:_NAMED],
        detail=entry.detail,
    )


class Audit:
    """Audit table as the owner of the deployment sees it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def refused(
        self, action: str, *, caller: Caller, now: datetime, amount: int, outcome: str, detail: str
    ) -> None:
        """Log denied accesses. One statement."""
        entry = NewEntry(NOWHERE, action, amount=amount, detail=detail, outcome=outcome)
        async with self._database.session() as session:
            await log_entry(session, entry, caller=caller, now=now)

    async def latest(
        self,
        namespaces: Sequence[UUID],
        *,
        limit: int,
        principal: str | None = None,
        refused: bool = False,
        action: str | None = None,
        since: datetime | None = None,
        after: tuple[datetime, UUID] | None = None,
    ) -> list[Entry]:
        """Return the latest entries, newest first, `after` the one with this time and id. One statement."""
        return await self._database.all(
            Entry,
            "audit/read",
            "fresh",
            namespaces=namespaces,
            principal=principal,
            refused=refused,
            action=action,
            since=since,
            after_at=None if after is None else after[0],
            after_id=None if after is None else after[1],
            fetch=limit,
        )

    async def time_of(self, namespaces: Sequence[UUID], entry: UUID) -> datetime | None:
        """Return the time of an entry; None if these namespaces have no such entry. One statement."""
        row = await self._database.row("audit/time", "fresh", namespaces=namespaces, id=entry)
        return None if row is None else row["at"]

    async def changes(
        self,
        namespaces: Sequence[UUID],
        actions: Sequence[Write],
        *,
        limit: int,
        principal: str | None,
        since: datetime | None,
        until: datetime | None,
    ) -> list[Entry]:
        """Return the latest writes of memories, newest first. One statement."""
        return await self._database.all(
            Entry,
            "audit/changes",
            "fresh",
            namespaces=namespaces,
            actions=actions,
            principal=principal,
            since=since,
            until=until,
            fetch=limit,
        )

    async def drop(self, namespace: UUID, before: datetime, batch: int) -> int:
        """Delete at most `batch` entries from before a time and return how many. One statement."""
        return len(await self._database.rows("audit/delete", "fresh", namespace=namespace, before=before, batch=batch))
