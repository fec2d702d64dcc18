"""Arguments as clients and models write them, in every tool alike."""

from collections.abc import Mapping
from typing import Any

import asyncpg
import pytest
from mcp import Client

from folklore.mcp.tools import TOOLS
from folklore.model import Draft
from tests.mcp.test_tools import call, refusal
from tests.person import Person

# Arguments without which a tool answers nothing.
NEEDED: Mapping[str, Mapping[str, Any]] = {
    "memory_store": {"content": "Deploys are on Tuesdays."},
    "memory_recall": {"query": "deploys"},
    "search_keywords": {"query": "deploys"},
    "memory_get": {"ids": ["ID"]},
    "memory_update": {"id": "ID", "kind": "decision"},
    "memory_forget": {"ids": ["ID"]},
    "memory_relate": {"relations": [{"from": "ID", "to": "OTHER"}]},
}
NOTHING = ["", "  ", "null", " None", "undefined", "NULL", None]


def arguments_of(tool: str, ids: Mapping[str, str]) -> dict[str, Any]:
    needed = NEEDED.get(tool, {})
    return {name: _with_ids(value, ids) for name, value in needed.items()}


def _with_ids(value: Any, ids: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_with_ids(entry, ids) for entry in value]
    if isinstance(value, dict):
        return {name: _with_ids(entry, ids) for name, entry in value.items()}
    return ids.get(value, value)


