"""Answers to the events of an assistant's session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from folklore.memory.context import RequestContext
from folklore.memory.hooks.prompt import notes_for_prompt
from folklore.memory.hooks.start import notes_for_start
from folklore.memory.hooks.store_request import ask_at_stop, ask_before_compaction
from folklore.memory.requests import HookRequest
from folklore.memory.results import HookAnswer

_ANSWERS: Mapping[str, Callable[[RequestContext, HookRequest], Awaitable[HookAnswer]]] = {
    "SessionStart": notes_for_start,
    "UserPromptSubmit": notes_for_prompt,
    "Stop": ask_at_stop,
    "PreCompact": ask_before_compaction,
}


async def answer_hook(context: RequestContext, request: HookRequest) -> HookAnswer:
    """Answer an event; one that this server does not know, and all where hooks are off, with silence."""
    answer = _ANSWERS.get(request.event)
    if answer is None or not context.hooks:
        return HookAnswer()
    return await answer(context, request)
