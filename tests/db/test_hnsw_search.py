"""Search by an HNSW index: nearly the results of exact search, and exact search where the index misses some."""

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

from folklore.contract.token_secrets import key_of
from folklore.db.database import Database, PoolLimits
from folklore.db.rows import seen
from folklore.db.sql_loader import statement
from folklore.db.stores.recall_rows import DenseQuery, Scope
from folklore.embedding.protocol import Embedder
from folklore.jobs.job import JobOptions
from folklore.memory.context import MemoryContext
from folklore.memory.models.switch import model_coverage
from folklore.model import Answer, Draft, Filters
from tests.background_jobs import BackgroundJobs
from tests.db.test_statements_plans import Plan
from tests.person import NOON, Person, contents, ids
from tests.team import library_at

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


SETTINGS = ("ef_search", "iterative_scan", "max_scan_tuples")
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
            batch = (
                Draft(text(start + place, chance), tags=("even",) * (1 - place % 2))
                for place in range(500)
            )
            await Person(library).keep(*batch, namespace="large")
        for place in range(20):
            texts = [
                f"a {WORDS[place + other]} of another namespace says {other}"
                for other in range(20)
            ]
            await Person(library).keep(*texts, namespace=f"small-{place}")
        jobs = BackgroundJobs(
            library.database, library, options=JobOptions(pause=0, hnsw_from=1_000)
        )
        assert await jobs("indexes") == {"built": 2}
        await jobs("statistics")
        yield ManyMemories(
            address, library.database, MemoryContext.of(library.database, embedder)
        )


def path(answer: Answer) -> object:
    assert answer.explain is not None
    dense = answer.explain["dense"]
    assert isinstance(dense, dict)
    return dense["path"]


@pytest.mark.parametrize("whom", ["owner", "token"])
@pytest.mark.parametrize(
    "filters", [Filters(), Filters(tags=("even",))], ids=["none", "a tag"]
)
async def test_a_kept_plan_reads_the_index(
    crowd: ManyMemories, whom: str, filters: Filters
) -> None:
    made = await crowd.person.create_token(
        f"{whom} {bool(filters.tags)}", "large:reader"
    )
    database = (
        crowd.database
        if whom == "owner"
        else crowd.database.for_token(key_of(made.secret))
    )
    async with database.session("scan") as session:
        connection = session.connection
        model, dimensions = await connection.fetchrow(
            "select id, dimensions from models"
        )
        name, _ = seen(f"recall/nearest:{dimensions}:{model}", filters, NOON)
        found = statement(name)
        explained = f"nearest_{whom}_{len(filters.tags)}"
        await connection.execute(f"prepare {explained} as {found.sql}")
        nulls = ", ".join(["null"] * len(found.parameters))
        plan = Plan.of(
            await connection.fetchval(
                f"explain (format json) execute {explained} ({nulls})"
            )
        )

    assert plan.scans("embeddings") == {
        ("Index Scan", f"embeddings_hnsw_{model.hex}"),
        ("Index Scan", f"embeddings_hnsw_cues_{model.hex}"),
    }
    assert plan.scans("memories") == {("Index Scan", "memories_pkey")}


async def test_the_index_finds_nearly_the_same_memories_as_exact_search(
    crowd: ManyMemories, embedder: Embedder
) -> None:
    scope = await crowd.scope()
    chance = random.Random(11)
    agreed = []
    for _ in range(40):
        vector = await embedder.embed_question(
            words := chance.sample(WORDS, 4), [1.0] * len(words)
        )
        query = DenseQuery((await embedder.model()).id, vector, total=MANY)
        near = await crowd.library.statements.dense(
            scope, replace(query, visited=MANY), 30
        )
        exact = await crowd.library.statements.dense(scope, query, 30)
        assert (near.path, exact.path) == ("hnsw", "exact")
        assert len(near.ids) == len(exact.ids) == 30
        agreed.append(len({*near.ids} & {*exact.ids}) / 30)
        score = dict(zip(exact.ids, exact.scores, strict=True))
        for id_, value in zip(near.ids, near.scores, strict=True):
            assert value == pytest.approx(score.get(id_, value), abs=1e-4)
        assert list(near.scores) == sorted(near.scores, reverse=True)

    assert np.mean(agreed) >= 0.98, agreed


async def test_a_recall_uses_the_index_and_reports_it(crowd: ManyMemories) -> None:
    answer = await crowd.person.recall(
        "lighthouse deadlock violin", namespaces=("large",), explain=True
    )

    assert path(answer) == "hnsw"
    assert len(answer.memories) == 10
    assert "lighthouse" in " ".join(contents(answer))


