"""The audit log as people read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.stores.audit import NOWHERE, WRITES, Audit
from folklore.errors import InvalidInput
from folklore.memory.auth.tokens import period, principal_of
from folklore.memory.context import MemoryContext
from folklore.memory.permissions import must_own, require
from folklore.model import Caller

MAX_LIMIT = 1_000

# What refused accesses are noted under besides the calls of the desk: tools, resources and the paths of a server.
TRIED = (
    "memory_store",
    "memory_recall",
    "search_keywords",
    "memory_get",
    "memory_list",
    "memory_update",
    "memory_forget",
    "memory_relate",
    "memory_status",
    "resource status",
    "resource namespaces",
    "resource recent",
    "resource item",
    "http /mcp",
    "http /sse",
    "http /messages/",
    "http /api/",
    "http /metrics",
    "http other",
    "api",
    "export",
)


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
    library: MemoryContext, request: AuditRequest, *, caller: Caller, now: datetime
) -> tuple[AuditLine, ...]:
    """The latest lines, newest first: for the owner, or for who administers the namespaces named.

    Raises InvalidInput, NotFound, Refused.
    """
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT}, not {request.limit}.")
    _must_be_known(request.action)
    if not request.namespaces and caller.access is not None:
        must_own(caller)
    notebooks = await library.notebooks(request.namespaces)
    for notebook in notebooks:
        require(caller, notebook.name, "admin", dry_run=True)
    names = {notebook.id: notebook.name for notebook in notebooks}
    entries = await Audit(library.root.database).latest(
        [*names, *([] if request.namespaces else [NOWHERE])],
        limit=request.limit,
        principal=principal_of(request.principal),
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


def _must_be_known(action: str | None) -> None:
    from folklore.memory.operations import CALLS  # which reads the desk, which reads this

    tried = dict.fromkeys((*TRIED, *(name for name in CALLS if name not in WRITES)))
    if action is not None and action not in WRITES and action not in tried:
        hint = f"Writes are {', '.join(WRITES)}; a refused access is noted under what was tried: {', '.join(tried)}."
        raise InvalidInput("action", "is none that is noted.", hint=hint)
