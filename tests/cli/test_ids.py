"""Ids on the command line: whole, by their end, or by the number in the last list."""

import json
from pathlib import Path
from uuid import UUID

import asyncpg

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`


async def keep(folklore: CommandLine, text: str) -> UUID:
    return UUID(await folklore.keep(text))


async def rename_id(connection: asyncpg.Connection, old: UUID, new: UUID) -> None:
    await connection.execute("set constraints all deferred")
    async with connection.transaction():
        for table in ("fresh_words", "embeddings"):
            await connection.execute(f"delete from {table} where memory_id = $1", old)
        await connection.execute("update memories set id = $2 where id = $1", old, new)


async def test_every_command_takes_the_end_of_an_id(folklore: CommandLine) -> None:
    one = await keep(folklore, "The gate is open.")
    two = await keep(folklore, "The door is green.")
    end = one.hex[-6:]
    other = two.hex[-6:].upper()

    assert "The gate is open." in await folklore.done("show", end)
    assert f"pinned {one}" in await folklore.done("pin", end)
    await folklore.done("relate", end, "depends_on", other)
    assert "update by tester" in await folklore.done("history", end)
    assert "undone: update" in await folklore.done("undo", f"…{end}")
    assert "1 forgotten" in await folklore.done("forget", end, "--yes")
    assert "undone: forget" in await folklore.done("undo", end)
    assert f"merged into {two}" in await folklore.done("merge", other, end)
    stored = await folklore.json("store", "The door is red.", "--supersedes", other)
    assert stored["stored"][0]["status"] == "superseded_old"


async def test_lists_show_ends_that_commands_take(folklore: CommandLine) -> None:
    id_ = await keep(folklore, "The gate is open.")

    listed = await folklore.done("list")

    assert str(id_) not in listed
    assert f"{id_.hex[-8:]} by tester" in listed
    assert str(id_) in await folklore.done("list", "--format", "ids")


async def test_a_number_means_the_entry_of_the_last_list(folklore: CommandLine) -> None:
    first = await keep(folklore, "The gate is open.")
    second = await keep(folklore, "The door is green.")

    unlisted = await folklore("show", "1")
    await folklore.done("list", "--sort", "time_asc")
    both = (await folklore.json("show", "1", "2"))["memories"]
    await folklore.json("list")  # newest first, for a program
    again = (await folklore.json("show", "1"))["memories"]
    beyond = await folklore("show", "3")

    assert (unlisted.code, "is empty, or was printed hours ago" in unlisted.err) == (
        2,
        True,
    )
    assert [memory["id"] for memory in both] == [str(first), str(second)]
    assert [memory["id"] for memory in again] == [str(first)]
    assert (beyond.code, "has 2 entries" in beyond.err) == (2, True)


DAMAGED: list[str] = ["", "[]", '{"1": 2}', "{"]


async def test_a_damaged_file_of_lists_is_replaced(
    folklore: CommandLine, tmp_path: Path
) -> None:
    await keep(folklore, "The gate is open.")
    lists = tmp_path / "home" / "last-lists.json"
    lists.parent.mkdir(exist_ok=True)

    for content in DAMAGED:
        lists.write_text(content)

        assert (await folklore("show", "1")).code == 2, content
        await folklore.done("list")
        assert "The gate is open." in await folklore.done("show", "1"), content


async def test_an_old_list_is_not_used(folklore: CommandLine, tmp_path: Path) -> None:
    await keep(folklore, "The gate is open.")
    await folklore.done("list")
    lists = tmp_path / "home" / "last-lists.json"
    aged = {
        name: kept | {"at": kept["at"] - 13 * 3600}
        for name, kept in json.loads(lists.read_text()).items()
    }
    lists.write_text(json.dumps(aged))

    assert (await folklore("show", "1")).code == 2


async def test_an_end_of_several_ids_lists_the_candidates(
    folklore: CommandLine, connection: asyncpg.Connection
) -> None:
    gate = await keep(folklore, "The gate is open.")
    door = await keep(folklore, "The door is green.")
    twin = UUID(hex=f"{door.hex[:-6]}{gate.hex[-6:]}")
    await rename_id(connection, door, twin)

    ran = await folklore("forget", gate.hex[-6:], "--yes")
    longer = 7
    while gate.hex[-longer:] == twin.hex[-longer:]:
        longer += 1

    assert ran.code == 2
    assert f"{gate} in notes: The gate is open." in ran.err
    assert f"{twin} in notes: The door is green." in ran.err
    assert "Give more characters." in ran.err
    assert "The gate is open." in await folklore.done("show", gate.hex[-longer:])


NO_MEMORY: list[tuple[str, int, str]] = [
    ("abc", 2, "is not an id"),
    ("0", 2, "is not an id"),
    ("xyz1", 2, "is not an id"),
    ("ffffffff", 4, "ends in"),
]


async def test_a_text_that_names_no_memory_is_refused(folklore: CommandLine) -> None:
    await keep(folklore, "The gate is open.")

    for text, code, words in NO_MEMORY:
        ran = await folklore("show", text)

        assert ran.code == code, text
        assert words in ran.err, text
