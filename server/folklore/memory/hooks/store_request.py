"""Requests to store what was stated: at the end of a turn up to three times a session, and before it is compacted."""

from collections.abc import Sequence

from folklore.contract.hooks import HookAnswer, HookRequest
from folklore.db.stores.events.injections import OpenStatement
from folklore.memory.context import RequestContext
from folklore.memory.hooks.matches import matches_of, note_of
from folklore.memory.hooks.scope import HookScope
from folklore.memory.hooks.stated import (
    MEANWHILE,
    SAME,
    alike,
    not_stored,
    record_quotations,
    record_statements,
)
from folklore.permissions import may_write_somewhere
from folklore.ranking.injection import LIKELY
from folklore.text.hooks.injected import block
from folklore.text.hooks.statements import statements

# Requests of a session, and statements of one request for which the nearest memory is looked up.
_TIMES = 3
_NEAREST = 3
_ASKS = "Folklore: this was stated here and is not stored yet:"
_HOW = (
    "If a colleague would need it later, store it now with memory_store: one self-contained fact per memory, with its "
    "reason, never a secret. If a note below says nearly the same, update or supersede that one. If not, just finish."
)
BEFORE_COMPACTION = (
    'Keep in the summary, under the heading "To store in Folklore", each decision, convention and found cause of '
    "this session that was not stored with memory_store yet, with its reason; nothing if there is none."
)


async def ask_at_stop(
    context: RequestContext, scope: HookScope, request: HookRequest
) -> HookAnswer:
    """Ask to store each new statement of the session, with the nearest memory of each, up to three times."""
    if scope.ledger is None or not may_write_somewhere(context.caller):
        return HookAnswer()
    ledger = scope.ledger
    place = scope.place
    caller = context.caller.author
    name = scope.session.name
    # An assistant that has just stored something says so, and is not asked for that.
    writings = await ledger.written(
        namespaces=[place.namespace], caller=caller, since=context.now - MEANWHILE
    )
    decided = () if writings else statements(request.message, of_person=False)
    await record_statements(context, scope, (*statements(request.prompt), *decided))
    await record_quotations(
        ledger, scope.ids, scope.session, request.message, context.now
    )
    stated = await ledger.stated(**place.columns, caller=caller)
    left = await not_stored(context, place, stated, name)
    own = [one for one in stated if one.session == name]
    new = _new(own, [one for one in own if one in left])
    asks = sum({one.namespace: one.asks for one in own}.values())
    if not new or asks >= _TIMES or not await ledger.ask(new, caller, context.now):
        return HookAnswer()
    quoted = "\n".join(
        f'{number}. "{one.sentence}"' for number, one in enumerate(new, start=1)
    )
    nearest = await _nearest(context, scope, new)
    notes = [block("Nearest notes:", nearest)] if nearest else []
    return HookAnswer("\n".join([_ASKS, quoted, _HOW, *notes]), asks=True)


def _new(
    stated: Sequence[OpenStatement], remaining: Sequence[OpenStatement]
) -> list[OpenStatement]:
    """Return the statements that were not asked for, in these or nearly these words."""
    sentences = [one.sentence for one in stated if one.asked_at is not None]
    new: list[OpenStatement] = []
    for one in remaining:
        if one.asked_at is None and all(
            alike(one.sentence, sentence) < SAME for sentence in sentences
        ):
            new.append(one)
            sentences.append(one.sentence)
    return new


async def _nearest(
    context: RequestContext, scope: HookScope, stated: Sequence[OpenStatement]
) -> list[str]:
    """Return the nearest memory of each statement as a note, if any is near."""
    groups = [
        await matches_of(context, scope, one.sentence, least=LIKELY, limit=1)
        for one in stated[:_NEAREST]
    ]
    notes = [note_of(context, match) for matches in groups for match in matches]
    return list(dict.fromkeys(notes))


async def ask_before_compaction(
    context: RequestContext, _scope: HookScope, _request: HookRequest
) -> HookAnswer:
    """Ask to keep decisions in the summary: no tool can be called while a session is compacted."""
    if may_write_somewhere(context.caller):
        return HookAnswer(BEFORE_COMPACTION)
    return HookAnswer()
