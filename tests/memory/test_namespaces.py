"""Namespaces: made on first use, found by any spelling, counted."""

from datetime import timedelta

import asyncpg

from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.memory.context import MemoryContext
from folklore.model import Draft
from tests import embedders
from tests.person import NOON, Person


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
