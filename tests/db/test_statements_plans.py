"""What Postgres does for the hot statements, over enough rows that a wrong plan would show: each must use its index."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncpg
import pytest

from folklore.contract.token_secrets import key_of
from folklore.db.database import Database, Plans, Session
from folklore.db.rows import visibility
from folklore.db.sql_loader import statement
from folklore.embedding.protocol import Embedder
from folklore.memory.context import MemoryContext
from folklore.model import Draft, Filters
from tests.person import NOON, Person
from tests.team import library_at


@dataclass(frozen=True, slots=True)
class ManyMemories:
    """A crowded database: its address, a pool on it, and the key of a token that opens the smaller namespace."""

    url: str
    database: Database
    key: str

    def seen_by(self, whom: str) -> Database:
        """The database as its owner sees it, or as the holder of the token."""
        return self.database if whom == "owner" else self.database.for_token(self.key)


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
        return {
            (node["Node Type"], node.get("Index Name"))
            for node in self.nodes
            if node.get("Relation Name") == table
        }

    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}


Explain = Callable[[str], Awaitable[Plan]]


def turn(number: int) -> Draft:
    """One of many in a session, with words of its own, some that others have, and some that all have."""
    return Draft(
        f"memory {number} says that word{number % 97} and word{number % 389} are the cause of error{number}",
        session=f"session {number // 50}",
        idempotency_key=f"key {number}",
    )


@pytest.fixture(scope="module")
async def crowd(address: str, embedder: Embedder) -> AsyncIterator[ManyMemories]:
    """A namespace of 200 memories among 3,000."""
    async with library_at(address, embedder) as library:
        person = Person(library)
        for start in range(0, 2_800, 400):
            await person.keep(
                *(turn(number) for number in range(start, start + 400)),
                namespace="large",
            )
        await person.keep(
            *(turn(number) for number in range(2_800, 3_000)), namespace="small"
        )
        connection = await asyncpg.connect(address)
        # A commit that waits flushes those that did not; until then vacuum cannot mark their rows as visible to all.
        for statement_ in ("set synchronous_commit = on", "analyze", "vacuum"):
            await connection.execute(statement_)
        await connection.close()
        made = await person.create_token("alice", "small:writer", "large:reader")
        yield ManyMemories(address, library.database, key_of(made.secret))


@pytest.fixture(params=["owner", "token"])
async def explain(request: pytest.FixtureRequest, crowd: ManyMemories) -> Explain:
    """The plan that the pool's connections keep for a statement, whatever its values are; row-level security on or off.

    A policy asks the token's own tables; they are no part of what a statement reads.
    """

    return partial(kept_plan, crowd.seen_by(request.param), "kept")


async def kept_plan(database: Database, plans: Plans, name: str) -> Plan:
    found = statement(name)
    nothing = ", ".join(["null"] * len(found.parameters))
    async with database.session(plans) as session:
        connection = session.connection
        assert await connection.fetchval("show plan_cache_mode") == "force_generic_plan"
        await connection.execute(f"prepare explained as {found.sql}")
        try:
            return Plan.of(
                await connection.fetchval(
                    f"explain (format json) execute explained ({nothing})"
                )
            )
        finally:
            await connection.execute("deallocate explained")


async def test_words_are_read_by_the_indexes_of_postings(explain: Explain) -> None:
    plan = await explain("recall/lexemes")

    assert plan.scans("postings") <= {
        ("Index Only Scan", "postings_word_idx"), ("Index Scan", "postings_word_idx"), ("Index Scan", "postings_pkey")
    }  # fmt: skip
    assert "fresh_words_pkey" in plan.indexes()
    assert not {kind for kind, _ in plan.scans("fresh_words")} & {"Seq Scan"}


@pytest.mark.parametrize(
    ("name", "tables"),
    [
        ("recall/keyword", ("packed_memories", "memories")),
        ("recall/dense", ("memories",)),
        ("memories/get", ("memories",)),
    ],
)
async def test_memories_are_looked_up_by_their_key(
    explain: Explain, name: str, tables: tuple[str, ...]
) -> None:
    plan = await explain(name)

    for table in tables:
        assert plan.scans(table) == {("Index Scan", f"{table}_pkey")}


@pytest.mark.parametrize(
    "name",
    ["recall/lexemes", "recall/terms", "recall/keyword", "recall/pool:no_vectors"],
)
async def test_a_recall_by_keyword_names_no_table_of_vectors(
    explain: Explain, name: str
) -> None:
    plan = await explain(name)

    assert plan.scans("embeddings") == set()


async def test_session_neighbours_are_found_by_their_index(explain: Explain) -> None:
    plan = await explain("recall/pool")

    assert "memories_session_idx" in plan.indexes()
    assert not {kind for kind, _ in plan.scans("memories")} & {"Seq Scan"}
    assert not {kind for kind, _ in plan.scans("embeddings")} & {"Seq Scan"}


async def test_the_neighbours_of_a_batch_are_found_once(crowd: ManyMemories) -> None:
    """Inlined, they would be found for each memory of a namespace of which statistics know nothing yet."""
    plan = await kept_plan(crowd.database, "kept", "embeddings/neighbours")

    assert "CTE near" in {node.get("Subplan Name") for node in plan.nodes}


async def test_the_end_of_an_id_is_found_by_its_index(crowd: ManyMemories) -> None:
    plan = await kept_plan(crowd.database, "kept", "memories/ending")

    assert {index for _, index in plan.scans("memories")} <= {
        "memories_ending_idx",
        None,
    }
    assert "memories_ending_idx" in plan.indexes()
    assert not {kind for kind, _ in plan.scans("memories")} & {"Seq Scan"}


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("changes/find_keys", {"memories_pkey", "idempotency_keys_pkey"}),
        (
            "transfer/existing",
            {"memories_pkey", "memories_digest_key", "idempotency_keys_pkey"},
        ),
    ],
)
async def test_idempotency_keys_and_conflicting_memories_are_found_by_indexes_alone(
    explain: Explain, name: str, indexes: set[str]
) -> None:
    plan = await explain(name)

    assert plan.indexes() == indexes
    assert not {
        kind
        for table in ("memories", "idempotency_keys")
        for kind, _ in plan.scans(table)
    } & {"Seq Scan"}


@pytest.mark.parametrize("whom", ["owner", "token"])
async def test_an_expression_is_found_by_the_inverted_index(
    whom: str, crowd: ManyMemories
) -> None:
    """Row-level security alone would read the whole namespace: `@@` might tell of rows that may not be seen."""
    found = statement(
        "recall/expression" if whom == "owner" else "recall/expression:token"
    )
    [notebook] = await MemoryContext.of(crowd.database, None).find_namespaces(["large"])
    given = {
        "namespaces": [notebook.id],
        "expression": "'memori' <-> '1234' <-> 'say'",
        "fetch": 30,
        "bound": 5_000,
    }
    given |= {
        "lexemes": ["1234"],
        "weights": [1.0],
        "stems": [None],
        "saturation": 1.2,
        "flat": 0.3,
        "growth": 0.05,
    }
    given |= visibility(Filters(), NOON)

    async with crowd.seen_by(whom).transaction() as session:
        connection = session.connection
        rows = await connection.fetch(found.sql, *found.arguments(given))
        scans = await connection.fetchval(
            "select pg_stat_get_xact_numscans('memories_search_idx'::regclass)"
        )

    assert (len(rows), scans) == (1, 1)


async def test_both_branches_of_a_recall_hold_a_connection_at_the_same_time(
    crowd: ManyMemories, embedder: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits, its connection in hand, until the other has come as far: one after the other, neither would."""
    both = asyncio.Barrier(2)
    met = set[str]()
    rows = Session.rows

    async def meet(self: Session, name: str, /, **values: object) -> Any:
        if name.partition(":")[0] in ("recall/dense", "recall/keyword"):
            met.add(name.partition(":")[0])
            async with asyncio.timeout(120):
                await both.wait()
        return await rows(self, name, **values)

    monkeypatch.setattr(Session, "rows", meet)
    answer = await Person(MemoryContext.of(crowd.database, embedder)).recall(
        "word48", namespaces=("small",)
    )

    assert answer.memories
    assert answer.degraded == ()
    assert met == {"recall/dense", "recall/keyword"}


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("events", {"audit_time_idx", "usage_time_idx"}),
        ("events_since", {"audit_time_idx", "usage_time_idx"}),
        ("written", {"audit_time_idx"}),
        ("recalled", {"usage_time_idx"}),
    ],
)
async def test_the_activity_is_read_by_the_indexes_on_time(
    crowd: ManyMemories, name: str, indexes: set[str]
) -> None:
    plan = await kept_plan(crowd.database, "kept", f"activity/{name}")

    assert {
        index for table in ("audit", "usage") for _, index in plan.scans(table)
    } <= {*indexes, None}
    assert indexes <= plan.indexes()
    assert not {
        kind for table in ("audit", "usage") for kind, _ in plan.scans(table)
    } & {"Seq Scan"}


