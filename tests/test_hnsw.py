"""HNSW indexes: which namespaces get one, when it goes, and that what comes through it is what exact search finds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import asyncpg
import pytest

from folklore.db.database import Database
from folklore.db.stores.embeddings import Debts
from folklore.db.stores.models import Models
from folklore.db.stores.vector_indexes import VectorIndexes
from folklore.jobs import all_jobs as chores
from folklore.jobs.job import Rules
from folklore.memory.models.switch import holdings
from tests.housework import Housekeeper
from tests.person import Person

LARGE, SMALL, FROM = 30, 10, 20
MANY = 9_000


@dataclass(frozen=True, slots=True)
class Index:
    name: str
    valid: bool
    definition: str


async def indexes(connection: asyncpg.Connection) -> list[Index]:
    rows = await connection.fetch(
        "select c.relname, x.indisvalid, pg_get_indexdef(c.oid) from pg_index x join pg_class c on c.oid = x.indexrelid"
        " join pg_am a on a.oid = c.relam where a.amname = 'hnsw' order by 1"
    )
    return [Index(*row) for row in rows]


@pytest.fixture
async def keeper(person: Person, housekeeper: Housekeeper) -> Housekeeper:
    """Upkeep of a namespace that is large enough for an index, and one that is not."""
    await person.keep(*(f"the large one says {number} times nothing" for number in range(LARGE)), namespace="large")
    await person.keep(*(f"the small one says {number} times nothing" for number in range(SMALL)), namespace="small")
    housekeeper.rules = Rules(pause=0, hnsw_from=FROM)
    return housekeeper


async def test_a_large_namespace_gets_an_index_and_a_small_one_none(
    keeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    row = await connection.fetchrow(
        "select n.id, m.id as model, m.dimensions, folklore_hnsw(n.id, m.id) as name"
        " from namespaces n, models m where n.name = 'large'"
    )

    assert row is not None
    assert await keeper.rehearse("indexes") == {"to_build": 1, "to_drop": 0}
    assert await indexes(connection) == []
    assert await keeper("indexes") == {"built": 1}
    [index] = await indexes(connection)
    assert (index.name, index.valid) == (row["name"], True)
    for part in (
        str(row["id"]),
        str(row["model"]),
        f"halfvec({row['dimensions'] + 1})",
        "halfvec_ip_ops",
    ):
        assert part in index.definition
    assert await keeper.rehearse("indexes") == {"to_build": 0, "to_drop": 0}
    assert await keeper("indexes") == {}
    assert await indexes(connection) == [index]


async def test_status_names_the_index_as_the_path(keeper: Housekeeper, database: Database) -> None:
    await keeper("indexes")

    _, held = await holdings(keeper.library, Models(database), Debts(database))

    assert {item.namespace: item.path for item in held} == {"large": "hnsw", "small": "exact"}


async def test_an_index_whose_building_was_cut_off_is_built_anew(
    keeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    await keeper("indexes")
    [before] = await connection.fetch("select oid from pg_class where starts_with(relname::text, 'embeddings_hnsw_')")
    await connection.execute("update pg_index set indisvalid = false where indexrelid = $1", before["oid"])

    assert await keeper.rehearse("indexes") == {"to_build": 1, "to_drop": 1}
    assert await keeper("indexes") == {"built": 1, "dropped": 1}
    assert [index.valid for index in await indexes(connection)] == [True]
    assert await connection.fetchval("select count(*) from pg_class where oid = $1", before["oid"]) == 0


async def test_an_index_that_somebody_is_building_is_left_to_him(
    keeper: Housekeeper, database: Database, connection: asyncpg.Connection
) -> None:
    wanted = await VectorIndexes(database).wanted(FROM)
    writing = connection.transaction()
    await writing.start()
    await connection.execute("update embeddings set length = length")  # which the building waits for

    building = asyncio.create_task(VectorIndexes(database).carry_out(wanted.builds[0]))
    async with asyncio.timeout(10):
        while (meanwhile := await VectorIndexes(database).wanted(FROM)).builds:
            await asyncio.sleep(0.01)
    assert not building.done()
    await writing.rollback()
    async with asyncio.timeout(20):
        await building

    assert (meanwhile.drops, meanwhile.builds) == ((), ())
    assert [index.valid for index in await indexes(connection)] == [True]


async def test_a_building_that_is_cancelled_is_made_up_for(
    keeper: Housekeeper, database: Database, connection: asyncpg.Connection
) -> None:
    wanted = await VectorIndexes(database).wanted(FROM)
    writing = connection.transaction()
    await writing.start()
    await connection.execute("update embeddings set length = length")
    building = asyncio.create_task(VectorIndexes(database).carry_out(wanted.builds[0]))
    async with asyncio.timeout(20):
        while not await indexes(connection):
            await asyncio.sleep(0.01)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
        await writing.rollback()
        assert [index.valid for index in await indexes(connection)] == [False]
        while not (await VectorIndexes(database).wanted(FROM)).builds:  # Postgres hears of it a moment later
            await asyncio.sleep(0.01)

        assert await keeper("indexes") == {"built": 1, "dropped": 1}
    assert [index.valid for index in await indexes(connection)] == [True]


@pytest.mark.parametrize(
    "change",
    [
        "update models set role = 'previous'",
        "update namespaces set deleted_at = created_at",
        f"delete from embeddings where ctid <> all(array(select ctid from embeddings limit {FROM // 2 - 1}))",
    ],
    ids=["the model does not count any more", "the namespace is deleted", "the namespace shrank by more than half"],
)
async def test_an_index_that_nothing_needs_is_dropped(
    keeper: Housekeeper, connection: asyncpg.Connection, change: str
) -> None:
    await keeper("indexes")
    await connection.execute(change)

    assert await keeper.rehearse("indexes") == {"to_build": 0, "to_drop": 1}
    assert len(await indexes(connection)) == 1
    assert await keeper("indexes") == {"dropped": 1}
    assert await indexes(connection) == []


async def test_a_threshold_of_zero_wants_no_index_and_a_little_shrinking_costs_none(
    keeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    await keeper("indexes")
    keeper.rules = Rules(pause=0, hnsw_from=LARGE + 5)
    assert await keeper("indexes") == {}

    keeper.rules = Rules(pause=0, hnsw_from=0)
    assert await keeper("indexes") == {"dropped": 1}
    assert await indexes(connection) == []


async def test_a_pgvector_that_may_corrupt_indexes_is_refused_and_what_to_do_is_told(
    keeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    await connection.execute("update pg_extension set extversion = '0.8.3' where extname = 'vector'")

    ran = await keeper.run(chores.named()["indexes"])

    assert ran.outcome == "failed"
    assert ran.error is not None
    assert "pgvector 0.8.3" in ran.error
    assert "0.8.4" in ran.error
    assert await indexes(connection) == []
    keeper.rules = Rules(pause=0, hnsw_from=0)
    assert (await keeper.run(chores.named()["indexes"])).outcome == "done"
