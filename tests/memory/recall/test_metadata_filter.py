"""Filters over metadata: a value, one of several, existence; nested keys by their path; in every branch."""

import json
from typing import Any

import pytest
from mcp import Client

from folklore.contract.filters import FiltersRequest
from folklore.errors import InvalidInput
from folklore.memory.context.filters import resolve_filters
from folklore.model import Draft
from folklore.ranking.weights import PRESETS
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import Person, contents

TEXTS: dict[str, dict[str, Any] | None] = {
    "harbour plain": None,
    "harbour red": {
        "team": "red",
        "ticket": {"id": 7, "open": True},
        "labels": ["urgent", "cost"],
    },
    "harbour blue": {
        "team": "blue",
        "ticket": {"id": 8, "open": False},
        "service.name": "pilot",
    },
    "harbour odd": {"team": 'a "b" \\ $', "ticket": {"id": "7"}, "draft": None},
}
RED = "harbour red"
BLUE = "harbour blue"
ODD = "harbour odd"
PLAIN = "harbour plain"


@pytest.fixture
async def reader(person: Person) -> Person:
    await person.keep(
        *(Draft(text, metadata=metadata) for text, metadata in TEXTS.items())
    )
    return person


MATCHING: list[tuple[dict[str, Any], list[str]]] = [
    ({"team": "red"}, [RED]), ({"team": "RED"}, []), ({"ticket.id": 7}, [RED]), ({"ticket.id": 7.0}, [RED]),
    ({"ticket.id": "7"}, [ODD]), ({"ticket.id": {"in": [7, "7"]}}, [RED, ODD]), ({"ticket.open": False}, [BLUE]),
    ({"labels": "cost"}, [RED]), ({"service.name": "pilot"}, [BLUE]), ({"team": 'a "b" \\ $'}, [ODD]),
    ({"team": "$.team"}, []), ({"draft": {"exists": True}}, [ODD]), ({"ticket.open": {"exists": False}}, [ODD, PLAIN]),
    ({"service.name": {"exists": False}}, [RED, ODD, PLAIN]),
    ({"team": {"in": ["red", "blue", "green"]}, "ticket.open": True}, [RED]),
    ({'team" == "red" || $."team': {"exists": True}}, []), ({}, [RED, BLUE, ODD, PLAIN]),
]  # fmt: skip


async def test_every_branch_keeps_what_the_metadata_matches(reader: Person) -> None:
    for conditions, found in MATCHING:
        asked = FiltersRequest(metadata=conditions)
        filters = resolve_filters(asked, reader.context)

        answers = [
            await reader.list_memories(filters=asked),
            await reader.search("harbour", filters=asked),
            await reader.search('"harbour"', filters=asked),
        ]
        for name in ("balanced", "keyword", "semantic"):
            answers.append(
                await reader.recall("harbour", filters=filters, ranking=PRESETS[name])
            )
        assert [sorted(contents(answer)) for answer in answers] == [
            sorted(found)
        ] * 6, conditions


UNUSABLE: list[tuple[dict[str, Any], str]] = [
    ({"team": None}, "filters.metadata.team: must be a text, a number, true or false."),
    ({"team": ["a"]}, "must be a text, a number, true or false"), ({"team": {"like": "a"}}, 'Write {"team": "x"}'),
    ({"team": {"in": ["a"], "exists": True}}, "must be a text"),
    ({"team": {"in": "a"}}, "filters.metadata.team.in: must be a list of 1 to 64 values."),
    ({"team": {"in": []}}, "must be a list of 1 to 64 values"), ({"team": {"in": [None]}}, "must be a text"),
    ({"team": {"exists": "yes"}}, "must be a text"), ({"team": float("inf")}, "must be a text"),
    ({"": "a"}, "is not a path"), ({"a..b": "a"}, "Write names of keys with dots between them, such as ticket.id"),
    ({"a" * 201: "a"}, "is not a path"), ({f"k{n}": n for n in range(17)}, "must hold at most 16 conditions, got 17"),
]  # fmt: skip


async def test_an_unusable_condition_names_its_key_and_the_right_forms(
    person: Person,
) -> None:
    for conditions, message in UNUSABLE:
        with pytest.raises(InvalidInput) as refused:
            await person.list_memories(
                filters=FiltersRequest.model_construct(metadata=conditions)
            )
        assert message in str(refused.value)


async def test_memories_are_forgotten_by_their_metadata(reader: Person) -> None:
    forgotten = await reader.forget(filters=FiltersRequest(metadata={"team": "red"}))

    assert [memory.content for memory in forgotten.memories] == [RED]
    with pytest.raises(InvalidInput, match="exclude nothing"):
        await reader.forget(filters=FiltersRequest(metadata={}))


async def test_tools_take_conditions(client: Client) -> None:
    memories = [
        {"content": text, "metadata": metadata}
        for text, metadata in TEXTS.items()
        if metadata
    ]
    await client.call_tool("memory_store", {"memories": memories})
    filters = {"metadata": {"ticket.id": {"in": [7, 9]}}}

    for tool, asked in (
        ("memory_recall", {"query": "harbour"}),
        ("search_keywords", {"query": "harbour"}),
        ("memory_list", {}),
    ):
        answer = await client.call_tool(tool, {**asked, "filters": filters})
        assert answer.structured_content is not None
        assert [
            memory["content"] for memory in answer.structured_content["memories"]
        ] == [RED]
    refused = await client.call_tool(
        "memory_list", {"filters": {"metadata": {"team": ["red"]}}}
    )
    assert refused.is_error


async def test_commands_take_conditions(folklore: CommandLine) -> None:
    for text, team, number in ((RED, "red-1", 7), (BLUE, "blue", 8), (ODD, "odd", 9)):
        metadata = json.dumps({"team-name": team, "ticket": {"id": number}})
        await folklore.done("store", text, "--field", f"metadata={metadata}")

    async def listed(*filters: str) -> list[str]:
        options = [part for condition in filters for part in ("--filter", condition)]
        return sorted(
            memory["content"]
            for memory in (await folklore.json("list", *options))["memories"]
        )

    assert await listed("metadata.team-name=red-1") == [RED]
    assert await listed("metadata.ticket.id=7", "metadata.ticket.id=8") == [BLUE, RED]
    assert await listed("metadata.ticket.id=7", "metadata.team-name=blue") == []
    assert await listed(
        'metadata={"ticket.id": {"in": [8]}}', "metadata.team-name=blue"
    ) == [BLUE]
    assert (
        "metadata: must be a JSON object."
        in (await folklore("list", "--filter", "metadata=[]")).err
    )
    assert (await folklore("list", "--filter", "metadata.=x")).code == 2
