"""The audit log as people read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.audit import NOWHERE, Audit
from folklore.errors import InvalidInput
from folklore.memory.access import must_own, require
from folklore.memory.library import Library
from folklore.memory.tokens import period
from folklore.model import Caller

MAX_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """Which lines: of these namespaces (all, with what concerns none, if none is named), of the last `since` (7d)."""

    namespaces: tuple[str, ...] = ()
    principal: str | None = None
    refused: bool = False
    action: str | None = None
    since: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A write or a refused access: by whom, when, what, on how much; never a text of a memory."""

    at: datetime
    principal: str
    action: str
    outcome: str
    amount: int
    namespace: str | None = None
    memories: tuple[UUID, ...] = ()
    token: UUID | None = None
    agent: str | None = None
    detail: str | None = None


async def read_audit(
    library: Library, request: AuditRequest, *, caller: Caller, now: datetime
) -> tuple[AuditLine, ...]:
    """The latest lines, newest first: for the owner, or for who administers the namespaces named.

    Raises InvalidInput, NotFound, Refused.
    """
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT}, not {request.limit}.")
    if not request.namespaces and caller.access is not None:
        must_own(caller)
    notebooks = await library.notebooks(request.namespaces)
    for notebook in notebooks:
        require(caller, notebook.name, "admin", dry_run=True)
    names = {notebook.id: notebook.name for notebook in notebooks}
    entries = await Audit(library.root.database).latest(
        [*names, *([] if request.namespaces else [NOWHERE])],
        limit=request.limit,
        principal=request.principal,
        refused=request.refused,
        action=request.action,
        since=None if request.since is None else now - period(request.since, "since"),
    )
    return tuple(
        AuditLine(
            at=entry.at,
            principal=entry.principal,
            action=entry.action,
            outcome=entry.outcome,
            amount=entry.amount,
            namespace=names.get(entry.namespace),
            memories=entry.memories,
            token=entry.token,
            agent=entry.agent,
            detail=entry.detail,
        )
        for entry in entries
    )
