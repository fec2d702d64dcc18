"""Idempotency keys in export and import: a repeated store has the same answer in the other database."""

import json
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from folklore.callers import Caller
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext
from folklore.memory.context.validation import MAX_KEY
from folklore.memory.transfer.json_lines import MAX_KEYS
from folklore.model import Draft
from tests.conftest import Cluster
from tests.fake_keys import MAKERS
from tests.memory.transfer.test_transfer import (
    NEW,
    OLD,
    Mover,
    batches_of_two,  # noqa: F401 - a fixture
    new_mover,  # noqa: F401 - a fixture
)
from tests.person import Person

REQUEST = "ab" * 32


@pytest.fixture
async def elsewhere(
    mover: Mover, cluster: Cluster, template: str
) -> AsyncIterator[tuple[Mover, Person]]:
    """Another database: its importer, and a person who stores there."""
    async with cluster.opened(template) as database:
        yield (
            Mover(database, mover.embedder, Caller("mover")),
            Person(MemoryContext.of(database, mover.embedder)),
        )


def body(export: list[str]) -> list[str]:
    """Return the lines after the header, which has the time of the export."""
    return export[1:]


@pytest.mark.usefixtures("small_batches")
async def test_a_repeated_store_has_the_same_answer_after_export_and_import(
    person: Person, mover: Mover, elsewhere: tuple[Mover, Person]
) -> None:
    importer, there = elsewhere
    [old] = await person.keep("old")
    drafts = [
        Draft("the first text", idempotency_key="own"),
        Draft("the first text", idempotency_key="repeated"),
        Draft("newer", supersedes=old, idempotency_key="with a successor"),
    ]
    stored = [(await person.keep(draft))[0] for draft in drafts]
    await person.update(stored[0], content="the second text")
    export = await mover.take()

    dry = await importer.put((line.encode() for line in export), dry_run=True)
    first = await importer.put(line.encode() for line in export)
    again = await importer.put(line.encode() for line in export)

    assert (dry.stored, first.stored, again.stored, again.duplicates) == (3, 3, 0, 3)
    assert (dry.ignored_fields, first.failed, again.failed) == ({}, 0, 0)
    assert [(await there.keep(draft))[0] for draft in drafts] == stored
    for key in ("own", "repeated", "with a successor"):
        with pytest.raises(InvalidInput, match="idempotency_key"):
            await there.store(Draft("something else", idempotency_key=key))
    assert body(await importer.take()) == body(export)


async def test_a_line_has_no_digest_for_a_key_whose_request_is_its_text(
    person: Person, mover: Mover
) -> None:
    await person.keep(Draft("one", idempotency_key="k"))
    await person.keep(Draft("two"))
    await person.keep(Draft("two", idempotency_key="l"))
    await person.keep(Draft("two", idempotency_key="m"))

    one, two = await mover.memories()

    assert (one["idempotency_key"], "idempotency_keys" in one) == ("k", False)
    assert (two["idempotency_key"], list(two["idempotency_keys"])) == ("l", ["m"])


async def test_dry_runs_and_duplicates_store_no_keys(
    mover: Mover, connection: asyncpg.Connection
) -> None:
    await mover.put([{"id": OLD, "content": "one"}])
    known: list[dict[str, Any]] = [
        {"id": NEW, "content": "one", "idempotency_keys": {"k": REQUEST}}
    ]
    fresh: list[dict[str, Any]] = [
        {"id": NEW, "content": "two", "idempotency_keys": {"k": REQUEST}}
    ]

    here: list[dict[str, Any]] = [
        {"id": OLD, "content": "one", "idempotency_keys": {"k": REQUEST}}
    ]

    assert (await mover.put(fresh, dry_run=True)).stored == 1
    assert (await mover.put(here, dry_run=True)).duplicates == 1
    assert (await mover.put(known)).duplicates == 1
    assert await connection.fetchval("select count(*) from idempotency_keys") == 0
    assert (await mover.put(fresh)).stored == 1
    assert await connection.fetchval(
        "select memory_id from idempotency_keys where key = 'k'"
    ) == UUID(NEW)


