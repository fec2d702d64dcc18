"""tools/list: few tools in a fixed order, with short schemas and correct annotations."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, Tool

from folklore.callers import Caller
from folklore.errors import EngineFailed
from folklore.mcp.server import INSTRUCTIONS, build_server
from folklore.mcp.tools import TOOLS
from folklore.memory import Facts, Memory, Service
from folklore.memory.context import RequestContext
from folklore.memory.context.usage import UsageRecorder
from tests.conftest import connected

CORE = ("memory_store", "memory_recall", "search_keywords")
REST = (
    "memory_get",
    "memory_list",
    "memory_update",
    "memory_forget",
    "memory_relate",
    "memory_status",
)
WRITING = ("memory_store", "memory_update", "memory_forget", "memory_relate")


async def never(_facts: Facts) -> RequestContext:
    await asyncio.Event().wait()
    raise AssertionError


def service_of(
    open_context: Callable[[Facts], Awaitable[RequestContext]] = never,
    caller: Caller = Caller("tester"),
) -> Service:
    return Service(
        Memory(open_context, UsageRecorder),
        lambda: Facts(caller, datetime.now(UTC)),
        lambda: caller,
        lambda: "notes",
    )


async def listed(caller: Caller = Caller("tester"), **options: Any) -> list[Tool]:
    async with connected(build_server(service_of(caller=caller), **options)) as client:
        return (await client.list_tools()).tools


@pytest.fixture(scope="module")
async def tools() -> list[Tool]:
    return await listed()


def cost(tools: list[Tool]) -> int:
    """Tokens by the usual convention: characters of the list's entries divided by four."""
    entries = [
        tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools
    ]
    return (
        sum(
            len(json.dumps(entry, ensure_ascii=False, separators=(",", ":")))
            for entry in entries
        )
        // 4
    )


async def test_tools_are_listed_in_a_fixed_order_the_core_first(
    tools: list[Tool],
) -> None:
    names = [tool.name for tool in tools]

    assert tuple(names) == CORE + REST
    assert names == [tool.name for tool in await listed()]
    assert [tool.name for tool in await listed(offered="core")] == list(CORE)


async def test_every_tool_has_a_title_a_description_and_annotations(
    tools: list[Tool],
) -> None:
    for tool in tools:
        assert tool.title
        assert tool.description
        assert len(tool.description) <= 4_096
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name not in WRITING)
        assert tool.annotations.destructive_hint is (
            tool.name in WRITING and tool.name != "memory_store"
        )
        assert tool.annotations.idempotent_hint is True
        assert tool.annotations.open_world_hint is False


def parts(schema: Any, *, names: bool = False) -> Iterator[Any]:
    """Yield the schema and all schemas inside it; the object under "properties" is not a schema itself."""
    if not names:
        yield schema
    if isinstance(schema, dict):
        for key, inner in schema.items():
            yield from parts(inner, names=key == "properties" and not names)
    elif isinstance(schema, list):
        for inner in schema:
            yield from parts(inner)


async def test_no_schema_accepts_any_value(tools: list[Tool]) -> None:
    """An empty schema accepts any value; linters warn of it, and some clients refuse it."""
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema):
            assert {} not in list(parts(schema)), tool.name


async def test_descriptions_state_when_to_call_a_tool(tools: list[Tool]) -> None:
    said = {tool.name: (tool.description or "").lower() for tool in tools}

    assert "before starting work" in " ".join(said["memory_recall"].split())
    assert "not instructions" in said["memory_recall"]
    assert "secrets" in said["memory_store"]
    assert "before you change" in said["memory_get"]
    assert "call it when" in said["memory_status"]
    for name in ("memory_update", "memory_forget"):
        assert "supersedes instead" in said[name], (
            "a fact that changed is neither corrected nor forgotten"
        )


async def test_schemas_are_valid_closed_and_describe_an_object(
    tools: list[Tool],
) -> None:
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"
        for schema in (tool.input_schema, tool.output_schema):
            assert "$ref" not in json.dumps(schema), (
                "some clients do not follow references"
            )


async def test_the_core_tools_take_less_than_1800_tokens(tools: list[Tool]) -> None:
    assert cost([tool for tool in tools if tool.name in CORE]) < 1_800
    assert cost([tool for tool in tools if tool.name == "memory_store"]) <= 670, (
        "what recall may cost depends on it"
    )
    assert cost(tools) < 4_000


async def test_core_tools_are_always_loaded(tools: list[Tool]) -> None:
    always = [
        tool.name for tool in tools if (tool.meta or {}).get("anthropic/alwaysLoad")
    ]

    assert always == list(CORE)


async def test_a_read_only_server_offers_no_tool_that_writes() -> None:
    reader = Caller("reader", may_write=False)
    names = [tool.name for tool in await listed(reader)]

    assert not set(names) & set(WRITING)
    assert set(CORE) - set(WRITING) <= set(names)
    async with connected(build_server(service_of(caller=reader))) as client:
        for tool in WRITING:
            with pytest.raises(
                MCPError, match=f"There is no tool '{tool}'. There are memory_recall,"
            ) as refused:
                await client.call_tool(tool, {"content": "x"})
            assert refused.value.error.code == INVALID_PARAMS


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_instructions_name_the_core_tools_in_both_protocol_eras(
    mode: str,
) -> None:
    async with connected(build_server(service_of()), mode=mode) as client:
        assert client.instructions == INSTRUCTIONS
        assert client.server_info is not None
        assert client.server_info.name == "folklore"
    assert len(INSTRUCTIONS) < 4_096
    for tool in CORE:
        assert tool in INSTRUCTIONS
    assert "never instructions" in INSTRUCTIONS


async def test_a_tool_reports_an_unavailable_database_with_the_next_step() -> None:
    async def down(_facts: Facts) -> RequestContext:
        raise EngineFailed(
            "The database cannot be reached.\nFATAL: a line of its log\n",
            hint="Check that it runs.",
        )

    async with connected(build_server(service_of(down))) as client:
        for tool, arguments in (
            ("memory_store", {"content": "x"}),
            ("memory_recall", {"query": "x"}),
        ):
            answer = await client.call_tool(tool, arguments)

            assert answer.is_error
            assert [part.text for part in answer.content if part.type == "text"] == [
                "The database cannot be reached. Check that it runs."
            ]
        assert (await client.list_tools()).tools


async def test_a_crashed_tool_reveals_nothing_but_its_name() -> None:
    async def broken(_facts: Facts) -> RequestContext:
        raise RuntimeError("hunter2-secret in a traceback")

    async with connected(build_server(service_of(broken))) as client:
        answer = await client.call_tool("memory_recall", {"query": "x"})

    assert answer.is_error
    assert "hunter2" not in str(answer.content)
    assert "memory_recall" in str(answer.content)


def test_the_schema_of_a_tool_lists_every_argument_that_it_takes() -> None:
    for tool in TOOLS:
        schema = tool.listed.input_schema
        fields = tool.arguments.model_fields
        assert list(schema["properties"]) == [
            name for name in fields if name != "blobs"
        ], "which no model knows"
        assert schema.get("required", []) == [
            name for name, field in fields.items() if field.is_required()
        ]
