"""Answers to the events of an assistant's session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module

from folklore.memory.context import RequestContext
from folklore.memory.requests import HookRequest
from folklore.memory.results import HookAnswer

# Module and function by event, imported when it comes: a command at a session's start needs neither recall nor numpy.
_ANSWERS: Mapping[str, tuple[str, str]] = {
    "SessionStart": ("start", "notes_for_start"),
    "UserPromptSubmit": ("prompt", "notes_for_prompt"),
    "Stop": ("store_request", "ask_at_stop"),
    "PreCompact": ("store_request", "ask_before_compaction"),
}


async def answer_hook(context: RequestContext, request: HookRequest) -> HookAnswer:
    """Answer an event; one that this server does not know with silence."""
    if request.event not in _ANSWERS:
        return HookAnswer()
    module, function = _ANSWERS[request.event]
    answer: Callable[[RequestContext, HookRequest], Awaitable[HookAnswer]] = getattr(
        import_module(f"folklore.memory.hooks.{module}"), function
    )
    return await answer(context, request)
