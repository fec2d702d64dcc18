"""The HNSW indexes over all vectors of texts and of cues: built from a number on, rebuilt when invalid, dropped when unneeded."""

import asyncio
from dataclasses import dataclass

import asyncpg
import pytest

from folklore.db.database import Database
from folklore.db.stores.embeddings import VectorIndexes
from folklore.db.stores.recall import visits
from folklore.jobs.definitions import BY_NAME
from folklore.jobs.job import JobOptions
from tests.background_jobs import BackgroundJobs
from tests.person import Person
from tests.waiting import STUCK

LARGE = 18
SMALL = 17
FROM = 20


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
async def two(person: Person, jobs: BackgroundJobs) -> BackgroundJobs:
    """Jobs over two namespaces, neither of which has as many vectors as an index is built for."""
    await person.keep(
        *(f"the large one says {number} times nothing" for number in range(LARGE)),
        namespace="large",
    )
    await person.keep(
        *(f"the small one says {number} times nothing" for number in range(SMALL)),
        namespace="small",
    )
    jobs.options = JobOptions(pause=0, hnsw_from=FROM)
    return jobs


async def test_one_index_of_texts_and_one_of_cues_are_over_all_namespaces(
    two: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    model = await connection.fetchval("select id from models")
    # of a namespace
    await connection.execute(
        "create index embeddings_hnsw_0123456789abcdef on embeddings (length)"
    )

    assert await two.dry_run("indexes") == {"to_build": 2, "to_drop": 1}
    assert await indexes(connection) == []
    assert await two("indexes") == {"built": 2, "dropped": 1}
    index, of_cues = await indexes(connection)
    assert (index.name, index.valid) == (f"embeddings_hnsw_{model.hex}", True)
    assert (of_cues.name, of_cues.valid) == (f"embeddings_hnsw_cues_{model.hex}", True)
    assert "halfvec_ip_ops" in index.definition
    assert f"WHERE (model_id = '{model}'::uuid)" in index.definition
    assert "(cues IS NOT NULL)" in of_cues.definition
    assert await two.dry_run("indexes") == {"to_build": 0, "to_drop": 0}
    assert await two("indexes") == {}
    assert await indexes(connection) == [index, of_cues]


@pytest.mark.parametrize(
    ("indexed", "extent", "read"),
    [
        (0, 100_000, 0),
        (4_000, 4_000, 0),
        (100_000, 100_000, 2_000),
        (100_000, 10_000, 0),
        (1_000_000, 100_000, 2_000),
    ],
    ids=["no index", "few vectors", "the whole", "a small share", "a large scope"],
)
def test_an_index_is_read_where_comparing_the_scope_takes_longer(
    indexed: int, extent: int, read: int
) -> None:
    assert visits(indexed, extent, fetch=30) == read


async def test_an_invalid_index_is_built_again(
    two: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    await two("indexes")
    before, _ = await connection.fetch(
        "select oid from pg_class where starts_with(relname::text, 'embeddings_hnsw_')"
    )
    await connection.execute(
        "update pg_index set indisvalid = false where indexrelid = $1", before["oid"]
    )

    assert await two.dry_run("indexes") == {"to_build": 1, "to_drop": 1}
    assert await two("indexes") == {"built": 1, "dropped": 1}
    assert [index.valid for index in await indexes(connection)] == [True, True]
    assert (
        await connection.fetchval(
            "select count(*) from pg_class where oid = $1", before["oid"]
        )
        == 0
    )


async def test_an_index_that_is_being_built_is_left_alone(
    two: BackgroundJobs, database: Database, connection: asyncpg.Connection
) -> None:
    await two("indexes")
    await connection.execute("drop index " + (await indexes(connection))[0].name)
    [change] = await VectorIndexes(database).index_changes(threshold=FROM)
    writing = connection.transaction()
    await writing.start()
    # the build waits for this transaction
    await connection.execute("update embeddings set length = length")

    building = asyncio.create_task(VectorIndexes(database).apply(change))
    async with asyncio.timeout(STUCK):
        while await VectorIndexes(database).index_changes(threshold=FROM):
            await asyncio.sleep(0.01)
    assert not building.done()
    await writing.rollback()
    async with asyncio.timeout(STUCK):
        await building

    assert [index.valid for index in await indexes(connection)] == [True, True]


async def test_a_cancelled_build_is_repeated_by_the_next_run(
    two: BackgroundJobs, database: Database, connection: asyncpg.Connection
) -> None:
    await two("indexes")
    await connection.execute("drop index " + (await indexes(connection))[0].name)
    [change] = await VectorIndexes(database).index_changes(threshold=FROM)
    writing = connection.transaction()
    await writing.start()
    await connection.execute("update embeddings set length = length")
    building = asyncio.create_task(VectorIndexes(database).apply(change))
    async with asyncio.timeout(STUCK):
        while len(await indexes(connection)) < 2:
            await asyncio.sleep(0.01)
        building.cancel()
        with pytest.raises(asyncio.CancelledError):
            await building
        await writing.rollback()
        assert [index.valid for index in await indexes(connection)] == [False, True]
        # until Postgres has ended the cancelled build
        while not await VectorIndexes(database).index_changes(threshold=FROM):
            await asyncio.sleep(0.01)

        assert await two("indexes") == {"built": 1, "dropped": 1}
    assert [index.valid for index in await indexes(connection)] == [True, True]


@pytest.mark.parametrize(
    "change",
    [
        "update models set role = 'previous'",
        f"delete from embeddings where ctid <> all(array(select ctid from embeddings limit {FROM // 2 - 1}))",
    ],
    ids=["the model is not active any more", "more than half of the vectors are gone"],
)
async def test_an_unneeded_index_is_dropped(
    two: BackgroundJobs, connection: asyncpg.Connection, change: str
) -> None:
    await two("indexes")
    await connection.execute(change)

    assert await two.dry_run("indexes") == {"to_build": 0, "to_drop": 2}
    assert len(await indexes(connection)) == 2
    assert await two("indexes") == {"dropped": 2}
    assert await indexes(connection) == []


async def test_a_threshold_of_zero_drops_every_index_and_a_little_shrinking_none(
    two: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    await two("indexes")
    two.options = JobOptions(pause=0, hnsw_from=LARGE + SMALL + 5)
    assert await two("indexes") == {}

    two.options = JobOptions(pause=0, hnsw_from=0)
    assert await two("indexes") == {"dropped": 2}
    assert await indexes(connection) == []


async def test_no_index_is_built_by_a_pgvector_that_may_corrupt_it(
    two: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "update pg_extension set extversion = '0.8.3' where extname = 'vector'"
    )

    report = await two.run(BY_NAME["indexes"])

    assert report.outcome == "failed"
    assert report.error is not None
    assert "pgvector 0.8.3" in report.error
    assert "0.8.4" in report.error
    assert await indexes(connection) == []
    two.options = JobOptions(pause=0, hnsw_from=0)
    assert (await two.run(BY_NAME["indexes"])).outcome == "done"
