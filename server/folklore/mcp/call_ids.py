"""What a client says of a call beside its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcp.server.mcpserver import Context

from folklore.memory.request_context import RequestContext
from folklore.model import Draft

_TOOL_USE = "claudecode/toolUseId"


def keyed(ctx: Context[RequestContext], drafts: Sequence[Draft]) -> list[Draft]:
    """Give each draft without an idempotency key one that follows from the client's own id of this call.

    A call that a client sends again after a lost connection then stores nothing twice. Claude Code sends such an id in
    the request's `_meta`; where none comes, nothing changes.
    """
    call = (ctx.request_context.meta or {}).get(_TOOL_USE)
    if not isinstance(call, str) or not 0 < len(call) <= 100:
        return list(drafts)
    return [
        draft if draft.idempotency_key else replace(draft, idempotency_key=f"call:{call}:{place}")
        for place, draft in enumerate(drafts)
    ]
