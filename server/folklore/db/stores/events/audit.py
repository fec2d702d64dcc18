"""Audit log of writes and denied accesses, never with a text."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, get_args
from uuid import UUID, uuid4

from folklore.callers import AuditEntry, Caller
from folklore.db.store import Store, affected, many, value

# For entries that concern no namespace, or none in which the caller may read: tokens, denied accesses.
NOWHERE = UUID(int=0)

Write = Literal[
    "store", "update", "merge", "retag", "move", "supersede", "forget", "restore", "undo", "erase", "relate",
    "unrelate", "import", "namespace_create", "namespace_rename", "namespace_describe", "namespace_share",
    "namespace_delete", "namespace_restore", "namespace_merge", "namespace_erase", "token_create", "token_revoke",
    "invite", "join", "link_create", "sign_in",
]  # fmt: skip
WRITES: tuple[Write, ...] = get_args(Write)

# A larger batch is counted in `amount`.
_MOST_IDS = 1_000


def audit_entry(
    action: str,
    *,
    caller: Caller,
    now: datetime,
    namespace: UUID = NOWHERE,
    memories: Sequence[UUID] = (),
    amount: int | None = None,
    detail: str | None = None,
    outcome: str = "done",
) -> dict[str, object]:
    """Return the parameters of audit/insert, which logs a write within its transaction, or denied accesses.

    `amount` counts memories, or anything else if there are none.
    """
    if amount is None:
        amount = len(memories) or 1
    return {
        "id": uuid4(),
        "action": action,
        "outcome": outcome,
        "detail": detail,
        "namespace": namespace,
        "now": now,
        "principal": caller.author,
        "token": caller.token,
        "agent": caller.agent,
        "amount": amount,
        "ids": memories[:_MOST_IDS],
    }


class Audit(Store):
    """Audit table as the owner of the deployment sees it."""

    read = many(
        AuditEntry,
        "fresh",
        principal=None,
        refused=False,
        action=None,
        since=None,
        after_at=None,
        after_id=None,
    )
    time = value(datetime, "fresh")
    delete = affected("fresh")
