"""Answers to the events of an assistant's session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from folklore.lazy import lazy_modules
from folklore.memory.context import RequestContext
from folklore.memory.hooks.scope import HookScope, scope_of
from folklore.memory.requests import HookRequest
from folklore.memory.results import HookAnswer
from folklore.text.hooks.prompts import without_private

if TYPE_CHECKING:
    from folklore.memory.hooks import edit, prompt, start, store_request
else:
    edit, prompt, start, store_request = lazy_modules("folklore.memory.hooks", "edit prompt start store_request")

# By event; a module is imported when its event comes: a command at a session's start needs neither recall nor numpy.
_ANSWERS: Mapping[str, Callable[[], Callable[[RequestContext, HookScope, HookRequest], Awaitable[HookAnswer]]]] = {
    "SessionStart": lambda: start.notes_for_start,
    "UserPromptSubmit": lambda: prompt.notes_for_prompt,
    "PreToolUse": lambda: edit.notes_for_edit,
    "PostToolUse": lambda: edit.notes_for_edit,
    "Stop": lambda: store_request.ask_at_stop,
    "PreCompact": lambda: store_request.ask_before_compaction,
}


async def answer_hook(context: RequestContext, request: HookRequest) -> HookAnswer:
    """Answer an event; one that this server does not know, and all in a paused session, with silence."""
    if request.event not in _ANSWERS:
        return HookAnswer()
    scope = await scope_of(context, request)
    if scope.paused:
        return HookAnswer()
    texts = {"prompt": without_private(request.prompt), "message": without_private(request.message)}
    return await _ANSWERS[request.event]()(context, scope, request.model_copy(update=texts))
