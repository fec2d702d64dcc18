"""Numbers that Postgres cannot hold: an error that names the field, for every number of every request and tool."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from pydantic import TypeAdapter, ValidationError

from folklore.contract.operations import OPERATIONS
from folklore.contract.requests import read_request
from folklore.errors import InvalidInput
from folklore.mcp.tools import TOOLS
from folklore.model import Unreadable
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import Person

SENT = {"1e-46", "-1e-46", "1" + "0" * 40, "-1" + "0" * 40}
ODD = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e-46",
    "-1e-46",
    "1e400",
    "1" + "0" * 40,
    "-1" + "0" * 40,
]
ID = str(uuid4())
# Arguments that a request needs besides the number.
NEEDED: dict[str, Any] = {
    "memories": {"content": "x"}, "relations": {"from": ID, "to": ID}, "related": {"id": ID, "type": "causes"},
    "id": ID, "ids": [ID], "query": "x", "name": "x", "reason": "unused", "content": "x",
}  # fmt: skip
_MARK = 0.1234567


def _numbers(schema: dict[str, Any], root: dict[str, Any]) -> Iterator[Any]:
    """Yield values that fit a schema and have the mark at one of its numbers."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for part in schema.get("anyOf", ()):
        yield from _numbers(part, root)
    if schema.get("type") in ("number", "integer"):
        yield _MARK
    for inner in (
        _numbers(schema["items"], root) if isinstance(schema.get("items"), dict) else ()
    ):
        yield [inner]
    if isinstance(schema.get("additionalProperties"), dict):
        yield from (
            {"dense": inner} for inner in _numbers(schema["additionalProperties"], root)
        )
    properties = schema.get("properties", {})
    needed = {
        name: NEEDED[name] for name in schema.get("required", ()) if name in NEEDED
    }
    needed |= {name: ID for name in ("from", "to") if name in properties}
    for name, part in properties.items():
        for inner in _numbers(part, root):
            if (
                isinstance(inner, list)
                and isinstance(inner[0], dict)
                and name in NEEDED
            ):
                inner = [NEEDED[name] | inner[0]]
            yield needed | {name: inner}


def _field(value: Any) -> str:
    """Return the innermost name that leads to the mark."""
    if isinstance(value, dict):
        [(name, inner)] = [
            (name, entry)
            for name, entry in value.items()
            if str(_MARK) in json.dumps(entry)
        ]
        return _field(inner) or name
    return _field(value[0]) if isinstance(value, list) else ""


def _with(value: Any, number: str) -> str:
    return json.dumps(value).replace(str(_MARK), number)


async def _call(person: Person, name: str, body: bytes) -> None:
    request: Any = read_request(OPERATIONS[name], body)
    await person.call(request)


REQUESTS = [
    (name, value)
    for name, kind in OPERATIONS.items()
    for schema in [kind.model_json_schema()]
    for value in _numbers(schema, schema)
]


def test_the_numbers_of_the_requests_are_found() -> None:
    found = {(name, _field(value)) for name, value in REQUESTS}

    assert {
        ("store", "importance"),
        ("store", "strength"),
        ("relate", "strength"),
        ("recall", "dense"),
    } <= found
    assert {
        ("recall", "min_score"),
        ("recall", "mmr_lambda"),
        ("update", "confidence"),
        ("undo", "revision"),
    } <= found
    assert len(found) > 15


@pytest.mark.parametrize(
    ("name", "value"),
    REQUESTS,
    ids=lambda part: _field(part) if isinstance(part, dict) else part,
)
async def test_a_number_that_cannot_be_stored_is_an_error_that_names_the_field(
    person: Person, name: str, value: Any
) -> None:
    for number in ODD:
        with pytest.raises(InvalidInput) as error:
            await _call(person, name, _with(value, number).encode())
        assert _field(value) in str(error.value), number


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_a_tool_names_the_field_of_a_number_that_cannot_be_stored(
    client: Client, tool: Any
) -> None:
    schema = TypeAdapter(tool.arguments).json_schema()
    for value in _numbers(schema, schema):
        for number in ODD:
            arguments = json.loads(_with(value, number))
            if "memories" in value:  # its fault is reported when the batch is stored
                [memory] = tool.arguments.model_validate(arguments).memories
                assert isinstance(memory, Unreadable) or _field(value) in (
                    "position",
                    "priority",
                )
            elif number in SENT:
                answer = await client.call_tool(tool.name, arguments)
                assert answer.is_error, (value, number)
                assert _field(value) in answer.content[0].text, (value, number)  # type: ignore[union-attr]
            else:  # the client of the tests sends null instead
                with pytest.raises(ValidationError, match=_field(value)):
                    tool.arguments.model_validate(arguments)


async def test_an_unknown_argument_of_a_prompt_is_an_error_that_names_it(
    client: Client,
) -> None:
    with pytest.raises(
        MCPError, match="topics: the prompt 'recall' has no such argument"
    ) as error:
        await client.get_prompt("recall", {"topic": "x", "topics": "y"})

    assert error.value.error.code == INVALID_PARAMS


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e-46", "1e400"])
async def test_the_command_line_names_the_option_of_a_number_that_cannot_be_stored(
    folklore: CommandLine, number: str
) -> None:
    for command in (
        ["store", "x", f"--importance={number}"],
        ["recall", "x", f"--min-score={number}"],
        ["relate", ID, "causes", ID.replace("4", "5"), f"--strength={number}"],
    ):
        ran = await folklore(*command)
        assert ran.code == 2, command
        assert command[-1].partition("=")[0].strip("-").replace(
            "-", "_"
        ) in ran.err.replace("-", "_"), command
