"""Answers to the events of an assistant's session.

A prompt gets what one recall finds: what is nearly certain in full, and what is likely as headlines.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from folklore.contract.hooks import HookAnswer, HookRequest
from folklore.errors import FolkloreError
from folklore.log import get_logger
from folklore.memory.context import RequestContext
from folklore.memory.hooks import moments, start, store_request
from folklore.memory.hooks.note_candidates import candidates_of, inject
from folklore.memory.hooks.scope import HookScope, scope_of
from folklore.memory.hooks.stated import record_assertions, record_quotations
from folklore.memory.records import learning
from folklore.ranking.injection import LIKELY
from folklore.text.hooks.assertions import assertions
from folklore.text.hooks.injected import without_blocks
from folklore.text.hooks.prompts import is_remark, without_private

log = get_logger(__name__)

# Candidates of a prompt: some may have been given before.
_CANDIDATES = 10


async def notes_for_prompt(
    context: RequestContext, scope: HookScope, request: HookRequest
) -> HookAnswer:
    """Return the notes that fit a prompt and that its session was not given yet, or silence."""
    prompt = without_blocks(request.prompt).strip()
    if not prompt or scope.ledger is None:
        return HookAnswer()
    asks = "prompt" in context.moments and not is_remark(prompt)
    question = prompt if asks else ""
    candidates, _ = await asyncio.gather(
        candidates_of(context, scope, question, least=LIKELY, limit=_CANDIDATES),
        _record(context, scope, prompt),
    )
    return await inject(context, scope, "UserPromptSubmit", candidates)


async def _record(context: RequestContext, scope: HookScope, prompt: str) -> None:
    """Record the session, and what its prompt states and quotes. A fault of the record does not cost the notes."""
    assert scope.ledger is not None
    try:
        await record_assertions(context, scope, assertions(prompt))
        await record_quotations(
            scope.ledger, scope.ids, scope.session, prompt, context.now
        )
    except FolkloreError as error:
        log.warning("hook_not_recorded", reason=error.message)


_ANSWERS: Mapping[
    str, Callable[[RequestContext, HookScope, HookRequest], Awaitable[HookAnswer]]
] = {
    "SessionStart": start.notes_for_start,
    "UserPromptSubmit": notes_for_prompt,
    "PreToolUse": moments.notes_for_tool,
    "PostToolUse": moments.notes_for_tool,
    "PostToolUseFailure": moments.notes_for_tool,
    "Stop": store_request.ask_at_stop,
    "PreCompact": store_request.ask_before_compaction,
}


async def answer_hook(context: RequestContext, request: HookRequest) -> HookAnswer:
    """Answer an event; one that this server does not know, and all in a paused session, with silence."""
    answer = _ANSWERS.get(request.event)
    if answer is None:
        return HookAnswer()
    if answer is moments.notes_for_tool and moments.moment_of(request) is None:
        return HookAnswer()  # of most commands, without a question to the database
    scope = await scope_of(context, request)
    if scope.paused:
        return HookAnswer()
    texts = {
        "prompt": without_private(request.prompt),
        "message": without_private(request.message),
    }
    learning.teach_quoted(context, request.client_session, *texts.values())
    return await answer(context, scope, request.model_copy(update=texts))
