"""The field `pinned`: never expires or decays, first in what is trending, filter, option, export."""

import json
from pathlib import Path

import asyncpg
from mcp import Client

from folklore.contract.filters import FiltersRequest
from folklore.model import Draft, Filters
from tests.background_jobs import DAY, BackgroundJobs
from tests.cli.test_confirmed import command_place  # noqa: F401 - a fixture
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.person import NOON, Person, contents

FILTER = FiltersRequest(pinned=True)  # type: ignore[call-arg]


async def test_a_pinned_memory_does_not_expire(
    person: Person, jobs: BackgroundJobs
) -> None:
    expires = NOON + DAY
    await person.keep(
        Draft("The freeze ends on Friday.", expires_at=expires, pinned=True)
    )
    await person.keep(Draft("The freeze is strict.", expires_at=expires))
    later = person.at(NOON + 2 * DAY)
    jobs.now = later.now

    assert contents(await later.recall("freeze")) == ["The freeze ends on Friday."]
    assert contents(await later.list_memories()) == ["The freeze ends on Friday."]
    assert (await jobs.dry_run("expiry"))["expired"] == 1
    assert await jobs("expiry") == {"forgotten": 1}
    assert contents(await later.list_memories()) == ["The freeze ends on Friday."]


async def test_a_pinned_memory_does_not_decay(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep(
        Draft("We deploy from main.", pinned=True), "We deploy from main on Mondays."
    )
    await connection.execute("update memories set quality = 0.01")

    assert contents(await person.recall("deploy")) == ["We deploy from main."]
    assert contents(
        await person.recall("deploy", filters=Filters(kinds=("note",)))
    ) == ["We deploy from main."]


async def test_a_change_pins_a_memory_and_an_undo_releases_it(person: Person) -> None:
    [id_] = await person.keep("The gate code is on the door.")

    assert (await person.update(id_, pinned=True)).pinned
    assert contents(await person.list_memories(filters=FILTER)) == [
        "The gate code is on the door."
    ]
    assert not (await person.undo(id_)).pinned
    assert contents(await person.list_memories(filters=FILTER)) == []


async def test_commands_state_filter_and_export_it(
    folklore: CommandLine, tmp_path: Path
) -> None:
    await folklore.done("store", "The gate is open.", "--pinned")
    await folklore.done("store", "The gate is green.")
    await folklore.done("export", tmp_path / "all.jsonl")
    await folklore.done("import", tmp_path / "all.jsonl", "--namespace", "copy")

    found = await folklore.json(
        "recall", "gate", "--filter", "pinned=true", "-n", "copy"
    )

    assert [(memory["content"], memory["pinned"]) for memory in found["memories"]] == [
        ("The gate is open.", True)
    ]


async def test_pinned_memories_come_first_in_the_resource_that_begins_a_session(
    client: Client,
) -> None:
    texts = [{"content": f"Note {n}.", "pinned": n in (0, 3)} for n in range(25)]
    await client.call_tool("memory_store", {"memories": texts, "namespace": "notes"})

    read = await client.read_resource("memory://notes/recent")

    answer = json.loads(read.contents[0].text)  # type: ignore[union-attr]
    assert len(answer["memories"]) == 20
    assert {memory["content"] for memory in answer["memories"][:2]} == {
        "Note 0.",
        "Note 3.",
    }
    assert not any(memory.get("pinned") for memory in answer["memories"][2:])
    assert answer["truncated"]


async def test_the_resource_holds_pinned_memories_alone_if_there_are_many(
    client: Client,
) -> None:
    texts = [{"content": f"Note {n}.", "pinned": n < 21} for n in range(25)]
    await client.call_tool("memory_store", {"memories": texts, "namespace": "notes"})

    read = await client.read_resource("memory://notes/recent")

    answer = json.loads(read.contents[0].text)  # type: ignore[union-attr]
    assert [memory.get("pinned") for memory in answer["memories"]] == [True] * 20


async def test_a_command_pins_memories_and_releases_them(
    folklore: CommandLine, where: tuple[str, ...]
) -> None:
    ids = []
    for text in ("The gate is open.", "The gate is green."):
        ids += [
            item["id"]
            for item in (await folklore.json("store", text, "-n", "notes", *where))[
                "stored"
            ]
        ]

    pinned = await folklore.json("pin", *ids, *where)
    assert [memory["pinned"] for memory in pinned["memories"]] == [True, True]
    assert f"unpinned {ids[1]}" in await folklore.done(
        "pin", ids[1], "--remove", *where
    )
    listed = await folklore.json("list", "--filter", "pinned=true", *where)
    assert [memory["id"] for memory in listed["memories"]] == [ids[0]]
