"""The audit log: who wrote what and when, and who was refused; never a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

from folklore.db.database import Database, Session
from folklore.model import Caller

# What concerns no namespace: refused accesses, tokens.
NOWHERE = UUID(int=0)
# A batch may hold more; `amount` says how many.
_NAMED = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of it. `memories` are ids, at most 1,000 of `amount`."""

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
    action: str,
    *,
    caller: Caller,
    now: datetime,
    memories: Sequence[UUID] = (),
    amount: int | None = None,
    outcome: str = "done",
    detail: str | None = None,
) -> None:
    """Write a line within the caller's transaction. One statement."""
    await session.rows(
        "audit_insert",
        namespace=namespace,
        id=uuid4(),
        now=now,
        principal=caller.author,
        token=caller.token,
        agent=caller.agent,
        action=action,
        outcome=outcome,
        amount=len(memories) if amount is None else amount,
        ids=list(memories[:_NAMED]),
        detail=detail,
    )


class Audit:
    """The audit table, as the deployment's owner sees it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def note(
        self,
        namespace: UUID,
        action: str,
        *,
        caller: Caller,
        now: datetime,
        amount: int = 1,
        outcome: str = "done",
        detail: str | None = None,
    ) -> None:
        """Write a line on its own. One statement."""
        async with self._database.session() as session:
            await note(
                session, namespace, action, caller=caller, now=now, amount=amount, outcome=outcome, detail=detail
            )

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
                "audit_read",
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
            return len(await session.rows("audit_drop", namespace=namespace, before=before, batch=batch))
