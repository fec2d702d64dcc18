"""Answers to the events of an assistant's session."""

from collections.abc import Awaitable, Callable, Mapping

from folklore.memory.context import RequestContext
from folklore.memory.hooks import edit, prompt, start, store_request
from folklore.memory.hooks.scope import HookScope, scope_of
from folklore.memory.requests import HookRequest
from folklore.memory.results import HookAnswer
from folklore.text.hooks.prompts import without_private

_ANSWERS: Mapping[str, Callable[[RequestContext, HookScope, HookRequest], Awaitable[HookAnswer]]] = {
    "SessionStart": start.notes_for_start,
    "UserPromptSubmit": prompt.notes_for_prompt,
    "PreToolUse": edit.notes_for_edit,
    "PostToolUse": edit.notes_for_edit,
    "Stop": store_request.ask_at_stop,
    "PreCompact": store_request.ask_before_compaction,
}


async def answer_hook(context: RequestContext, request: HookRequest) -> HookAnswer:
    """Answer an event; one that this server does not know, and all in a paused session, with silence."""
    if request.event not in _ANSWERS:
        return HookAnswer()
    scope = await scope_of(context, request)
    if scope.paused:
        return HookAnswer()
    texts = {"prompt": without_private(request.prompt), "message": without_private(request.message)}
    return await _ANSWERS[request.event](context, scope, request.model_copy(update=texts))
