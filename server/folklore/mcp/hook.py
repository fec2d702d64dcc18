"""The hidden tool that clients' hooks call. tools/list does not show it, so that it costs a session no tokens.

Hook definitions stay as they are over releases, since clients ask their users to approve each change. All logic lies
behind this tool.
"""

import json
from typing import Any

from pydantic import ConfigDict

from folklore.contract.compact import JsonDict
from folklore.contract.hooks import HookAnswer, HookRequest
from folklore.contract.requests import Operations, Part
from folklore.mcp.tools import READS, Meta, ToolSpec, arguments_of, session_of

# The event whose answer clients read as plain text, and the answer that adds nothing to others: for no content at all,
# Claude Code shows the assistant "UserPromptSubmit hook success: UserPromptSubmit completed" with each prompt.
_PLAIN = "PreCompact"
_SILENCE = "{}"
# Codex takes other arguments only with a permission, which it does not ask for here anyway; Claude Code without one.
_NEEDS_DECISION = "spawn_agent"
_HELD = "Folklore has notes that may answer this. Read them first; if they do not, ask the same question again."


class _Lenient(Part):
    """Arguments of which unknown ones are ignored: the definition of a hook may be newer than the server."""

    model_config = ConfigDict(extra="ignore")


HookArguments = arguments_of(
    HookRequest, {"directory", "source", "client_session"}, {"cwd": (str, "")}, _Lenient
)


async def client_hook(service: Operations, arguments: Any, meta: Meta) -> JsonDict:
    """Answer a hook of an assistant in the form that clients read, or with nothing."""
    fields = arguments.model_dump(exclude={"cwd"})
    request = HookRequest(
        **fields, directory=arguments.cwd, client_session=session_of(meta)
    )
    answer = await service.call(request)
    if not answer.text:
        if arguments.event == _PLAIN:
            return {}
        return {"text": _SILENCE}
    return {"text": _output(arguments.event, arguments.tool, answer)}


def _output(event: str, tool: str, answer: HookAnswer) -> str:
    """Return what Claude Code and Codex read: they drop every other form, or take it for an error."""
    if answer.asks:
        return json.dumps(
            {"decision": "block", "reason": answer.text}, ensure_ascii=False
        )
    if event == _PLAIN:  # it is added to the instructions for the summary
        return answer.text
    output: JsonDict = {"hookEventName": event, "additionalContext": answer.text}
    if answer.holds:
        output |= {"permissionDecision": "deny", "permissionDecisionReason": _HELD}
    if answer.arguments is not None:
        output["updatedInput"] = dict(answer.arguments)
        if tool == _NEEDS_DECISION:
            output["permissionDecision"] = "allow"
    return json.dumps({"hookSpecificOutput": output}, ensure_ascii=False)


HIDDEN_TOOLS = (ToolSpec(client_hook, "Answer a hook", HookArguments, READS),)
