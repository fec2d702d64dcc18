"""Namespaces: made on first use, found by any spelling, counted."""

import asyncio
from datetime import timedelta

import asyncpg
import pytest

from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.errors import NotFound
from folklore.memory.context import MemoryContext
from folklore.model import Draft
from tests import embedders
from tests.person import NOON, Person


async def test_the_first_store_creates_its_namespace(person: Person, connection: asyncpg.Connection) -> None:
    await person.keep("x", namespace="payments-team")

    row = await connection.fetchrow("select name, language, languages, created_at, created_by from namespaces")
    assert row is not None
    assert tuple(row) == ("payments-team", "english", ["english"], NOON, "tester")


async def test_namespaces_are_listed_by_name_with_their_sizes(person: Person) -> None:
    await person.keep("one", "two", namespace="b")
    await person.keep("one", namespace="a")

    assert [(namespace.name, namespace.memories) for namespace in await person.library.namespaces.all()] == [
        ("a", 1), ("b", 2),
    ]  # fmt: skip


async def test_namespaces_are_found_by_names_in_any_case_and_once_each(person: Person) -> None:
    await person.keep("x", namespace="repo:acme/api")

    found = await person.library.find_namespaces(["Repo:ACME/api", " repo:acme/api "])

    assert [notebook.name for notebook in found] == ["repo:acme/api"]


async def test_no_name_selects_all_namespaces_and_an_empty_database_has_none(person: Person) -> None:
    assert await person.library.find_namespaces([]) == []

    await person.keep("x", namespace="a")
    await person.keep("x", namespace="b")

    assert [notebook.name for notebook in await person.library.find_namespaces([])] == ["a", "b"]


async def test_the_error_for_an_unknown_namespace_lists_the_known_ones(person: Person) -> None:
    with pytest.raises(NotFound, match=r"no namespace 'a'\. Nothing has been stored yet\."):
        await person.library.find_namespaces(["a"])

    for name in ("alpha", "beta", "gamma"):
        await person.keep("x", namespace=name)

    with pytest.raises(NotFound, match=r"Did you mean alpha\?"):
        await person.library.find_namespaces(["alpah"])
    with pytest.raises(NotFound, match=r"Did you mean alpha, beta, gamma\?"):
        await person.library.find_namespaces(["zzz-nothing-like-it"])


async def test_statistics_count_what_a_namespace_holds(
    database: Database, embedder: Embedder, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, embedder))
    await person.keep(Draft("one", session="s"), Draft("two", session="s"), Draft("three", session="t"))
    await (
        Person(MemoryContext.of(database, embedders.Down()))
        .at(NOON + timedelta(days=1))
        .keep("owes its vector", "gone")
    )
    await connection.execute("update memories set forgotten_at = now() where content in ('one', 'gone')")
    await connection.execute("update memories set superseded_at = now() where content = 'two'")
    [notebook] = await person.library.find_namespaces(["notes"])

    [stats] = await person.library.namespaces.stats(namespaces=[notebook.id], model=(await embedder.model()).id)

    assert (stats.memories, stats.forgotten, stats.superseded, stats.without_vector, stats.sessions) == (3, 2, 1, 1, 2)
    [listed] = await person.library.namespaces.all()
    [status] = await person.library.namespaces.status((await embedder.model()).id)
    assert listed.memories == status.memories == stats.memories
    assert stats.characters == len("onetwothreeowes its vectorgone")
    assert (stats.oldest, stats.newest) == (NOON, NOON + timedelta(days=1))


async def test_a_namespace_created_by_several_at_once_exists_once(
    person: Person, connection: asyncpg.Connection
) -> None:
    await asyncio.gather(*(person.keep(f"text {n}", namespace="new") for n in range(10)))

    assert await connection.fetchval("select count(*) from namespaces") == 1
    assert await connection.fetchval("select count(*) from memories") == 10
