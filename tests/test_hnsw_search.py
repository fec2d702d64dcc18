"""Search by an HNSW index: nearly the results of exact search, and exact search where the index misses some."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import pytest
from pgvector import HalfVector

from folklore.db.database import Database, PoolLimits
from folklore.db.rows import seen
from folklore.db.sql_loader import statement
from folklore.db.stores.recall_rows import DenseQuery, Scope
from folklore.embedding.protocol import Embedder
from folklore.jobs.job import JobOptions
from folklore.memory.context import MemoryContext
from folklore.model import Answer, Draft, Filters
from tests.background_jobs import BackgroundJobs
from tests.person import NOON, Person, contents, ids
from tests.team import library_at
from tests.test_statements_plans import Plan

MANY = 9_000

pytestmark = pytest.mark.strain


@dataclass(frozen=True, slots=True)
class ManyMemories:
    """A database with an indexed namespace, and a caller who recalls from it."""

    url: str
    database: Database
    library: MemoryContext

    @property
    def person(self) -> Person:
        return Person(self.library)

    async def scope(self) -> Scope:
        [notebook] = await self.library.find_namespaces(["large"])
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
async def crowd(address: str, embedder: Embedder) -> AsyncIterator[ManyMemories]:
    """An indexed namespace with so many memories that the planner chooses the index, and one with a single memory."""
    async with library_at(address, embedder) as library:
        chance = random.Random(7)
        for start in range(0, MANY, 500):
            batch = (Draft(text(start + place, chance), tags=("even",) * (1 - place % 2)) for place in range(500))
            await Person(library).keep(*batch, namespace="large")
        await Person(library).keep("a lighthouse in another namespace", namespace="small")
        jobs = BackgroundJobs(library.database, library, options=JobOptions(pause=0, hnsw_from=1_000))
        assert await jobs("indexes") == {"built": 1}
        await jobs("statistics")
        yield ManyMemories(address, library.database, MemoryContext.of(library.database, embedder))


def path(answer: Answer) -> object:
    assert answer.explain is not None
    dense = answer.explain["dense"]
    assert isinstance(dense, dict)
    return dense["path"]


async def test_the_index_finds_the_nearest_memories(crowd: ManyMemories) -> None:
    _, filters = seen("recall/nearest", Filters(), NOON)
    async with crowd.database.session("fresh") as session:
        connection = session.connection
        row = await connection.fetchrow(
            "select namespace_id as namespace, model_id as model, vector as query,"
            " folklore_hnsw(namespace_id, model_id) as name from embeddings limit 1"
        )
        found = statement(f"recall/nearest:{row['query'].dimensions()}")
        given = {"fetch": 30, "scan": 200, **filters}
        given |= {name: row[name] for name in ("namespace", "model", "query")}
        plan = Plan.of(await connection.fetchval(f"explain (format json) {found.sql}", *found.arguments(given)))

    assert plan.scans("embeddings") == {("Index Scan", row["name"])}
    assert plan.scans("memories") == {("Index Scan", "memories_pkey")}


async def test_a_search_by_the_index_is_iterative_and_has_200_candidates(crowd: ManyMemories) -> None:
    async with crowd.database.session("fresh") as session:
        await session.connection.execute("select '[1]'::halfvec")  # loads the extension
        settings = [await session.connection.fetchval(f"show hnsw.{name}") for name in ("ef_search", "iterative_scan")]

    assert settings == ["200", "relaxed_order"]


async def test_the_index_finds_nearly_the_same_memories_as_exact_search(
    crowd: ManyMemories, embedder: Embedder
) -> None:
    scope, chance, agreed = await crowd.scope(), random.Random(11), []
    for _ in range(40):
        vector = await embedder.embed_question(words := chance.sample(WORDS, 4), [1.0] * len(words))
        query = DenseQuery((await embedder.model()).id, vector, total=MANY)
        near = await crowd.library.statements.dense(scope, replace(query, indexed=True), 30)
        exact = await crowd.library.statements.dense(scope, query, 30)
        assert (near.path, exact.path) == ("hnsw", "exact")
        assert len(near.ids) == len(exact.ids) == 30
        agreed.append(len({*near.ids} & {*exact.ids}) / 30)
        score = dict(zip(exact.ids, exact.scores, strict=True))
        for id_, value in zip(near.ids, near.scores, strict=True):
            assert value == pytest.approx(score.get(id_, value), abs=1e-4)
        assert list(near.scores) == sorted(near.scores, reverse=True)

    assert np.mean(agreed) >= 0.95, agreed


async def test_a_recall_uses_the_index_and_reports_it(crowd: ManyMemories) -> None:
    answer = await crowd.person.recall("lighthouse deadlock violin", namespaces=("large",), explain=True)

    assert path(answer) == "hnsw"
    assert len(answer.memories) == 10
    assert "lighthouse" in " ".join(contents(answer))


async def test_the_index_is_looked_up_once(crowd: ManyMemories, embedder: Embedder) -> None:
    queries: list[str] = []
    logged = Database(crowd.url, PoolLimits(minimum=0, maximum=10), queries.append)
    await logged.open()
    person = Person(MemoryContext.of(logged, embedder))

    for _ in range(2):
        answer = await person.recall("violin oven", namespaces=("large",), explain=True)
        assert path(answer) == "hnsw"
    await asyncio.sleep(0)  # asyncpg logs a statement in the loop's next turn
    await logged.close()

    assert len([query for query in queries if "pg_index" in query]) == 1


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
async def test_filters_and_other_scopes_are_searched_exactly(crowd: ManyMemories, asked: dict[str, Any]) -> None:
    answer = await crowd.person.recall("lighthouse violin", **({"namespaces": ("large",)} | asked), explain=True)

    assert path(answer) == "exact"
    assert answer.memories


async def test_the_index_finds_no_forgotten_memory(crowd: ManyMemories) -> None:
    person = crowd.person
    before = await person.recall("garden winter poem", namespaces=("large",), explain=True)

    await person.forget(*ids(before))
    after = await person.recall("garden winter poem", namespaces=("large",), explain=True)

    assert path(before) == path(after) == "hnsw"
    assert len(after.memories) == 10
    assert not {*ids(before)} & {*ids(after)}


async def test_other_memories_are_found_exactly_when_the_nearest_are_hidden(
    crowd: ManyMemories, embedder: Embedder
) -> None:
    scope, model = await crowd.scope(), await embedder.model()
    vector = await embedder.embed_question(["compiler"], [1.0])
    query = DenseQuery(model.id, vector, indexed=True, total=MANY)
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
        found = await crowd.library.statements.dense(scope, query, 30)
    finally:
        await connection.execute("update memories set expires_at = null where id = any($1)", hidden)
        await connection.close()

    assert found.path == "exact"
    assert len(found.ids) == 30
    assert not {*hidden} & {*found.ids}


async def test_a_search_for_a_dropped_index_finds_the_same_memories(crowd: ManyMemories, embedder: Embedder) -> None:
    scope, model = await crowd.scope(), await embedder.model()
    vector = await embedder.embed_question(["museum"], [1.0])
    query = DenseQuery(model.id, vector, total=MANY)
    jobs = BackgroundJobs(crowd.database, crowd.library, options=JobOptions(pause=0, hnsw_from=0))
    assert await jobs("indexes") == {"dropped": 1}
    try:
        near = await crowd.library.statements.dense(scope, replace(query, indexed=True), 10)
    finally:
        jobs.options = JobOptions(pause=0, hnsw_from=1_000)
        assert await jobs("indexes") == {"built": 1}

    assert near.ids == (await crowd.library.statements.dense(scope, query, 10)).ids
