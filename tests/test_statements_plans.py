"""What Postgres does for the hot statements, over enough rows that a wrong plan would show: each must use its index."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from pgvector.asyncpg import register_vector

from folklore.db.database import Database, Session
from folklore.db.statements import statement
from folklore.embedding.embedder import Embedder
from folklore.memory.library import Library
from tests.conftest import Cluster
from tests.person import Person

SMALL_NAMESPACE, LARGE_NAMESPACE = UUID(int=1), UUID(int=2)

# 400 and 7,600 memories in sessions of 50, a dozen lexemes each.
CROWD = """
insert into namespaces (id, name, created_at, created_by)
select id, name, '2026-01-01', 'tester'
from (values ('{small}'::uuid, 'small'), ('{large}'::uuid, 'large')) as given (id, name);

insert into models (id, provider, name, dimensions, created_at) values ('{model}', 'bundled', 'any', 256, '2026-01-01');

insert into memories (
    namespace_id, id, content, kind, session, position, author, language, created_at, updated_at, digest
)
select case when n / 400 = 5 then '{small}'::uuid else '{large}'::uuid end,
    ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid,
    'memory ' || n || ' says that word' || n % 97 || ' and word' || n % 389 || ' are the cause of error' || n,
    'note', 'session ' || n / 50, n % 50, 'tester', 'english', '2026-01-01'::timestamptz + n * interval '1 minute',
    '2026-01-01', sha256(n::text::bytea)
from generate_series(0, 7999) n;

insert into postings (namespace_id, lexeme, memory_id, frequency, length)
select namespace_id, lexeme, id, cardinality(positions), 12 from memories, unnest(search);

insert into embeddings (namespace_id, model_id, memory_id, vector)
select namespace_id, '{model}', id, array_fill(((hashtext(id::text) % 100) / 100.0)::real, array[256])::halfvec
from memories;
"""


@dataclass(frozen=True, slots=True)
class Crowd:
    """A crowded database: its address, and a pool on it."""

    url: str
    database: Database


@dataclass(frozen=True, slots=True)
class Plan:
    """The nodes of a plan, flat."""

    nodes: list[dict[str, Any]]

    @classmethod
    def of(cls, explained: str) -> Plan:
        nodes: list[dict[str, Any]] = []

        def walk(node: dict[str, Any]) -> None:
            nodes.append(node)
            for child in node.get("Plans", []):
                walk(child)

        walk(json.loads(explained)[0]["Plan"])
        return cls(nodes)

    def scans(self, table: str) -> set[tuple[str, str | None]]:
        """How a table is read: (kind of scan, index)."""
        return {(node["Node Type"], node.get("Index Name")) for node in self.nodes if node.get("Relation Name") == table}

    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}


@pytest.fixture(scope="module")
async def crowd(cluster: Cluster, template: str, embedder: Embedder) -> AsyncIterator[Crowd]:
    async with cluster.new_database(template) as name:
        url = cluster.address(name)
        connection = await asyncpg.connect(url)
        model = (await embedder.model()).id
        await connection.execute(CROWD.format(small=SMALL_NAMESPACE, large=LARGE_NAMESPACE, model=model))
        await connection.execute("vacuum analyze")
        await connection.close()
        database = Database(url)
        await database.open()
        yield Crowd(url, database)
        await database.close()


@pytest.fixture
async def explain(crowd: Crowd) -> AsyncIterator[Any]:
    """Plan a statement as the pool's connections would: for these very values."""
    connection = await asyncpg.connect(crowd.url, server_settings={"plan_cache_mode": "force_custom_plan", "jit": "off"})
    await register_vector(connection)

    async def explained(name: str, values: dict[str, object]) -> Plan:
        found = statement(name)
        text = await connection.fetchval("explain (format json) " + found.sql, *found.arguments(values))
        return Plan.of(text)

    yield explained
    await connection.close()


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, object]]]:
    """The statements that were run, by name, with their values."""
    heard: dict[str, dict[str, object]] = {}
    rows = Session.rows

    async def listen(self: Session, name: str, /, **values: object) -> Any:
        heard[name] = values
        return await rows(self, name, **values)

    monkeypatch.setattr(Session, "rows", listen)
    yield heard


@pytest.fixture
async def recalled(crowd: Crowd, embedder: Embedder, said: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """What one recall in the small namespace said."""
    person = Person(Library.of(crowd.database, embedder))
    answer = await person.recall("what was the cause of error2111 with word48", namespaces=("small",))
    assert answer.memories
    return dict(said)


async def test_document_frequencies_are_read_from_the_postings_key_alone(recalled: Any, explain: Any) -> None:
    plan = await explain("recall_lexemes", recalled["recall_lexemes"])

    assert plan.scans("postings") == {("Index Only Scan", "postings_pkey")}
    assert plan.scans("memories") == set()


async def test_the_keyword_branch_reads_the_postings_key_alone_and_few_memories(recalled: Any, explain: Any) -> None:
    plan = await explain("recall_keyword", recalled["recall_keyword"])

    assert plan.scans("postings") == {("Index Only Scan", "postings_pkey")}
    assert plan.scans("memories") == {("Index Scan", "memories_pkey")}


async def test_the_dense_branch_reads_the_narrow_table_by_namespace(recalled: Any, explain: Any) -> None:
    plan = await explain("recall_dense", recalled["recall_dense"])

    assert plan.scans("embeddings") in (
        {("Index Scan", "embeddings_pkey")},
        {("Bitmap Heap Scan", None)},  # of the same key: see indexes()
    )
    assert plan.indexes() == {"embeddings_pkey", "memories_pkey"}
    assert plan.scans("memories") == {("Index Scan", "memories_pkey")}


async def test_session_neighbours_are_found_by_their_index(recalled: Any, explain: Any) -> None:
    plan = await explain("recall_pool", recalled["recall_pool"])

    assert "memories_session_idx" in plan.indexes()
    assert not {kind for kind, _ in plan.scans("memories")} & {"Seq Scan"}
    assert not {kind for kind, _ in plan.scans("embeddings")} & {"Seq Scan"}


async def test_memories_are_fetched_by_their_key(crowd: Crowd, explain: Any, said: Any) -> None:
    library = Library.of(crowd.database, None)
    some = [UUID("00000000-0000-7000-8000-000000002005")]
    assert len(await library.memories.get([SMALL_NAMESPACE], some)) == 1

    plan = await explain("memories_get", said["memories_get"])

    assert plan.scans("memories") == {("Index Scan", "memories_pkey")}


async def test_an_idempotency_key_is_found_by_its_index(explain: Any) -> None:
    plan = await explain("memories_by_key", {"namespace": LARGE_NAMESPACE, "keys": ["some", "keys"]})

    assert plan.indexes() == {"memories_idempotency_key"}


async def test_both_branches_of_a_recall_hold_a_connection_at_the_same_time(
    crowd: Crowd, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each branch waits, its connection in hand, until the other has come as far: one after the other, neither would."""
    both = asyncio.Barrier(2)
    rows = Session.rows

    async def meet(self: Session, name: str, /, **values: object) -> Any:
        if name in ("recall_dense", "recall_keyword"):
            async with asyncio.timeout(5):
                await both.wait()
        return await rows(self, name, **values)

    monkeypatch.setattr(Session, "rows", meet)
    answer = await Person(Library.of(crowd.database, embedder)).recall("word48", namespaces=("small",))

    assert answer.memories
    assert answer.degraded == ()
