"""Audit log of writes and denied accesses, never with a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID, uuid4

from folklore.db.database import Session
from folklore.db.store import Store, affected, many, value
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


class Audit(Store):
    """Audit table as the owner of the deployment sees it."""

    read = many(Entry, "fresh", principal=None, refused=False, action=None, since=None, after_at=None, after_id=None)
    time = value(datetime, "fresh")
    changes = many(Entry, "fresh")
    delete = affected("fresh")

    async def refused(
        self, action: str, *, caller: Caller, now: datetime, amount: int, outcome: str, detail: str
    ) -> None:
        """Log denied accesses. One statement."""
        entry = NewEntry(NOWHERE, action, amount=amount, detail=detail, outcome=outcome)
        async with self._database.session() as session:
            await log_entry(session, entry, caller=caller, now=now)
