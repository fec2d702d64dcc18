"""The audit log: who wrote what and when, and who was refused; never a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID, uuid4

from folklore.db.database import Database, Session
from folklore.model import Caller

# What concerns no namespace: refused accesses, tokens.
NOWHERE = UUID(int=0)

Write = Literal[
    "store",
    "update",
    "supersede",
    "forget",
    "undo",
    "erase",
    "relate",
    "unrelate",
    "import",
    "namespace_create",
    "namespace_rename",
    "namespace_describe",
    "namespace_delete",
    "namespace_restore",
    "namespace_erase",
    "token_create",
    "token_revoke",
]
WRITES: tuple[Write, ...] = get_args(Write)

# A batch may hold more; `amount` says how many.
_NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A write, or refused accesses with what was tried. `memories` are ids, at most 1,000 of `amount`."""

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


async def note(
    session: Session,
    namespace: UUID,
    action: Write,
    *,
    caller: Caller,
    now: datetime,
    memories: Sequence[UUID] = (),
    amount: int | None = None,
    detail: str | None = None,
) -> None:
    """Write a line about a write within its transaction. One statement."""
    entry = Entry(
        namespace=namespace,
        id=uuid4(),
        at=now,
        principal=caller.author,
        action=action,
        outcome="done",
        amount=len(memories) if amount is None else amount,
        memories=tuple(memories[:_NAMED]),
        token=caller.token,
        agent=caller.agent,
        detail=detail,
    )
    await _insert(session, entry)


async def _insert(session: Session, entry: Entry) -> None:
    await session.rows(
        "audit/insert",
        namespace=entry.namespace,
        id=entry.id,
        now=entry.at,
        principal=entry.principal,
        token=entry.token,
        agent=entry.agent,
        action=entry.action,
        outcome=entry.outcome,
        amount=entry.amount,
        ids=list(entry.memories),
        detail=entry.detail,
    )


class Audit:
    """The audit table, as the deployment's owner sees it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def refused(
        self, action: str, *, caller: Caller, now: datetime, amount: int, outcome: str, detail: str
    ) -> None:
        """Write a line about refused accesses. One statement."""
        entry = Entry(
            namespace=NOWHERE,
            id=uuid4(),
            at=now,
            principal=caller.author,
            action=action,
            outcome=outcome,
            amount=amount,
            token=caller.token,
            agent=caller.agent,
            detail=detail,
        )
        async with self._database.session() as session:
            await _insert(session, entry)

    async def latest(
        self,
        namespaces: Sequence[UUID],
        *,
        limit: int,
        principal: str | None = None,
        refused: bool = False,
        action: str | None = None,
        since: datetime | None = None,
    ) -> list[Entry]:
        """The latest lines, newest first. One statement."""
        async with self._database.session("fresh") as session:
            rows = await session.rows(
                "audit/read",
                namespaces=list(namespaces),
                principal=principal,
                refused=refused,
                action=action,
                since=since,
                fetch=limit,
            )
        return [
            Entry(
                namespace=row["namespace_id"],
                id=row["id"],
                at=row["at"],
                principal=row["principal"],
                action=row["action"],
                outcome=row["outcome"],
                amount=row["amount"],
                memories=tuple(row["ids"]),
                token=row["token_id"],
                agent=row["agent"],
                detail=row["detail"],
            )
            for row in rows
        ]

    async def drop(self, namespace: UUID, before: datetime, batch: int) -> int:
        """Drop old lines; how many. One statement."""
        async with self._database.session("fresh") as session:
            return len(await session.rows("audit/delete", namespace=namespace, before=before, batch=batch))
