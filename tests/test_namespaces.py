"""Namespaces: made on first use, found by any spelling, counted."""

from __future__ import annotations

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


async def test_a_namespace_is_made_by_the_first_store(person: Person, connection: asyncpg.Connection) -> None:
    await person.keep("x", namespace="payments-team")

    row = await connection.fetchrow("select name, language, languages, created_at, created_by from namespaces")
    assert row is not None
    assert tuple(row) == ("payments-team", "english", ["english"], NOON, "tester")


async def test_all_namespaces_come_with_their_size_in_order_of_name(person: Person) -> None:
    await person.keep("one", "two", namespace="b")
    await person.keep("one", namespace="a")

    assert [(namespace.name, namespace.memories) for namespace in await person.library.namespaces.all()] == [
        ("a", 1), ("b", 2),
    ]  # fmt: skip


async def test_names_are_found_whatever_their_case_and_each_once(person: Person) -> None:
    await person.keep("x", namespace="repo:acme/api")

    found = await person.library.find_namespaces(["Repo:ACME/api", " repo:acme/api "])

    assert [notebook.name for notebook in found] == ["repo:acme/api"]


async def test_no_name_means_all_and_nothing_stored_means_none(person: Person) -> None:
    assert await person.library.find_namespaces([]) == []

    await person.keep("x", namespace="a")
    await person.keep("x", namespace="b")

    assert [notebook.name for notebook in await person.library.find_namespaces([])] == ["a", "b"]


async def test_an_unknown_name_is_told_what_there_is(person: Person) -> None:
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

    [stats] = await person.library.namespaces.stats([notebook.id], (await embedder.model()).id)

    assert (stats.memories, stats.forgotten, stats.superseded, stats.without_vector, stats.sessions) == (5, 2, 1, 1, 2)
    assert stats.characters == len("onetwothreeowes its vectorgone")
    assert (stats.oldest, stats.newest) == (NOON, NOON + timedelta(days=1))


async def test_a_namespace_made_by_many_at_once_is_one(person: Person, connection: asyncpg.Connection) -> None:
    await asyncio.gather(*(person.keep(f"text {n}", namespace="new") for n in range(10)))

    assert await connection.fetchval("select count(*) from namespaces") == 1
    assert await connection.fetchval("select count(*) from memories") == 10