async def test_keys_are_added_to_an_existing_memory_without_another_change(
    mover: Mover, connection: asyncpg.Connection
) -> None:
    line = {"id": OLD, "content": "one"}
    await mover.put([line])

    for policy in ("skip", "overwrite"):
        report = await mover.put(
            [line | {"idempotency_keys": {policy: REQUEST}}], on_conflict=policy
        )
        assert (report.duplicates, report.overwritten) == (1, 0)

    assert {
        row["key"] for row in await connection.fetch("select key from idempotency_keys")
    } == {"overwrite", "skip"}
    assert await connection.fetchval("select revision from memories") == 1


async def test_a_key_in_use_stays_with_its_memory(person: Person, mover: Mover) -> None:
    [existing] = await person.keep(Draft("here", idempotency_key="own"))
    await person.keep(Draft("here", idempotency_key="confirmed"))
    keys = {"own": REQUEST, "confirmed": REQUEST}
    lines: list[dict[str, Any]] = [
        {"id": NEW, "content": "imported", "idempotency_keys": keys},
        {"id": OLD, "content": "the key of another", "idempotency_key": "confirmed"},
    ]
    for dry_run in (True, False):
        report = await mover.put(lines, dry_run=dry_run)
        assert (report.stored, report.duplicates, report.failed) == (1, 1, 0)

    for key in keys:
        assert await person.keep(Draft("here", idempotency_key=key)) == [existing]
    assert [
        line
        for line in await mover.memories()
        if line.get("id") == NEW and "idempotency_keys" in line
    ] == []


async def test_a_key_stays_with_the_memory_that_was_imported_with_it(
    mover: Mover,
) -> None:
    lines: list[dict[str, Any]] = [
        {"id": OLD, "content": "one", "idempotency_key": "k"},
        {"id": NEW, "content": "two", "idempotency_keys": {"k": REQUEST}},
    ]

    assert (await mover.put(lines)).stored == 2

    assert [line.get("idempotency_keys") for line in await mover.memories()] == [
        None,
        None,
    ]


async def test_a_line_has_at_most_300_keys(
    person: Person, mover: Mover, elsewhere: tuple[Mover, Person]
) -> None:
    [known] = await person.keep("stored very often")
    keyed = [
        Draft("stored very often", idempotency_key=f"{'k' * 190} {number}")
        for number in range(MAX_KEYS + 5)
    ]
    assert set(await person.keep(*keyed)) == {known}

    export = await mover.take()
    report = await elsewhere[0].put(line.encode() for line in export)

    assert len(json.loads(export[1])["idempotency_keys"]) == MAX_KEYS
    assert (report.stored, report.failed) == (1, 0)


INVALID: list[Any] = [
    ["k"], {"k": 1}, {"k": REQUEST.upper()}, {"k": REQUEST[1:]}, {"k": "g" * 64}, {"hunter2": REQUEST, "k": "ab"},
    {"": REQUEST}, {" \0": REQUEST, "hunter2": REQUEST}, {"k" * (MAX_KEY + 1): REQUEST}, {"hunter2" * 30: REQUEST},
    {f"hunter2 {number}": REQUEST for number in range(MAX_KEYS + 1)},
]  # fmt: skip


async def test_invalid_keys_fail_their_line_and_are_not_repeated(mover: Mover) -> None:
    lines = [
        {"content": f"text {place}", "idempotency_keys": keys}
        for place, keys in enumerate(INVALID)
    ]

    report = await mover.put([*lines, {"content": "two"}])

    assert (report.stored, report.failed) == (1, len(INVALID))
    for failure in report.failures:
        assert failure.message.startswith("idempotency_keys: ")
        assert "hunter2" not in failure.message


async def test_imported_keys_are_cleaned_and_have_the_usual_length_limit(
    mover: Mover, connection: asyncpg.Connection
) -> None:
    longest = "k" * MAX_KEY

    report = await mover.put(
        [
            {
                "content": "one",
                "idempotency_keys": {" release\0day ": REQUEST, longest: REQUEST},
            }
        ]
    )

    assert (report.stored, report.failed) == (1, 0)
    assert {row["key"] for row in await connection.fetch("select key from idempotency_keys")} == {
        "releaseday", longest,
    }  # fmt: skip


async def test_a_secret_among_many_keys_is_refused(mover: Mover) -> None:
    secret = MAKERS["github"][0](random.Random(1))
    keys = {f"{'k' * 190} {number}": REQUEST for number in range(MAX_KEYS - 1)} | {
        secret: REQUEST
    }

    report = await mover.put([{"content": "one", "idempotency_keys": keys}])

    assert (report.stored, report.refused) == (0, 1)
