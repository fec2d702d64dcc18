"""A batch with faulty memories: those are refused by name, the others are stored, on every surface."""

import random
from typing import Any

import asyncpg
from mcp import Client

from folklore.contract.memories import StoreRequest
from folklore.contract.requests import read_request, read_result, result_json
from folklore.model import Unreadable
from tests.fake_keys import MAKERS
from tests.person import Person

KEY = MAKERS["github"][0](random.Random(7))
BATCH: list[Any] = [
    {"content": "The gate opens at nine."}, {"content": f"CI uses {KEY}."}, {"content": "x" * 32_001},
    {"content": "The board meets on Mondays.", "occurred_at": "soon"},
    {"content": "Refunds take three days.", "priority": 5},
    {"content": "Deploys stop on Fridays.", "supersedes": "00000000-0000-4000-8000-000000000001"}, {"kind": "note"},
    "no object", {"content": "The API answers at two.", "author": "another person"},
    {"content": "The site loads in one second."},
]  # fmt: skip
FIELDS = [
    (1, "content"), (2, "content"), (3, "occurred_at"), (4, "priority"), (5, "supersedes"), (6, "content"), (7, ""),
    (8, "author"),
]  # fmt: skip


async def test_one_call_stores_the_good_memories_and_names_the_others(
    client: Client, connection: asyncpg.Connection
) -> None:
    answer = await client.call_tool(
        "memory_store", {"memories": BATCH, "namespace": "notes"}
    )

    assert not answer.is_error
    said = answer.structured_content
    assert [item["status"] for item in said["stored"]] == ["stored", "stored"]
    assert [(item["index"], item["field"]) for item in said["refused"]] == FIELDS
    assert "8 of 10 memories were refused" in said["note"]
    assert KEY not in answer.content[0].text  # type: ignore[union-attr]
    assert all(
        item["reason"] and "Nothing was stored" not in item["reason"]
        for item in said["refused"]
    )
    texts = await connection.fetch("select content from memories order by 1")
    assert [row["content"] for row in texts] == [
        BATCH[0]["content"],
        BATCH[-1]["content"],
    ]


async def test_a_batch_that_is_stored_in_part_is_repeated_without_effect(
    client: Client, connection: asyncpg.Connection
) -> None:
    meta: Any = {"claudecode/toolUseId": "call_1"}
    first = await client.call_tool(
        "memory_store", {"memories": BATCH, "namespace": "notes"}, meta=meta
    )
    again = await client.call_tool(
        "memory_store", {"memories": BATCH, "namespace": "notes"}, meta=meta
    )

    assert [item["id"] for item in first.structured_content["stored"]] == [
        item["id"] for item in again.structured_content["stored"]
    ]
    assert first.structured_content["refused"] == again.structured_content["refused"]
    assert await connection.fetchval("select count(*) from memories") == 2


async def test_a_batch_without_a_good_memory_is_an_error(
    client: Client, connection: asyncpg.Connection
) -> None:
    answer = await client.call_tool("memory_store", {"memories": BATCH[1:3]})

    assert answer.is_error
    assert "memories[1]" not in answer.content[0].text  # type: ignore[union-attr]
    assert answer.content[0].text.startswith("memories[0].content: ")  # type: ignore[union-attr]
    assert await connection.fetchval("select count(*) from memories") == 0
    assert await connection.fetchval("select count(*) from namespaces") == 0


async def test_the_http_api_reads_a_batch_with_faulty_memories_and_answers_alike(
    person: Person,
) -> None:
    request = read_request(
        StoreRequest,
        b'{"namespace": "notes", "memories": [{"content": "one"}, {"content": "two", "importance": "NaN"}, 7]}',
    )

    result = await person.call(request)

    assert isinstance(request.memories[2], Unreadable)
    read = read_result(request, result_json(request, result))
    assert read == result
    assert [(item.index, item.field) for item in read.refused] == [
        (1, "importance"),
        (2, ""),
    ]


async def test_the_answer_to_500_alike_memories_shows_few_similar_ones(
    client: Client,
) -> None:
    memories = [
        {"content": f"The nightly backup of shop {number} is copied to the vault."}
        for number in range(500)
    ]
    await client.call_tool(
        "memory_store",
        {"content": "The nightly backup of shop 7 is copied to the vault, always."},
    )

    said = (
        await client.call_tool("memory_store", {"memories": memories})
    ).structured_content

    shown = [near for item in said["stored"] for near in item.get("similar", ())]
    assert 0 < len(shown) <= 20
    assert sum(len(str(near)) for near in shown) < 8_000
    assert "more similar memories are not shown" in said["note"]
