"""Memories that owe their vector: found page by page, paid in batches, never with the vector of another text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import pytest
from numpy.typing import NDArray

from folklore.db.database import Database
from folklore.db.stores.embeddings import FIRST, Coverage, Debts, Owing
from folklore.db.stores.memories import Vectors
from folklore.embedding.protocol import Embedder
from folklore.errors import EmbedderUnavailable
from folklore.memory.context import MemoryContext
from folklore.memory.models import backfill
from folklore.memory.models.backfill import Backfill, Filled, Pace
from folklore.memory.models.pending_embeddings import pay
from folklore.memory.records.store import embed
from folklore.model import Draft
from tests import embedders
from tests.person import NOON, Person, contents, sampled

TEXTS = [f"fact {number} about the harbour" for number in range(7)]


@pytest.fixture
async def debtor(database: Database) -> Person:
    person = Person(MemoryContext.of(database, embedders.Down()))
    await person.keep(*TEXTS)
    return person


async def vectors_of(database: Database, texts: list[str]) -> Vectors:
    made = await embed(MemoryContext.of(database, embedders.ByLetter()), texts)
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
    answer = await Person(MemoryContext.of(database, embedders.ByLetter())).recall("fact 3 about the harbour")
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


async def test_what_was_superseded_owes_and_is_counted_for_the_past_still_finds_it(
    debtor: Person, database: Database
) -> None:
    old, _ = await debtor.keep("the pier is open", "elsewhere", namespace="pier")
    await debtor.keep(Draft("the pier is shut", supersedes=old), namespace="pier")
    [notebook] = await debtor.library.notebooks(["pier"])
    debts = Debts(database)

    assert len(await debts.batch(notebook.id, embedders.MODEL.id, most=10)) == 3
    assert await debts.coverage([notebook.id], embedders.MODEL.id) == {notebook.id: Coverage(3, 0)}


# Both ways to pay: upkeep's, and the one of `folklore embeddings`.


@pytest.fixture
async def several(debtor: Person) -> list[UUID]:
    """Two namespaces that owe, the one whose ids are the later ones first; in each, first a text without a vector."""
    for name in ("early", "late"):
        await debtor.keep("zzz", *(f"{name} {text}" for text in TEXTS[:4]), namespace=name)
    return [(await debtor.library.notebooks([name]))[0].id for name in ("late", "early")]


async def test_upkeep_pays_every_namespace_whatever_stands_first_and_tells_what_it_could_not(
    several: list[UUID], database: Database
) -> None:
    debts, told = Debts(database), []

    async for paid in pay(debts, embedders.ByLetter(), several, now=NOON, batch=1):
        told.append((paid.memories, paid.written, paid.wordless))

    assert told == [(1, 0, 1), *[(1, 1, 0)] * 4] * 2
    assert await debts.count(several, embedders.MODEL.id) == dict.fromkeys(several, 1)


async def test_upkeep_tells_what_somebody_held_as_left(
    several: list[UUID], database: Database, connection: asyncpg.Connection
) -> None:
    async with connection.transaction():
        await connection.execute("select from memories where namespace_id = $1 for no key update", several[0])
        [paid] = [paid async for paid in pay(Debts(database), embedders.ByLetter(), several[:1], now=NOON)]

    assert (paid.memories, paid.written, paid.wordless) == (5, 0, 1)


@dataclass
class Clock:
    """Time passes while somebody waits, and not else."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(backfill, "monotonic", made)
    monkeypatch.setattr(backfill, "asyncio", made)
    return made


@dataclass
class Failing(embedders.ByLetter):
    """Does not answer so many times."""

    times: int = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.times:
            self.times -= 1
            raise EmbedderUnavailable("The embedding service does not answer.")
        return await super().embed(texts)


def filling(database: Database, embedder: Embedder, model: UUID = embedders.MODEL.id, **pace: Any) -> Backfill:
    return Backfill(Debts(database), embedder, model, now=lambda: NOON, pace=Pace(**pace))


async def test_a_backfill_pays_every_namespace_whatever_stands_first_and_tells_how_far_it_is(
    several: list[UUID], database: Database, clock: Clock
) -> None:
    told: list[int] = []

    filled = await filling(database, embedders.ByLetter(), batch=2).fill(several, lambda done, _: told.append(done))

    assert filled == Filled(paid=8, wordless=2)
    assert told == [2, 4, 5, 7, 9, 10]
    assert clock.slept == []
    assert await filling(database, embedders.ByLetter()).fill(several) == Filled(paid=0, wordless=2)


async def test_a_backfill_counts_as_paid_what_was_written_and_no_more(
    several: list[UUID], database: Database, connection: asyncpg.Connection
) -> None:
    async with connection.transaction():
        await connection.execute("select from memories where namespace_id = $1 for no key update", several[0])
        filled = await filling(database, embedders.ByLetter()).fill(several)

    assert filled == Filled(paid=4, wordless=2)


async def test_a_backfill_goes_as_fast_as_it_may(several: list[UUID], database: Database, clock: Clock) -> None:
    await filling(database, embedders.ByLetter(), batch=2, per_second=2.0).fill(several)

    assert clock.slept == [1.0, 1.0, 0.5, 1.0, 1.0, 0.5], "ten memories at two a second"


async def test_a_backfill_waits_for_a_failing_service_longer_each_time_and_not_for_ever(
    several: list[UUID], database: Database, clock: Clock
) -> None:
    said: list[str] = []
    waits = [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]

    filled = await filling(database, Failing(times=6)).fill(several, lambda _, words: said.append(words))

    assert (filled.paid, clock.slept) == (8, waits)
    assert said[:6] == ["waiting: The embedding service does not answer."] * 6
    for patience, waited in ((0.0, []), (29.0, waits[:4]), (30.0, waits[:5])):
        clock.slept.clear()
        with pytest.raises(EmbedderUnavailable):
            await filling(database, Failing(times=100), patience=patience).fill(several)
        assert clock.slept == waited


async def test_a_backfill_takes_no_vector_of_another_model(several: list[UUID], database: Database) -> None:
    another = UUID(int=7)

    with pytest.raises(EmbedderUnavailable, match=r"another model .*by-letter"):
        await filling(database, embedders.ByLetter(), another).fill(several)

    assert await Debts(database).count(several, embedders.MODEL.id) == dict.fromkeys(several, 5)


async def test_vectors_paid_later_are_sampled_as_if_they_had_never_been_owed(
    database: Database, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, embedders.ByLetter()))
    await person.keep(*(f"{'tide ' * (number % 40)}fact {number}" for number in range(450)))
    await person.keep(*(f"{'quay ' * (number % 40)}note {number}" for number in range(450)))
    await connection.execute(
        "analyze embeddings"
    )  # where all rows are of one namespace, they are best read as they lie
    before = await drawn(person)
    await connection.execute(
        "delete from embeddings where memory_id in (select memory_id from embeddings order by memory_id limit 300)"
    )
    assert await drawn(person) != before

    [notebook] = await person.library.notebooks(["notes"])
    debts = Debts(database)
    while page := await debts.batch(notebook.id, embedders.MODEL.id, most=100):
        await debts.pay(notebook.id, page, await vectors_of(database, [item.content for item in page]), NOON)

    assert await drawn(person) == before


async def drawn(person: Person) -> bytes:
    sample = await sampled(person, embedders.MODEL.id)
    assert len(sample.vectors) == 600
    return sample.vectors.tobytes() + sample.sizes.tobytes()
