"""Requests to store what was stated: at the end of a turn up to three times a session, and before it is compacted."""

from collections.abc import Sequence

from folklore.contract.hooks import HookAnswer, HookRequest
from folklore.db.stores.events.injections import Injections, OpenAssertion
from folklore.memory.context import RequestContext
from folklore.memory.hooks.note_candidates import candidates_of, note_of
from folklore.memory.hooks.scope import HookScope
from folklore.memory.hooks.stated import (
    LEAST_SHARE,
    TURN,
    record_assertions,
    record_quotations,
    settle_stored,
    shared_words,
)
from folklore.permissions import may_write_somewhere
from folklore.ranking.injection import LIKELY
from folklore.text.hooks.assertions import assertions
from folklore.text.hooks.injected import block

_SILENCE = HookAnswer()
_MOST_REQUESTS = 3  # of one session
# Assertions of one request for which the nearest memory is looked up.
_MOST_LOOKED_UP = 3
_NOT_STORED = "Folklore: this was stated here and is not stored yet:"
_HOW_TO_STORE = (
    "If a colleague would need it later, store it now with memory_store: one self-contained fact per memory, with its "
    "reason, never a secret. If a note below says nearly the same, update or supersede that one. If not, just finish."
)
_BEFORE_COMPACTION = (
    'Keep in the summary, under the heading "To store in Folklore", each decision, convention and found cause of '
    "this session that was not stored with memory_store yet, with its reason; nothing if there is none."
)


async def ask_at_stop(
    context: RequestContext, scope: HookScope, request: HookRequest
) -> HookAnswer:
    """Ask to store each new assertion of the session, with the nearest memory of each, up to three times."""
    if scope.ledger is None or not may_write_somewhere(context.caller):
        return _SILENCE
    await _record_turn(context, scope, scope.ledger, request)

    project = scope.recorded_project
    caller = context.caller.author
    assertions_of_project = await scope.ledger.stated(**project.columns, caller=caller)
    unstored = await settle_stored(
        context, project, assertions_of_project, scope.session.name
    )
    assertions_of_session = [
        assertion
        for assertion in assertions_of_project
        if assertion.session == scope.session.name
    ]
    unasked = _not_asked_for(assertions_of_session, unstored)
    if not unasked:
        return _SILENCE

    # A session is recorded in two namespaces if it began before the project had one.
    requests_by_namespace = {
        assertion.namespace: assertion.requests for assertion in assertions_of_session
    }
    if sum(requests_by_namespace.values()) >= _MOST_REQUESTS:
        return _SILENCE

    claimed = await scope.ledger.ask(unasked, caller, context.now)
    if not claimed:
        return _SILENCE  # another process of this session asks for them

    lines = [_NOT_STORED]
    for number, assertion in enumerate(unasked, start=1):
        lines.append(f'{number}. "{assertion.sentence}"')
    lines.append(_HOW_TO_STORE)
    nearest = await _nearest_notes(context, scope, unasked)
    if nearest:
        lines.append(block("Nearest notes:", nearest))
    return HookAnswer("\n".join(lines), asks=True)


async def _record_turn(
    context: RequestContext, scope: HookScope, ledger: Injections, request: HookRequest
) -> None:
    """Record what was stated in a turn, and the notes that the last words of the assistant quote."""
    stored_lately = await ledger.written(
        namespaces=[scope.recorded_project.namespace],
        caller=context.caller.author,
        since=context.now - TURN,
    )
    sentences = list(assertions(request.prompt))
    if not stored_lately:
        # An assistant that has just stored something says so, and is not asked for that.
        sentences += assertions(request.message, of_person=False)
    await record_assertions(context, scope, sentences)
    await record_quotations(
        ledger, scope.ids, scope.session, request.message, context.now
    )


def _not_asked_for(
    assertions_of_session: Sequence[OpenAssertion],
    unstored: Sequence[OpenAssertion],
) -> list[OpenAssertion]:
    """Return the unstored assertions of a session that it was not asked for, in these or nearly these words."""
    asked_for = []
    for assertion in assertions_of_session:
        if assertion.asked_at is not None:
            asked_for.append(assertion.sentence)
    results: list[OpenAssertion] = []
    for assertion in assertions_of_session:
        if assertion.asked_at is not None or assertion not in unstored:
            continue
        sentence = assertion.sentence
        if any(shared_words(sentence, other) >= LEAST_SHARE for other in asked_for):
            continue
        results.append(assertion)
        asked_for.append(sentence)
    return results


async def _nearest_notes(
    context: RequestContext, scope: HookScope, unasked: Sequence[OpenAssertion]
) -> list[str]:
    """Return the nearest memory of each of the first assertions as a note, if it is near; none twice."""
    notes: dict[str, None] = {}
    for assertion in unasked[:_MOST_LOOKED_UP]:
        candidates = await candidates_of(
            context, scope, assertion.sentence, least=LIKELY, limit=1
        )
        notes |= {note_of(context, candidate): None for candidate in candidates}
    return list(notes)


async def ask_before_compaction(
    context: RequestContext, _scope: HookScope, _request: HookRequest
) -> HookAnswer:
    """Ask to keep decisions in the summary: no tool can be called while a session is compacted."""
    if may_write_somewhere(context.caller):
        return HookAnswer(_BEFORE_COMPACTION)
    return _SILENCE
