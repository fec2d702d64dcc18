"""Statements of the keyword branch share a connection, which is released when the branch ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
import pytest

from folklore.db.database import Database, Plans, PoolLimits, Session
from folklore.embedding.protocol import Embedder
from folklore.errors import DatabaseUnavailable, Unavailable
from folklore.memory.context import MemoryContext
from folklore.model import Filters
from tests import embedders
from tests.person import Person

FACTS = (
    "The cat is called Turing.",
    "The dog is called Hopper.",
    "The lease ends in March.",
)


class Lending(Database):
    """Notes which sessions were lent, and how many are out."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, PoolLimits(minimum=0, maximum=10))
        self.lent: list[Plans] = []
        self.out = 0

    @asynccontextmanager
    async def session(
        self,
        plans: Plans = "kept",
        *,
        release_later: bool = False,
        guarded: bool = False,
    ) -> AsyncIterator[Session]:
        self.lent.append(plans)
        async with super().session(
            plans, release_later=release_later, guarded=guarded
        ) as session:
            self.out += 1
            try:
                yield session
            finally:
                self.out -= 1


@pytest.fixture
async def lending(database_url: str) -> AsyncIterator[Lending]:
    opened = Lending(database_url)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture(name="person")
async def reader(lending: Lending, embedder: Embedder) -> Person:
    """A user of the notes, who has recalled once."""
    person = Person(MemoryContext.of(lending, embedder))
    await person.keep(*FACTS)
    await person.recall("Hopper", namespaces=("notes",))
    lending.lent.clear()
    return person


async def test_a_recall_takes_one_connection_at_a_time_for_words_keywords_and_candidates_and_one_for_vectors(
    lending: Lending, person: Person
) -> None:
    answer = await person.recall("what is the cat called", namespaces=("notes",))

    assert answer.memories[0].memory.content == FACTS[0]
    assert sorted(lending.lent) == ["kept", "kept", "scan"]
    assert lending.out == 0


async def test_a_question_with_filters_has_plans_for_its_parameters(
    lending: Lending, person: Person
) -> None:
    await person.recall(
        "what is the cat called",
        namespaces=("notes",),
        filters=Filters(kinds=("note",)),
    )

    assert "fresh" in lending.lent
    assert "scan" not in lending.lent


@pytest.mark.parametrize("most", [2, 4, 6])
async def test_however_few_connections_there_are_many_recalls_and_stores_at_once_end(
    database_url: str, embedder: Embedder, most: int
) -> None:
    database = Database(database_url, PoolLimits(minimum=0, maximum=most))
    await database.open()
    person = Person(MemoryContext.of(database, embedder))
    await person.keep(*FACTS)

    async with asyncio.timeout(120):
        answers = await asyncio.gather(
            *(
                person.recall("what is the cat called", namespaces=("notes",))
                for _ in range(30)
            ),
            *(
                person.recall("the dog", filters=Filters(kinds=("note",)))
                for _ in range(10)
            ),
        )
        await asyncio.gather(
            *(person.keep(f"another fact {place}") for place in range(10))
        )
    counted = database.statistics()
    await database.close()

    assert {answer.memories[0].memory.content for answer in answers} == {
        FACTS[0],
        FACTS[1],
    }
    assert not any(answer.degraded for answer in answers)
    assert counted.maximum == most


async def test_a_search_takes_a_connection_for_its_words_and_one_for_its_candidates(
    lending: Lending, person: Person
) -> None:
    await person.search("cat called", namespaces=("notes",))

    assert lending.lent == ["kept", "kept"]


async def test_no_connection_is_held_while_a_service_embeds_the_question(
    lending: Lending,
) -> None:
    service = embedders.Waiting()
    service.go.set()
    person = Person(MemoryContext.of(lending, service))
    await person.keep(*FACTS)
    service.go.clear()
    service.asked.clear()
    lending.lent.clear()

    asking = asyncio.create_task(person.recall("what is the cat called"))
    async with asyncio.timeout(120):
        await service.asked.wait()
        # the keyword branch goes on meanwhile, and ends
        while not lending.lent or lending.out:
            await asyncio.sleep(0.005)
    assert not asking.done()
    service.go.set()

    assert (await asking).memories[0].memory.content == FACTS[0]
    assert lending.out == 0


@pytest.mark.parametrize("lost", ["postings", "memories", "embeddings"])
async def test_a_recall_that_fails_releases_its_connections(
    lending: Lending, person: Person, connection: asyncpg.Connection, lost: str
) -> None:
    await connection.execute(f"alter table {lost} rename to lost")

    for _ in range(3):
        with suppress(Unavailable):
            assert (
                await person.recall("what is the cat called", namespaces=("notes",))
            ).degraded

    assert lending.out == 0


async def test_a_cancelled_recall_releases_its_connections(
    lending: Lending, person: Person
) -> None:
    for pause in (0.0, 0.001, 0.002, 0.004, 0.006):
        asking = asyncio.create_task(
            person.recall("what is the cat called", namespaces=("notes",))
        )
        await asyncio.sleep(pause)
        asking.cancel()
        await asyncio.wait({asking})

    assert lending.out == 0
    assert (await person.recall("cat", namespaces=("notes",))).memories


async def test_a_recall_that_is_cancelled_before_its_branches_begin_awaits_everything(
    lending: Lending, person: Person
) -> None:
    # One is given up at each turn of the loop; what is begun and never awaited is a warning, which fails a test.
    for turns in range(1, 12):
        asking = asyncio.create_task(
            person.recall("what is the cat called", namespaces=("notes",))
        )
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait({asking})

    assert lending.out == 0


async def test_after_a_statement_that_failed_the_next_takes_another_connection(
    lending: Lending,
) -> None:
    held = lending.pinned_session()
    with pytest.raises(DatabaseUnavailable):
        async with held:
            raise asyncpg.ConnectionDoesNotExistError("gone")
    assert lending.out == 0

    async with held as session:
        assert await session.rows("models/active") == []
    assert lending.out == 1

    await held.release()
    assert lending.out == 0


async def test_a_database_that_fails_to_open_leaves_no_connection(
    empty_database_url: str,
) -> None:
    database = Database(empty_database_url)

    with pytest.raises(DatabaseUnavailable, match="no pgvector"):
        await database.open()

    observer = await asyncpg.connect(empty_database_url)
    async with asyncio.timeout(120):
        while await observer.fetchval(
            "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            " and backend_type = 'client backend'"
        ):
            await asyncio.sleep(0.01)
    await observer.close()
