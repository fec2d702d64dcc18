"""Answers to the events of an assistant's session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from folklore.memory.context import RequestContext
from folklore.memory.hooks.prompt import notes_for_prompt
from folklore.memory.requests import HookRequest
from folklore.memory.results import HookAnswer

_ANSWERS: Mapping[str, Callable[[RequestContext, HookRequest], Awaitable[HookAnswer]]] = {
    "UserPromptSubmit": notes_for_prompt,
}


async def answer_hook(context: RequestContext, request: HookRequest) -> HookAnswer:
    """Answer an event; an unknown one with silence, since a client may have more of them than this server."""
    answer = _ANSWERS.get(request.event)
    return HookAnswer() if answer is None else await answer(context, request)
