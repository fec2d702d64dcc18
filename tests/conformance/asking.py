"""Fixtures of the conformance suite that ask the client back: for input, for its model, for its roots.

In the handshake versions such a question is a request of the server's own in the middle of a call; in 2026-07-28 it is
the call's result, and the client calls again with the answers.
"""

from collections.abc import Mapping
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

_OPTIONS = [("value1", "First"), ("value2", "Second"), ("value3", "Third")]
_VALUES = [value for value, _ in _OPTIONS]
_TITLED = [{"const": value, "title": title} for value, title in _OPTIONS]

_CONTACT = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
_DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
        "type": "string",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    "verified": {"type": "boolean", "default": True},
}
_ENUMS = {
    "untitledSingle": {"type": "string", "enum": _VALUES},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": _VALUES,
        "enumNames": [title for _, title in _OPTIONS],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _VALUES}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}

Answer = str | InputRequiredResult


def add_asking(server: MCPServer[Any]) -> None:
    """Add them all. Names, questions and schemas are the suite's."""
    for tool in (
        test_sampling, test_elicitation, test_elicitation_sep1034_defaults, test_elicitation_sep1330_enums,
        test_streaming_elicitation, test_input_required_result_elicitation, test_input_required_result_sampling,
        test_input_required_result_list_roots, test_input_required_result_request_state,
        test_input_required_result_tampered_state, test_input_required_result_multiple_inputs,
        test_input_required_result_multi_round, test_input_required_result_capabilities,
    ):  # fmt: skip
        server.tool(description="Conformance fixture", structured_output=False)(tool)
    server.prompt(description="Conformance fixture")(test_input_required_result_prompt)


async def test_sampling(prompt: str, ctx: Context[Any]) -> str:
    answer = await ctx.session.create_message([_said(prompt)], max_tokens=100)
    return f"LLM response: {_words(answer)}"


async def test_elicitation(message: str, ctx: Context[Any]) -> str:
    return await _elicited(ctx, message, _CONTACT)


async def test_elicitation_sep1034_defaults(ctx: Context[Any]) -> str:
    return await _elicited(ctx, "Please review the defaults", _DEFAULTS)


async def test_elicitation_sep1330_enums(ctx: Context[Any]) -> str:
    return await _elicited(ctx, "Please choose", _ENUMS)


async def test_streaming_elicitation(ctx: Context[Any]) -> Answer:
    return await test_input_required_result_elicitation(ctx)


async def test_input_required_result_elicitation(ctx: Context[Any]) -> Answer:
    name = _given(ctx, "user_name").get("name")
    return (
        f"Hello, {name}!"
        if name
        else _needs(user_name=_form("What is your name?", name="string"))
    )


async def test_input_required_result_sampling(ctx: Context[Any]) -> Answer:
    match (ctx.input_responses or {}).get("capital_question"):
        case CreateMessageResult() as answer:
            return _words(answer)
    return _needs(capital_question=_sample("What is the capital of France?", 100))


async def test_input_required_result_list_roots(ctx: Context[Any]) -> Answer:
    match (ctx.input_responses or {}).get("client_roots"):
        case ListRootsResult(roots=roots):
            return "Roots: " + ", ".join(str(root.uri) for root in roots)
    return _needs(client_roots=ListRootsRequest())


async def test_input_required_result_request_state(ctx: Context[Any]) -> Answer:
    if ctx.request_state == "asked" and _given(ctx, "confirm"):
        return "state-ok"
    return _needs("asked", confirm=_form("Please confirm", ok="boolean"))


async def test_input_required_result_tampered_state(ctx: Context[Any]) -> Answer:
    # The SDK signs the state and rejects a changed one before this runs.
    return await test_input_required_result_request_state(ctx)


async def test_input_required_result_multiple_inputs(ctx: Context[Any]) -> Answer:
    if ctx.request_state == "asked" and {
        "user_name",
        "greeting",
        "client_roots",
    } <= set(ctx.input_responses or {}):
        return f"Welcome, {_given(ctx, 'user_name').get('name')}."
    return _needs(
        "asked",
        user_name=_form("What is your name?", name="string"),
        greeting=_sample("Generate a greeting", 50),
        client_roots=ListRootsRequest(),
    )


async def test_input_required_result_multi_round(ctx: Context[Any]) -> Answer:
    if ctx.request_state == "named" and (color := _given(ctx, "step2").get("color")):
        return f"Your color is {color}."
    if ctx.request_state == "asked" and _given(ctx, "step1"):
        return _needs(
            "named", step2=_form("Step 2: What is your favorite color?", color="string")
        )
    return _needs("asked", step1=_form("Step 1: What is your name?", name="string"))


async def test_input_required_result_capabilities(ctx: Context[Any]) -> Answer:
    declared = ctx.client_capabilities
    questions: dict[str, Any] = {}
    if declared is not None and declared.sampling is not None:
        questions["opinion"] = _sample("What do you think?", 50)
    if declared is not None and declared.elicitation is not None:
        questions["wish"] = _form("What do you wish?", wish="string")
    return (
        _needs(**questions)
        if questions
        else "There is nothing this client could be asked."
    )


async def test_input_required_result_prompt(ctx: Context[Any]) -> Answer:
    context = _given(ctx, "user_context").get("context")
    if context:
        return f"Work in this context: {context}"
    return _needs(
        user_context=_form("What context should the prompt use?", context="string")
    )


async def _elicited(
    ctx: Context[Any], message: str, properties: Mapping[str, Any]
) -> str:
    schema = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
    }
    answer = await ctx.session.elicit_form(
        message, schema, related_request_id=ctx.request_id
    )
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


def _given(ctx: Context[Any], question: str) -> Mapping[str, Any]:
    """Return the content of the form with this key; empty if it was not answered or not accepted."""
    match (ctx.input_responses or {}).get(question):
        case ElicitResult(action="accept", content=content) if content:
            return content
    return {}


def _needs(state: str | None = None, /, **questions: Any) -> InputRequiredResult:
    return InputRequiredResult(input_requests=questions, request_state=state)


def _form(message: str, **fields: str) -> ElicitRequest:
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return ElicitRequest(
        params=ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def _sample(prompt: str, max_tokens: int) -> CreateMessageRequest:
    return CreateMessageRequest(
        params=CreateMessageRequestParams(
            messages=[_said(prompt)], max_tokens=max_tokens
        )
    )


def _said(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content=TextContent(type="text", text=text))


def _words(answer: CreateMessageResult) -> str:
    return (
        answer.content.text if isinstance(answer.content, TextContent) else "no words"
    )