def optional(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the optional arguments of a schema with their own."""
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    return {name: part for name, part in properties.items() if name not in required}


@pytest.fixture
async def ids(person: Person) -> Mapping[str, str]:
    one, other = await person.keep("Deploys are on Mondays.", "Releases are monthly.")
    return {"ID": str(one), "OTHER": str(other)}


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
async def test_what_stands_for_no_value_is_absent_for_every_optional_argument(
    client: Client, ids: Mapping[str, str], nothing: str | None
) -> None:
    for tool in TOOLS:
        needed = arguments_of(tool.name, ids)
        free = optional(tool.listed.input_schema)
        for name in free.keys() - needed.keys() - {"query"}:
            await call(client, tool.name, **needed, **{name: nothing})
            if free[name].get("type") == "array":
                await call(client, tool.name, **needed, **{name: [nothing]})
        everything = dict.fromkeys(free, nothing) | needed
        await call(client, tool.name, **everything)


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
async def test_it_is_absent_one_level_down_too(
    client: Client,
    ids: Mapping[str, str],
    connection: asyncpg.Connection,
    nothing: str | None,
) -> None:
    [store, recall, *_] = (tool.listed.input_schema for tool in TOOLS)
    memory = optional(store["properties"]["memories"]["items"])
    filters = optional(recall["properties"]["filters"])
    ranking = optional(recall["properties"]["ranking"])

    batch = [dict.fromkeys(memory, nothing) | {"content": f"It is {nothing}."}]
    stored = await call(client, "memory_store", memories=batch, namespace=nothing)
    found = await call(
        client,
        "memory_recall",
        query="deploys",
        filters=dict.fromkeys(filters, nothing),
        ranking=dict.fromkeys(ranking, nothing),
    )
    relation = {"from": ids["ID"], "to": ids["OTHER"]}
    extra = {"type": nothing, "strength": nothing, "remove": nothing}
    related = await call(client, "memory_relate", relations=[relation | extra])

    assert stored["namespace"] == "notes"
    [row] = await connection.fetch(
        "select tags, source, kind from memories where content like 'It is %'"
    )
    assert dict(row) == {"tags": [], "source": None, "kind": "note"}
    assert found["memories"]
    assert related["created"][0]["type"] == "relates_to"


async def test_null_words_are_refused_as_names(client: Client, person: Person) -> None:
    for word in ("null", "None", " UNDEFINED"):
        message = await refusal(
            client, "memory_store", content="x", tags=["deploy", word]
        )
        assert "tags: " in message
        assert "programs write that there is no tag" in message
    [id_] = await person.keep("x")
    assert "no tag" in await refusal(
        client, "memory_update", id=str(id_), tags=["a", "none"]
    )


async def test_query_null_is_a_question_unless_there_are_others(
    client: Client,
) -> None:
    await call(client, "memory_store", content="The parser returns undefined.")

    for tool in ("memory_recall", "search_keywords"):
        assert (await call(client, tool, query="undefined"))["memories"]
    several = await call(
        client, "memory_recall", query="null", queries=["what does the parser return?"]
    )
    assert several["memories"]


async def test_json_texts_are_read_at_every_depth(client: Client) -> None:
    await call(
        client,
        "memory_store",
        memories=[
            {"content": "one", "tags": '["a", "b"]', "metadata": '{"x": {"y": 1}}'},
            '{"content": "two", "tags": "a", "related": "[]"}',
        ],
    )
    for filters in (
        {"tags": '["a"]', "metadata": '{"x.y": {"in": [1, 2]}}'},
        '{"tags": ["b"], "kinds": "[\\"note\\"]"}',
    ):
        found = await call(
            client,
            "memory_recall",
            query="one",
            filters=filters,
            ranking={"expand": '["relations"]', "weights": '{"dense": 1}'},
        )
        assert [memory["content"] for memory in found["memories"]] == ["one"]


@pytest.mark.parametrize(
    "tags",
    [
        "deploy, ops",
        "deploy ops",
        "#deploy #ops",
        '["deploy","ops"]',
        "[deploy, 'ops']",
    ],
)
async def test_a_list_may_be_one_text(client: Client, tags: str) -> None:
    stored = await call(client, "memory_store", content="x", tags=tags)
    [id_] = [item["id"] for item in stored["stored"]]
    await call(client, "memory_store", content="y", namespace="other")

    [memory] = (await call(client, "memory_get", ids=f"{id_}"))["memories"]
    assert memory["tags"] == ["deploy", "ops"]
    for namespaces in ("notes, other", "notes other", '["notes", "other"]'):
        listed = await call(
            client, "memory_list", namespaces=namespaces, filters={"tags": tags}
        )
        assert [memory["id"] for memory in listed["memories"]] == [id_]
    several = await call(client, "memory_list", filters={"kinds": "note, decision"})
    assert len(several["memories"]) == 2


async def test_each_line_of_a_text_of_cues_is_one(
    client: Client, connection: asyncpg.Connection
) -> None:
    await call(
        client,
        "memory_store",
        content="x",
        cues="- before a deploy, at night\n- on call",
    )

    [row] = await connection.fetch("select cues from memories")
    assert row["cues"] == ["before a deploy, at night", "on call"]


SPELLINGS = [
    "{id}", "{upper}", "{{{id}}}", "[{id}]", '"{id}"', "'{id}'", "`{id}`", "<{id}>", "urn:uuid:{id}", "{hex}", "{id}.",
    "id: {id}", "#{end}", "…{end}", "...{end}", "[…{end}]", "({end})", "id={end}", " {end} ", "{start}…{end}", "ID {end}",
    "folklore://memory/{id}", "memory {id} (deploys)", "{dashes}",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_an_id_may_be_written_as_people_copy_it(
    client: Client, ids: Mapping[str, str], spelling: str
) -> None:
    id_ = ids["ID"]
    text = spelling.format(
        id=id_,
        upper=id_.upper(),
        hex=id_.replace("-", ""),
        end=id_[-8:],
        start=id_[:8],
        dashes=id_.replace("-", "\u2011"),
    )

    for named in (text, [text]):
        [memory] = (await call(client, "memory_get", ids=named))["memories"]
        assert memory["id"] == id_
    updated = await call(client, "memory_update", id=text, tags=["x"])
    assert updated["id"] == id_
    relation = {"from": text, "to": ids["OTHER"]}
    assert (await call(client, "memory_relate", relations=[relation]))["created"]
    forgotten = await call(client, "memory_forget", ids=text)
    assert [memory["id"] for memory in forgotten["forgotten"]] == [id_]


async def test_the_beginning_of_an_id_is_refused_with_what_to_give(
    client: Client, ids: Mapping[str, str]
) -> None:
    for beginning in (f"{ids['ID'][:13]}…", f"[{ids['ID'][:8]}...]"):
        message = await refusal(client, "memory_get", ids=[beginning])
        assert "is the beginning of an id" in message
        assert "last 4 characters" in message
    two = f"{ids['ID']} or {ids['OTHER']}"
    assert "is not an id" in await refusal(client, "memory_update", id=two, kind="bug")


async def test_an_end_of_digits_may_be_a_number(client: Client, person: Person) -> None:
    [id_] = await person.keep(Draft("x"))
    while not (id_.hex[-4:].isdigit() and id_.hex[-4] != "0"):
        [id_] = await person.keep(f"x {id_}")

    for named in (int(id_.hex[-4:]), f"[{id_.hex[-4:]}]", [int(id_.hex[-4:])]):
        [memory] = (await call(client, "memory_get", ids=named))["memories"]
        assert memory["id"] == str(id_)


async def test_a_tag_is_found_with_its_number_sign_and_without(
    client: Client, person: Person, connection: asyncpg.Connection
) -> None:
    await call(client, "memory_store", content="x", tags=["#Deploy", "# ops", "c#"])
    [memory] = (await call(client, "memory_list"))["memories"]

    assert memory["tags"] == ["deploy", "ops", "c#"]
    for tag in ("deploy", "#deploy", "#Deploy"):
        found = await call(client, "memory_list", filters={"tags": [tag]})
        assert len(found["memories"]) == 1
        excluded = await call(client, "memory_list", filters={"exclude_tags": tag})
        assert excluded["memories"] == []
    for query in ("tag:deploy", "tag:#deploy"):
        assert (
            len((await call(client, "search_keywords", query=query))["memories"]) == 1
        )