@pytest.mark.parametrize("whom", ["owner", "token"])
async def test_the_functions_that_delete_find_what_they_delete_by_indexes(
    crowd: ManyMemories, whom: str
) -> None:
    tables = ("memories", "fresh_words", "embeddings", "relations", "idempotency_keys")
    scans = "select coalesce(sum(seq_scan), 0) from pg_stat_xact_user_tables where relname = any($1)"
    database = crowd.seen_by(whom)

    async def delete() -> None:
        async with database.transaction() as session:
            connection = session.connection
            space = await connection.fetchval(
                "select id from namespaces where name = 'small'"
            )
            first = (
                "select id from memories where namespace_id = $1 order by id limit 5"
            )
            ids = [row["id"] for row in await connection.fetch(first, space)]
            count = "select count(*) from fresh_words where namespace_id = $1"
            before = await connection.fetchval(scans, tables)
            left = await connection.fetchval(count, space)
            await session.rows("postings/delete", namespace=space, ids=ids)
            await session.rows("embeddings/delete_by_id", namespace=space, ids=ids)
            await session.rows("changes/unrelate", namespace=space, relations="[]")
            await session.rows(
                "changes/release_keys", namespace=space, keys=["key 2800"]
            )
            assert left - await connection.fetchval(count, space) == 5
            assert await connection.fetchval(scans, tables) == before
            raise RuntimeError("roll back")

    with pytest.raises(RuntimeError, match="roll back"):
        await delete()


@pytest.mark.parametrize("by", ["happened", "updated", "trending"])
@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("whom", ["owner", "token"])
async def test_a_page_of_a_list_reads_as_many_memories_as_it_shows(
    crowd: ManyMemories, by: str, order: str, whom: str
) -> None:
    database = crowd.seen_by(whom)
    found = statement(f"memories/list:{by}:{order}:plain")
    connection = await asyncpg.connect(crowd.url)
    namespaces = [
        row["id"] for row in await connection.fetch("select id from namespaces")
    ]
    await connection.close()
    values = {
        "namespaces": namespaces,
        "after_time": None,
        "after_id": None,
        "fetch": 11,
        "quality_floor": 0.05,
    }
    async with database.session("kept") as session:
        given = [(values | {"now": NOON})[name] for name in found.parameters]
        explained = await session.connection.fetchval(
            f"explain (analyze, format json) {found.sql}", *given
        )
    plan = Plan.of(explained)
    scans = [node for node in plan.nodes if node.get("Relation Name") == "memories"]
    read = sum(node["Actual Rows"] * node["Actual Loops"] for node in scans)

    assert 11 <= read <= 2 * (1 + 11) * len(namespaces)
