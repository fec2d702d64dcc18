"""Memories that owe their vector: found page by page, paid in batches, never with the vector of another text."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import pytest

from folklore.db.database import Database
from folklore.db.debt import FIRST, Coverage, Debts, Owing
from folklore.db.found import Sampling
from folklore.db.memories import Vectors
from folklore.memory.library import Library
from folklore.memory.store import embed
from tests import embedders
from tests.person import NOON, Person, contents, measured

TEXTS = [f"fact {number} about the harbour" for number in range(7)]


@pytest.fixture
async def debtor(database: Database) -> Person:
    person = Person(Library.of(database, embedders.Down()))
    await person.keep(*TEXTS)
    return person


async def vectors_of(database: Database, texts: list[str]) -> Vectors:
    made = await embed(Library.of(database, embedders.ByLetter()), texts)
    assert made is not None
    return made


@dataclass(frozen=True)
class Owed:
    """What one person owes, all on a page, and what it is paid with."""

    debts: Debts
    namespace: UUID
    page: list[Owing]
    vectors: Vectors

    async def pay(self) -> int:
        return await self.debts.pay(self.namespace, self.page, self.vectors, NOON)

    async def left(self) -> list[Owing]:
        return await self.debts.batch(self.namespace, embedders.MODEL.id, most=10)


@pytest.fixture
async def owed(debtor: Person, database: Database) -> Owed:
    [notebook] = await debtor.library.notebooks(["notes"])
    debts = Debts(database)
    page = await debts.batch(notebook.id, embedders.MODEL.id, most=10)
    return Owed(debts, notebook.id, page, await vectors_of(database, [item.content for item in page]))


async def test_what_was_stored_without_a_vector_is_paid_page_by_page(debtor: Person, database: Database) -> None:
    [notebook] = await debtor.library.notebooks(["notes"])
    debts = Debts(database)
    seen, after = [], FIRST

    while page := await debts.batch(notebook.id, embedders.MODEL.id, most=3, after=after):
        vectors = await vectors_of(database, [item.content for item in page])
        assert await debts.pay(notebook.id, page, vectors, NOON) == len(page)
        seen += [item.content for item in page]
        after = page[-1].id

    assert sorted(seen) == TEXTS
    assert await debts.coverage([notebook.id], embedders.MODEL.id) == {notebook.id: Coverage(7, 7)}
    assert await debts.count([notebook.id], embedders.MODEL.id) == {notebook.id: 0}
    answer = await Person(Library.of(database, embedders.ByLetter())).recall("fact 3 about the harbour")
    assert contents(answer)[0] == TEXTS[3]


async def test_paying_twice_changes_nothing(owed: Owed) -> None:
    assert await owed.pay() == 7
    assert await owed.pay() == 0
    assert await owed.left() == []


async def test_a_text_that_changed_since_it_was_read_takes_no_vector(
    owed: Owed, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "update memories set content = 'another', digest = 'x' where namespace_id = $1 and id = $2",
        owed.namespace,
        owed.page[0].id,
    )

    assert await owed.pay() == 6
    assert [item.content for item in await owed.left()] == ["another"]


async def test_a_memory_that_somebody_holds_is_passed_over_and_owes_on(
    owed: Owed, connection: asyncpg.Connection
) -> None:
    # Who waits for one memory while holding others can be waited for in turn: stores confirm in another order.
    async with connection.transaction():
        await connection.execute(
            "select from memories where namespace_id = $1 and id = $2 for no key update",
            owed.namespace,
            owed.page[3].id,
        )
        async with asyncio.timeout(10):
            assert await owed.pay() == 6
        assert await owed.left() == [owed.page[3]]

    assert await owed.pay() == 1


async def test_what_is_forgotten_owes_nothing(
    debtor: Person, database: Database, connection: asyncpg.Connection
) -> None:
    [notebook] = await debtor.library.notebooks(["notes"])
    await connection.execute("update memories set forgotten_at = $1", NOON)

    assert await Debts(database).batch(notebook.id, embedders.MODEL.id, most=10) == []
    assert await Debts(database).coverage([notebook.id], embedders.MODEL.id) == {}


async def test_vectors_paid_later_are_sampled_as_if_they_had_never_been_owed(
    database: Database, connection: asyncpg.Connection
) -> None:
    person = Person(Library.of(database, embedders.ByLetter()))
    await person.keep(*(f"{'tide ' * (number % 40)}fact {number}" for number in range(450)))
    await person.keep(*(f"{'quay ' * (number % 40)}note {number}" for number in range(450)))
    await connection.execute(
        "analyze embeddings"
    )  # where all rows are of one namespace, they are best read as they lie
    before = await sampled(person)
    await connection.execute(
        "delete from embeddings where memory_id in (select memory_id from embeddings order by memory_id limit 300)"
    )
    assert await sampled(person) != before

    [notebook] = await person.library.notebooks(["notes"])
    debts = Debts(database)
    while page := await debts.batch(notebook.id, embedders.MODEL.id, most=100):
        await debts.pay(notebook.id, page, await vectors_of(database, [item.content for item in page]), NOON)

    assert await sampled(person) == before


async def sampled(person: Person) -> bytes:
    measures = await measured(person, Sampling(embedders.MODEL.id))
    assert len(measures.vectors) == 600
    return measures.vectors.tobytes() + measures.sizes.tobytes()
