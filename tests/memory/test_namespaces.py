"""Namespaces: made on first use, found by any spelling, counted."""

from datetime import timedelta

import asyncpg
import pytest

from folklore.contract.namespaces import CreateNamespaceRequest, RenameNamespaceRequest
from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.errors import InvalidInput, NotFound
from folklore.memory.context import MemoryContext
from folklore.model import Draft
from tests import embedders
from tests.person import NOON, Person, contents


async def test_the_first_store_creates_its_namespace(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("x", namespace="payments-team")

    row = await connection.fetchrow(
        "select name, language, languages, created_at, created_by from namespaces"
    )
    assert row is not None
    assert tuple(row) == ("payments-team", "english", ["english"], NOON, "tester")


async def test_statistics_count_what_a_namespace_holds(
    database: Database, embedder: Embedder, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, embedder))
    await person.keep(
        Draft("one", session="s"),
        Draft("two", session="s"),
        Draft("three", session="t"),
    )
    await (
        Person(MemoryContext.of(database, embedders.Down()))
        .at(NOON + timedelta(days=1))
        .keep("owes its vector", "gone")
    )
    await connection.execute(
        "update memories set forgotten_at = now() where content in ('one', 'gone')"
    )
    await connection.execute(
        "update memories set superseded_at = now() where content = 'two'"
    )
    [notebook] = await person.library.find_namespaces(["notes"])

    [stats] = await person.library.namespaces.stats(
        namespaces=[notebook.id], model=(await embedder.model()).id
    )

    assert (
        stats.memories,
        stats.forgotten,
        stats.superseded,
        stats.without_vector,
        stats.sessions,
    ) == (3, 2, 1, 1, 2)
    [listed] = await person.library.namespaces.all()
    [status] = await person.library.namespaces.status((await embedder.model()).id)
    assert listed.memories == status.memories == stats.memories
    assert stats.characters == len("onetwothreeowes its vectorgone")
    assert (stats.oldest, stats.newest) == (NOON, NOON + timedelta(days=1))


@pytest.mark.parametrize("word", ["null", "None", " undefined "])
async def test_words_that_programs_write_for_no_name_name_no_new_namespace(
    person: Person, connection: asyncpg.Connection, word: str
) -> None:
    await person.keep("x")
    for request in (
        CreateNamespaceRequest(name=word),
        RenameNamespaceRequest(name="notes", to=word),
    ):
        with pytest.raises(InvalidInput, match="programs write that there is no name"):
            await person.call(request)

    await person.keep("y", namespace=word)
    assert await connection.fetchval("select array_agg(name) from namespaces") == [
        "notes"
    ]


async def test_a_namespace_of_a_former_version_with_such_a_name_can_be_renamed(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("x")
    await connection.execute("update namespaces set name = 'null'")

    await person.call(RenameNamespaceRequest(name="null", to="notes"))

    assert contents(await person.recall("x")) == ["x"]


@pytest.mark.parametrize("wanted", ["misc", "zzz", "qqqqqq"])
async def test_a_name_without_a_near_one_gets_no_suggestion(
    person: Person, wanted: str
) -> None:
    for name in ("big", "coerce", "dates", "default", "enc"):
        await person.keep("x", namespace=name)

    with pytest.raises(NotFound) as refusal:
        await person.recall("x", namespaces=(wanted,))

    assert refusal.value.hint == (
        "`folklore namespaces list` and memory_status show those that exist."
    )