async def test_the_index_is_looked_up_once(
    crowd: ManyMemories, embedder: Embedder
) -> None:
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
    ("asked", "used"),
    [
        ({"filters": Filters(tags=("even",))}, "hnsw"),
        ({"filters": Filters(as_of=NOON + timedelta(days=1))}, "hnsw"),
        ({"filters": Filters(author="nobody")}, "exact"),
        ({"namespaces": ("large", "small-1")}, "hnsw"),
        ({"namespaces": ()}, "hnsw"),
        ({"namespaces": ("small-1",)}, "exact"),
    ],
    ids=[
        "a frequent tag",
        "as of",
        "a filter that nothing passes",
        "large and small",
        "all",
        "a small namespace",
    ],
)
async def test_small_scopes_and_what_filters_leave_too_little_of_are_searched_exactly(
    crowd: ManyMemories, asked: dict[str, Any], used: str
) -> None:
    answer = await crowd.person.recall(
        "lighthouse violin", **({"namespaces": ("large",)} | asked), explain=True
    )

    assert path(answer) == used
    assert bool(answer.memories) == ("nobody" not in str(asked))


async def test_status_shows_the_path_of_a_search(crowd: ManyMemories) -> None:
    _, held = await model_coverage(crowd.library)

    assert {item.path for item in held if item.namespace == "large"} == {"hnsw"}
    assert {item.path for item in held if item.namespace != "large"} == {"exact"}


async def test_a_memory_is_found_as_soon_as_it_is_stored(crowd: ManyMemories) -> None:
    [stored] = await crowd.person.keep(
        "an aardvark builds a zeppelin of quartz", namespace="large"
    )

    answer = await crowd.person.recall(
        "quartz zeppelin", namespaces=("large",), branches=("dense",), explain=True
    )

    assert path(answer) == "hnsw"
    assert ids(answer)[0] == stored


async def test_the_index_of_cues_finds_a_memory_by_these(crowd: ManyMemories) -> None:
    [stored] = await crowd.person.keep(
        Draft("winter garden poem", cues=("fry a herring", "smoke the herring")),
        namespace="large",
    )

    answer = await crowd.person.recall(
        "how to smoke fish", namespaces=("large",), branches=("dense",), explain=True
    )

    assert path(answer) == "hnsw"
    assert ids(answer)[0] == stored


async def test_the_index_finds_no_forgotten_memory(crowd: ManyMemories) -> None:
    person = crowd.person
    before = await person.recall(
        "garden winter poem", namespaces=("large",), explain=True
    )

    await person.forget(*ids(before))
    after = await person.recall(
        "garden winter poem", namespaces=("large",), explain=True
    )

    assert path(before) == path(after) == "hnsw"
    assert len(after.memories) == 10
    assert not {*ids(before)} & {*ids(after)}


async def test_other_memories_are_found_exactly_when_the_nearest_are_hidden(
    crowd: ManyMemories, embedder: Embedder
) -> None:
    scope = await crowd.scope()
    model = await embedder.model()
    vector = await embedder.embed_question(["compiler"], [1.0])
    query = DenseQuery(model.id, vector, visited=200, total=MANY)
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
        await connection.execute(
            "update memories set expires_at = $2 where id = any($1)", hidden, NOON
        )
        found = await crowd.library.statements.dense(scope, query, 30)
    finally:
        await connection.execute(
            "update memories set expires_at = null where id = any($1)", hidden
        )
        await connection.close()

    assert found.path == "exact"
    assert len(found.ids) == 30
    assert not {*hidden} & {*found.ids}


async def test_a_search_for_a_dropped_index_finds_the_same_memories(
    crowd: ManyMemories, embedder: Embedder
) -> None:
    scope = await crowd.scope()
    model = await embedder.model()
    vector = await embedder.embed_question(["museum"], [1.0])
    query = DenseQuery(model.id, vector, total=MANY)
    jobs = BackgroundJobs(
        crowd.database, crowd.library, options=JobOptions(pause=0, hnsw_from=0)
    )
    assert await jobs("indexes") == {"dropped": 2}
    try:
        near = await crowd.library.statements.dense(
            scope, replace(query, visited=MANY), 10
        )
    finally:
        jobs.options = JobOptions(pause=0, hnsw_from=1_000)
        assert await jobs("indexes") == {"built": 2}

    assert near.ids == (await crowd.library.statements.dense(scope, query, 10)).ids
