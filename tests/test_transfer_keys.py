"""Idempotency keys on their way between databases: what was said under a key is not taken as new elsewhere."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from folklore.db.database import Database
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext
from folklore.memory.transfer.key_lines import MAX_KEYS
from folklore.memory.validation import MAX_KEY
from folklore.model import Caller, Draft
from tests.conftest import Cluster
from tests.fake_keys import MAKERS
from tests.person import Person
from tests.test_transfer import NEW, OLD, Mover, mover, small_batches  # noqa: F401 - fixtures

ASKED = "ab" * 32


@pytest.fixture
async def elsewhere(mover: Mover, cluster: Cluster, template: str) -> AsyncIterator[tuple[Mover, Person]]:  # noqa: F811
    """Another database: who imports there, and who writes there."""
    async with cluster.new_database(template) as name:
        database = Database(cluster.address(name))
        await database.open()
        yield Mover(database, mover.embedder, Caller("mover")), Person(MemoryContext.of(database, mover.embedder))
        await database.close()


def body(export: list[str]) -> list[str]:
    """Without the header, which tells the time."""
    return export[1:]


@pytest.mark.usefixtures("small_batches")
async def test_a_call_repeated_after_a_move_is_answered_as_it_was(
    person: Person,
    mover: Mover,  # noqa: F811
    elsewhere: tuple[Mover, Person],
) -> None:
    importer, there = elsewhere
    [old] = await person.keep("old")
    drafts = [
        Draft("as it was said", idempotency_key="own"),
        Draft("as it was said", idempotency_key="said again"),
        Draft("newer", supersedes=old, idempotency_key="more than a text"),
    ]
    said = [(await person.keep(draft))[0] for draft in drafts]
    await person.update(said[0], content="as it is said now")
    export = await mover.take()

    rehearsed = await importer.put((line.encode() for line in export), dry_run=True)
    first = await importer.put(line.encode() for line in export)
    again = await importer.put(line.encode() for line in export)

    assert (rehearsed.stored, first.stored, again.stored, again.duplicates) == (3, 3, 0, 3)
    assert (rehearsed.ignored, first.failed, again.failed) == ({}, 0, 0)
    assert [(await there.keep(draft))[0] for draft in drafts] == said
    for key in ("own", "said again", "more than a text"):
        with pytest.raises(InvalidInput, match="idempotency_key"):
            await there.store(Draft("something else", idempotency_key=key))
    assert body(await importer.take()) == body(export)


async def test_a_line_repeats_no_digest_of_a_key_for_its_text(
    person: Person,
    mover: Mover,  # noqa: F811
) -> None:
    await person.keep(Draft("one", idempotency_key="k"))
    await person.keep(Draft("two"))
    await person.keep(Draft("two", idempotency_key="l"))
    await person.keep(Draft("two", idempotency_key="m"))

    one, two = await mover.memories()

    assert (one["idempotency_key"], "idempotency_keys" in one) == ("k", False)
    assert (two["idempotency_key"], list(two["idempotency_keys"])) == ("l", ["m"])


async def test_a_dry_run_and_a_line_that_is_not_taken_keep_no_key(
    mover: Mover,  # noqa: F811
    connection: asyncpg.Connection,
) -> None:
    await mover.put([{"id": OLD, "content": "one"}])
    known: list[dict[str, Any]] = [{"id": NEW, "content": "one", "idempotency_keys": {"k": ASKED}}]
    fresh: list[dict[str, Any]] = [{"id": NEW, "content": "two", "idempotency_keys": {"k": ASKED}}]

    here: list[dict[str, Any]] = [{"id": OLD, "content": "one", "idempotency_keys": {"k": ASKED}}]

    assert (await mover.put(fresh, dry_run=True)).stored == 1
    assert (await mover.put(here, dry_run=True)).duplicates == 1
    assert (await mover.put(known)).duplicates == 1
    assert await connection.fetchval("select count(*) from idempotency_keys") == 0
    assert (await mover.put(fresh)).stored == 1
    assert await connection.fetchval("select memory_id from idempotency_keys where key = 'k'") == UUID(NEW)


async def test_keys_reach_a_memory_that_is_here_already_and_change_nothing_else_of_it(
    mover: Mover,  # noqa: F811
    connection: asyncpg.Connection,
) -> None:
    line = {"id": OLD, "content": "one"}
    await mover.put([line])

    for policy in ("skip", "overwrite"):
        report = await mover.put([line | {"idempotency_keys": {policy: ASKED}}], on_conflict=policy)
        assert (report.duplicates, report.overwritten) == (1, 0)

    assert {row["key"] for row in await connection.fetch("select key from idempotency_keys")} == {"overwrite", "skip"}
    assert await connection.fetchval("select revision from memories") == 1


async def test_a_key_that_is_used_here_stays_whose_it_is(
    person: Person,
    mover: Mover,  # noqa: F811
) -> None:
    [here] = await person.keep(Draft("here", idempotency_key="own"))
    await person.keep(Draft("here", idempotency_key="confirmed"))
    keys = {"own": ASKED, "confirmed": ASKED}
    arriving: list[dict[str, Any]] = [
        {"id": NEW, "content": "from elsewhere", "idempotency_keys": keys},
        {"id": OLD, "content": "the key of another", "idempotency_key": "confirmed"},
    ]
    for dry_run in (True, False):
        report = await mover.put(arriving, dry_run=dry_run)
        assert (report.stored, report.duplicates, report.failed) == (1, 1, 0)

    for key in keys:
        assert await person.keep(Draft("here", idempotency_key=key)) == [here]
    assert [line for line in await mover.memories() if line.get("id") == NEW and "idempotency_keys" in line] == []


async def test_a_key_is_not_taken_from_a_memory_that_came_with_it(mover: Mover) -> None:  # noqa: F811
    lines: list[dict[str, Any]] = [
        {"id": OLD, "content": "one", "idempotency_key": "k"},
        {"id": NEW, "content": "two", "idempotency_keys": {"k": ASKED}},
    ]

    assert (await mover.put(lines)).stored == 2

    assert [line.get("idempotency_keys") for line in await mover.memories()] == [None, None]


async def test_of_very_many_keys_a_line_holds_as_many_as_one_may(
    person: Person,
    mover: Mover,  # noqa: F811
    elsewhere: tuple[Mover, Person],
) -> None:
    [known] = await person.keep("said very often")
    keyed = [Draft("said very often", idempotency_key=f"{'k' * 190} {number}") for number in range(MAX_KEYS + 5)]
    assert set(await person.keep(*keyed)) == {known}

    export = await mover.take()
    report = await elsewhere[0].put(line.encode() for line in export)

    assert len(json.loads(export[1])["idempotency_keys"]) == MAX_KEYS
    assert (report.stored, report.failed) == (1, 0)


@pytest.mark.parametrize(
    "keys",
    [
        "k",
        ["k"],
        {"k": 1},
        {"k": "ab"},
        {"k": ASKED.upper()},
        {"k": ASKED[1:]},
        {"k": ASKED + "a"},
        {"k": "g" * 64},
        {"hunter2": ASKED, "k": "ab"},
        {"": ASKED},
        {" \0": ASKED, "hunter2": ASKED},
        {"k" * (MAX_KEY + 1): ASKED},
        {"hunter2" * 30: ASKED},
        {f"hunter2 {number}": ASKED for number in range(MAX_KEYS + 1)},
    ],
)
async def test_keys_that_are_none_fail_their_line_without_being_repeated(mover: Mover, keys: Any) -> None:  # noqa: F811
    report = await mover.put([{"content": "one", "idempotency_keys": keys}, {"content": "two"}])

    assert (report.stored, report.failed) == (1, 1)
    assert report.failures[0].message.startswith("idempotency_keys: ")
    assert "hunter2" not in report.failures[0].message


async def test_keys_are_cleaned_as_a_callers_are_and_may_be_as_long(
    mover: Mover,  # noqa: F811
    connection: asyncpg.Connection,
) -> None:
    longest = "k" * MAX_KEY

    report = await mover.put([{"content": "one", "idempotency_keys": {" release\0day ": ASKED, longest: ASKED}}])

    assert (report.stored, report.failed) == (1, 0)
    assert {row["key"] for row in await connection.fetch("select key from idempotency_keys")} == {
        "releaseday", longest,
    }  # fmt: skip


async def test_a_key_that_is_a_secret_is_refused_wherever_it_stands(mover: Mover) -> None:  # noqa: F811
    secret = MAKERS["github"][0](random.Random(1))
    keys = {f"{'k' * 190} {number}": ASKED for number in range(MAX_KEYS - 1)} | {secret: ASKED}

    report = await mover.put([{"content": "one", "idempotency_keys": keys}])

    assert (report.stored, report.refused) == (0, 1)
