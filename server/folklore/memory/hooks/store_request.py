"""Requests to store what was decided: at most once a session at its turn's end, and before it is compacted."""

from __future__ import annotations

from folklore.db.stores.audit import NOWHERE
from folklore.memory.context import RequestContext
from folklore.memory.hooks.quotations import record_quotations
from folklore.memory.hooks.scope import scope_of
from folklore.memory.permissions import may_write_somewhere
from folklore.memory.requests import HookRequest
from folklore.memory.results import HookAnswer
from folklore.text.decisions import sounds_decided

_AT_STOP = (
    "Folklore: something seems to have been decided or found out here, and nothing was stored. If a colleague would "
    "need it later, store it now with memory_store: one self-contained fact per memory, with its reason, never a "
    "secret. If not, just finish. This is asked once a session."
)
BEFORE_COMPACTION = (
    'Keep in the summary, under the heading "To store in Folklore", each decision, convention and found cause of '
    "this session that was not stored with memory_store yet, with its reason; nothing if there is none."
)


async def ask_at_stop(context: RequestContext, request: HookRequest) -> HookAnswer:
    """Ask to store decisions, if there was one in the session and the caller stored nothing since it began."""
    scope = await scope_of(context, request)
    if scope.ledger is None or not may_write_somewhere(context.caller):
        return HookAnswer()
    decided = sounds_decided(request.prompt) or sounds_decided(request.message)
    await scope.ledger.enter(scope.place, scope.session, context.now, decided=decided)
    await record_quotations(scope.ledger, scope.ids, scope.session, request.message, context.now)
    # The project may have got its first memory in this session.
    asks = await scope.ledger.ask([NOWHERE, scope.place, *scope.ids], scope.session, context.now)
    return HookAnswer(_AT_STOP, asks=True) if asks else HookAnswer()


async def ask_before_compaction(context: RequestContext, _request: HookRequest) -> HookAnswer:
    """Ask to keep decisions in the summary: no tool can be called while a session is compacted."""
    return HookAnswer(BEFORE_COMPACTION) if may_write_somewhere(context.caller) else HookAnswer()
