"""Fixtures that the conformance suite requests by name: tools, resources and prompts that ask nothing back."""

import asyncio
import base64
import json
import struct
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, UserMessage
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

# One transparent pixel, and silence.
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAAC0lEQVR4nGNgAAIAAAUAAXpeqz8AAAAASUVORK5CYII="
_SILENCE = base64.b64encode(
    struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        36,
        b"WAVE",
        b"fmt ",
        16,
        1,
        1,
        8000,
        8000,
        1,
        8,
        b"data",
        0,
    )
).decode()

_JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {
        "properties": {"contactMethod": {"const": "phone"}},
        "required": ["contactMethod"],
    },
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def add_answering(server: MCPServer[Any]) -> None:
    """Add all fixtures. The suite defines their names, texts and schemas."""
    for tool in (
        test_simple_text, test_image_content, test_audio_content, test_embedded_resource, test_multiple_content_types,
        test_error_handling, test_tool_with_progress, test_tool_with_logging, test_logging_tool, test_reconnection,
        test_missing_capability, test_trigger_tool_change, test_x_mcp_header, json_schema_2020_12_tool, greet,
        slow_compute,
    ):  # fmt: skip
        server.tool(description="Conformance fixture")(tool)
    # The decorator derives a schema from the signature; no signature yields this one.
    shown = server._tool_manager.get_tool("json_schema_2020_12_tool")
    assert shown is not None
    shown.parameters = _JSON_SCHEMA

    server.resource("test://static-text", mime_type="text/plain")(static_text)
    server.resource("test://static-binary", mime_type="image/png")(static_binary)
    server.resource("test://watched-resource", mime_type="text/plain")(watched)
    server.resource("test://template/{id}/data", mime_type="application/json")(template)
    for prompt in (
        test_simple_prompt, test_prompt_with_arguments, test_prompt_with_embedded_resource, test_prompt_with_image,
    ):  # fmt: skip
        server.prompt(description="Conformance fixture")(prompt)
    server.completion()(complete)  # type: ignore[no-untyped-call]


async def test_simple_text() -> list[TextContent]:
    return [_text("This is a simple text response for testing.")]


async def test_image_content() -> list[ImageContent]:
    return [_image()]


async def test_audio_content() -> list[AudioContent]:
    return [AudioContent(type="audio", data=_SILENCE, mime_type="audio/wav")]


async def test_embedded_resource() -> list[EmbeddedResource]:
    return [
        _embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content.",
        )
    ]


async def test_multiple_content_types() -> list[
    TextContent | ImageContent | EmbeddedResource
]:
    mixed = _embedded(
        "test://mixed-content-resource",
        "application/json",
        '{"test":"data","value":123}',
    )
    return [_text("Multiple content types test:"), _image(), mixed]


async def test_error_handling() -> str:
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(ctx: Context[Any]) -> str:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100)
        await asyncio.sleep(0.05)
    return "The work is done."


async def test_tool_with_logging(ctx: Context[Any]) -> str:
    for line in (
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ):
        await ctx.info(line)
        await asyncio.sleep(0.05)
    return "The work was logged."


async def test_logging_tool(ctx: Context[Any]) -> str:
    await ctx.info("Only clients that requested logs may get this.")
    return "Logged."


async def test_reconnection(ctx: Context[Any]) -> str:
    await ctx.close_sse_stream()
    await asyncio.sleep(0.2)
    return "Still there."


async def test_missing_capability(ctx: Context[Any]) -> str:
    declared = ctx.client_capabilities
    if declared is None or declared.sampling is None:
        needs: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling.", needs
        )
    return "The client can sample."


async def test_trigger_tool_change(ctx: Context[Any]) -> str:
    await ctx.notify_tools_changed()
    return "Notified."


async def test_x_mcp_header(
    region: Annotated[
        str,
        Field(
            description="Repeated in a header",
            json_schema_extra={"x-mcp-header": "Region"},
        ),
    ],
) -> str:
    return region


async def json_schema_2020_12_tool() -> str:
    return "Only its schema matters."


async def greet(name: str) -> str:
    return f"Hello, {name}!"


async def slow_compute(seconds: float, label: str) -> str:
    """Answer without a task, as every server does that does not declare the tasks extension."""
    await asyncio.sleep(seconds)
    return f"Computed {label}."


def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


def static_binary() -> bytes:
    """A picture that never changes."""
    return base64.b64decode(_PIXEL)


def watched() -> str:
    """A text that can be subscribed to."""
    return "Watched resource content."


def template(id: str) -> str:  # noqa: A002 - the URI's variable is called so
    """A text made for an id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - the suite's name
    embedded = _embedded(
        resourceUri, "text/plain", "Embedded resource content for testing."
    )
    return [
        UserMessage(embedded),
        UserMessage("Please process the embedded resource above."),
    ]


def test_prompt_with_image() -> list[UserMessage]:
    return [UserMessage(_image()), UserMessage("Please analyze the image above.")]


async def complete(_ref: Any, _argument: Any, _context: Any) -> Completion:
    return Completion(values=[], total=0, has_more=False)


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _image() -> ImageContent:
    return ImageContent(type="image", data=_PIXEL, mime_type="image/png")


def _embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(
        type="resource",
        resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text),
    )
