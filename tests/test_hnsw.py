"""HNSW indexes: which namespaces get one, when it goes, and that what comes through it is what exact search finds."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import pytest
from pgvector import HalfVector

from folklore.db.database import Database, PoolLimits
from folklore.db.debt import Debts
from folklore.db.found import Scope
from folklore.db.indexes import VectorIndexes
from folklore.db.models import Models
from folklore.db.rows import seen
from folklore.db.statements import statement
from folklore.embedding.embedder import Embedder
from folklore.memory.library import Library
from folklore.memory.switch import holdings
from folklore.model import Answer, Draft, Filters
from folklore.upkeep import chores
from folklore.upkeep.chore import Rules
from tests.conftest import Cluster
from tests.housework import Housekeeper
from tests.person import NOON, Person, contents, ids
from tests.test_statements_plans import Plan

LARGE, SMALL, FROM = 30, 10, 20
MANY = 9_000


# Which are built, and when they go


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
        "passage = 0",
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
    await connection.execute("update embeddings set passage = passage")  # which the building waits for

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
    await connection.execute("update embeddings set passage = passage")
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


# What comes through one


@dataclass(frozen=True, slots=True)
class Crowd:
    """A database with a namespace that has an index, and somebody who asks by it."""

    url: str
    database: Database
    library: Library

    @property
    def person(self) -> Person:
        return Person(self.library)

    async def scope(self) -> Scope:
        [notebook] = await self.library.notebooks(["large"])
        return Scope({notebook.id: notebook.name}, Filters(), NOON)


WORDS = re.findall(
    r"\w+",
    "harbour lighthouse deploy rollback postgres index vector branch review invoice customer meeting kitchen garden"
    " bicycle mountain river compiler thread deadlock cache token session budget holiday train station violin recipe"
    " oven winter sensor battery engine pump valve letter poem museum ticket passport doctor clinic tablet school",
)


def text(number: int, chance: random.Random) -> str:
    """A text of two to forty words, in an order of their own."""
    return f"{number} " + " ".join(chance.choices(WORDS, k=chance.randint(2, 40)))


@pytest.fixture(scope="module")
async def crowd(cluster: Cluster, template: str, embedder: Embedder) -> AsyncIterator[Crowd]:
    """So many memories in a namespace that the planner itself takes its index, and one in another."""
    async with cluster.new_database(template) as name:
        database = Database(cluster.address(name), PoolLimits(minimum=0, maximum=10))
        await database.open()
        library = Library.of(database, embedder)
        chance = random.Random(7)
        for start in range(0, MANY, 500):
            batch = (Draft(text(start + place, chance), tags=("even",) * (1 - place % 2)) for place in range(500))
            await Person(library).keep(*batch, namespace="large")
        await Person(library).keep("a lighthouse in another namespace", namespace="small")
        keeper = Housekeeper(database, library, rules=Rules(pause=0, hnsw_from=1_000))
        assert await keeper("indexes") == {"built": 1}
        await keeper("statistics")
        yield Crowd(cluster.address(name), database, Library.of(database, embedder))
        await database.close()


def path(answer: Answer) -> object:
    assert answer.explain is not None
    dense = answer.explain["dense"]
    assert isinstance(dense, dict)
    return dense["path"]


async def test_the_nearest_are_found_by_the_index(crowd: Crowd) -> None:
    _, filters = seen("recall_nearest", Filters(), NOON)
    async with crowd.database.session("fresh") as session:
        connection = session._connection
        row = await connection.fetchrow(
            "select namespace_id as namespace, model_id as model, vector as query,"
            " folklore_hnsw(namespace_id, model_id) as name from embeddings limit 1"
        )
        found = statement(f"recall_nearest/{row['query'].dimensions() + 1}")
        given = {"fetch": 30, "scan": 200, "slope": 0.0, "sized": HalfVector([*row["query"].to_list(), 0.0]), **filters}
        given |= {name: row[name] for name in ("namespace", "model", "query")}
        plan = Plan.of(await connection.fetchval(f"explain (format json) {found.sql}", *found.arguments(given)))

    assert plan.scans("embeddings") == {("Index Scan", row["name"])}
    assert plan.scans("memories") == {("Index Scan", "memories_pkey")}


async def test_the_index_is_searched_far_and_on_until_enough_is_found(crowd: Crowd) -> None:
    async with crowd.database.session("fresh") as session:
        await session._connection.execute("select '[1]'::halfvec")  # loads the extension
        settings = [await session._connection.fetchval(f"show hnsw.{name}") for name in ("ef_search", "iterative_scan")]

    assert settings == ["200", "relaxed_order"]


async def test_what_the_index_finds_is_nearly_what_exact_search_finds(crowd: Crowd, embedder: Embedder) -> None:
    scope, chance, agreed = await crowd.scope(), random.Random(11), []
    for _ in range(40):
        vector = await embedder.embed_question(words := chance.sample(WORDS, 4), [1.0] * len(words))
        asked: dict[str, Any] = {
            "model": (await embedder.model()).id,
            "query": vector,
            "slope": chance.uniform(-0.2, 0.1),
            "fetch": 30,
            "total": MANY,
        }
        near = await crowd.library.statements.dense(scope, **asked, indexed=True)
        exact = await crowd.library.statements.dense(scope, **asked)
        assert (near.path, exact.path) == ("hnsw", "exact")
        assert len(near.ids) == len(exact.ids) == 30
        agreed.append(len({*near.ids} & {*exact.ids}) / 30)
        score = dict(zip(exact.ids, exact.scores, strict=True))
        for id_, value in zip(near.ids, near.scores, strict=True):
            assert value == pytest.approx(score.get(id_, value), abs=1e-4)
        assert list(near.scores) == sorted(near.scores, reverse=True)

    assert np.mean(agreed) >= 0.95, agreed


async def test_a_question_goes_by_the_index_and_says_so(crowd: Crowd) -> None:
    answer = await crowd.person.recall("lighthouse deadlock violin", namespaces=("large",), explain=True)

    assert path(answer) == "hnsw"
    assert len(answer.memories) == 10
    assert "lighthouse" in " ".join(contents(answer))


async def test_whether_there_is_an_index_costs_no_statement(crowd: Crowd, embedder: Embedder) -> None:
    queries: list[str] = []
    logged = Database(crowd.url, PoolLimits(minimum=0, maximum=10), queries.append)
    await logged.open()

    answer = await Person(Library.of(logged, embedder)).recall("violin oven", namespaces=("large",), explain=True)
    await asyncio.sleep(0)  # what was said is told in the loop's next turn
    await logged.close()

    assert path(answer) == "hnsw"
    [asking] = [query for query in queries if "pg_index" in query]
    assert "folklore_words" in asking
    assert len([query for query in queries if "<#>" in query]) == 1


@pytest.mark.parametrize(
    "asked",
    [
        {"filters": Filters(tags=("even",))},
        {"filters": Filters(as_of=NOON + timedelta(days=1))},
        {"namespaces": ("large", "small")},
        {"namespaces": ("small",)},
    ],
    ids=["tags", "as of", "two namespaces", "a small namespace"],
)
async def test_filters_and_other_scopes_are_searched_exactly(crowd: Crowd, asked: dict[str, Any]) -> None:
    answer = await crowd.person.recall("lighthouse violin", **({"namespaces": ("large",)} | asked), explain=True)

    assert path(answer) == "exact"
    assert answer.memories


async def test_what_is_forgotten_does_not_come_back_through_the_index(crowd: Crowd) -> None:
    person = crowd.person
    before = await person.recall("garden winter poem", namespaces=("large",), explain=True)

    await person.forget(*ids(before))
    after = await person.recall("garden winter poem", namespaces=("large",), explain=True)

    assert path(before) == path(after) == "hnsw"
    assert len(after.memories) == 10
    assert not {*ids(before)} & {*ids(after)}


async def test_where_the_nearest_are_hidden_the_others_are_found_exactly(crowd: Crowd, embedder: Embedder) -> None:
    scope, model = await crowd.scope(), await embedder.model()
    vector = await embedder.embed_question(["compiler"], [1.0])
    asked: dict[str, Any] = {
        "model": model.id,
        "query": vector,
        "slope": 0.0,
        "fetch": 30,
        "total": MANY,
        "indexed": True,
    }
    connection = await asyncpg.connect(crowd.url)
    hidden: list[UUID] = [
        row["memory_id"]
        for row in await connection.fetch(
            "select memory_id from embeddings where namespace_id = $1 order by vector <#> $2::text::halfvec limit 500",
            next(iter(scope.namespaces)),
            HalfVector(vector).to_text(),
        )
    ]
    try:
        await connection.execute("update memories set expires_at = $2 where id = any($1)", hidden, NOON)
        found = await crowd.library.statements.dense(scope, **asked)
    finally:
        await connection.execute("update memories set expires_at = null where id = any($1)", hidden)
        await connection.close()

    assert found.path == "exact"
    assert len(found.ids) == 30
    assert not {*hidden} & {*found.ids}


async def test_an_index_that_was_dropped_a_moment_ago_costs_time_alone(crowd: Crowd, embedder: Embedder) -> None:
    scope, model = await crowd.scope(), await embedder.model()
    vector = await embedder.embed_question(["museum"], [1.0])
    asked: dict[str, Any] = {"model": model.id, "query": vector, "slope": 0.0, "fetch": 10, "total": MANY}
    keeper = Housekeeper(crowd.database, crowd.library, rules=Rules(pause=0, hnsw_from=0))
    assert await keeper("indexes") == {"dropped": 1}
    try:
        near = await crowd.library.statements.dense(scope, **asked, indexed=True)
    finally:
        keeper.rules = Rules(pause=0, hnsw_from=1_000)
        assert await keeper("indexes") == {"built": 1}

    assert near.ids == (await crowd.library.statements.dense(scope, **asked)).ids
