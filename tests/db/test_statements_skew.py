"""Plans over namespaces of very different sizes, with skewed and missing statistics: no data table is read whole."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from pgvector import HalfVector

from folklore.contract.token_secrets import key_of
from folklore.db.database import Database, Plans, PoolLimits
from folklore.db.rows import visibility
from folklore.db.sql_loader import statement
from folklore.errors import Refused
from folklore.memory.context import MemoryContext
from folklore.model import Filters
from tests.conftest import Cluster
from tests.db.test_statements import COMPLETE, DATA_TABLES, NEAREST, OTHERS, VARIANTS
from tests.person import NOON, Person

MODEL = UUID("00000000-0000-7000-8000-000000000001")
FILLED = [
    "no statistics",
    "statistics of the small",
    "statistics of the large",
    "statistics of all",
]
EMPTY = range(1, 301)
SMALL = range(301, 2_301)
LARGE = range(2_301, 2_302)
# Statements that find rows by an inverted index, which no namespace begins.
INVERTED = {"memories_search_idx", "memories_tags_idx", "postings_word_idx"}
# What a question to all namespaces but a few reads whole.
MEANT = {"Seq Scan on fresh_words", "Seq Scan on packed_namespaces"}

# $1 and $2 are the numbers of the first and the last namespace, $3 the memories of each, $4 their vector.
FILL = """
with space as (
    insert into namespaces (id, name, created_at, created_by)
    select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, 'space-' || n, now(), 'tester'
    from generate_series($1::integer, $2::integer) n
    returning id
),
stored as (
    insert into memories (
        namespace_id, id, content, kind, tags, author, language, created_at, updated_at, digest, session, position
    )
    select space.id, ('00000001-0000-7000-8000-' || lpad(to_hex(k), 12, '0'))::uuid, 'memory of word' || k % 997,
        'note', array['word:' || k % 97], 'tester', 'english', now(), now(), sha256(int8send(k)),
        'session ' || k / 50, k
    from space, generate_series(1, $3::integer) k
    returning namespace_id, id, search
),
embedded as (
    insert into embeddings (namespace_id, model_id, memory_id, passage, passages, begins, ends, length, vector)
    select namespace_id, '00000000-0000-7000-8000-000000000001', id, 0, 0, 0, 0, 3, $4::text::halfvec from stored
)
insert into postings (namespace_id, word, block, documents, entries)
select stored.namespace_id, folklore_word(held.lexeme), 0, count(*), ''
from stored, unnest(tsvector_to_array(search)) as held (lexeme)
group by 1, 2
"""


@dataclass(frozen=True, slots=True)
class Skewed:
    """A database of 300 empty namespaces, 2,000 small ones and a large one, and the key of a token that opens one."""

    database: Database
    key: str
    analyzed: bool

    def seen_by(self, whom: str) -> Database:
        return self.database if whom == "owner" else self.database.for_token(self.key)


def space(number: int) -> UUID:
    return UUID(int=0x00000000_0000_7000_8000_000000000000 + number)


async def fill(connection: asyncpg.Connection, spaces: range, memories: int) -> None:
    await connection.execute(FILL, spaces[0], spaces[-1], memories, str([0.125] * 64))


async def add_model(connection: asyncpg.Connection) -> None:
    await connection.execute(
        "insert into models (id, provider, name, dimensions, created_at, role)"
        " values ($1, 'test', 'test', 64, now(), 'active')",
        MODEL,
    )


async def analyze(connection: asyncpg.Connection) -> None:
    await connection.execute("analyze")


async def opened(cluster: Cluster, name: str) -> asyncpg.Connection:
    """A connection to a database whose statistics change on demand only."""
    connection = await asyncpg.connect(cluster.address(name))
    await connection.execute("set synchronous_commit = off")
    for table in DATA_TABLES:
        await connection.execute(
            f"alter table {table} set (autovacuum_enabled = false)"
        )
    return connection


@pytest.fixture(scope="module")
async def bases(cluster: Cluster, template: str) -> AsyncIterator[dict[str, str]]:
    """Databases by what the planner knows of them; the large namespace has 50,000 memories, or 5,000 in one of them."""
    async with AsyncExitStack() as stack:
        names: dict[str, str] = {}

        async def base(
            title: str,
            source: str,
            *steps: Callable[[asyncpg.Connection], Awaitable[object]],
        ) -> None:
            names[title] = await stack.enter_async_context(cluster.new_database(source))
            connection = await opened(cluster, names[title])
            for step in steps:
                await step(connection)
            await connection.close()

        small = partial(fill, spaces=SMALL, memories=4)
        large = partial(fill, spaces=LARGE, memories=50_000)
        await base(
            "no rows", template, add_model, partial(fill, spaces=EMPTY, memories=0)
        )
        await base("statistics of no rows", names["no rows"], analyze)
        fewer = partial(fill, spaces=LARGE, memories=5_000)
        await base("statistics of the small", names["no rows"], small, analyze, fewer)
        await base("the large alone", names["no rows"], large)
        await base("statistics of the large", names["the large alone"], analyze, small)
        await base("no statistics", names["the large alone"], small)
        await base("statistics of all", names["no statistics"], analyze)
        yield names


@pytest.fixture(scope="module", params=["no rows", "statistics of no rows", *FILLED])
async def skewed(
    request: pytest.FixtureRequest, cluster: Cluster, bases: dict[str, str]
) -> AsyncIterator[Skewed]:
    database = Database(cluster.address(bases[request.param]), PoolLimits(minimum=0))
    await database.open()
    made = await Person(MemoryContext.of(database, None), name="root").create_token(
        "alice", "space-1:admin"
    )
    yield Skewed(database, key_of(made.secret), request.param == "statistics of all")
    await database.close()


def is_planned(name: str) -> bool:
    """Return whether Postgres makes a plan for the statement."""
    return (
        re.match(r"\s*(?:select|with|insert|update|delete)\b", statement(name).sql)
        is not None
    )


# A backup asks its questions of the whole database, and an index is over all vectors. A cluster counts all at once.
WHOLE = {"backup/answers", "embeddings/index_changes", f"{NEAREST}:plain:others"} | {
    name for name in COMPLETE if name.startswith("distributed/")
}
PLANNED = [
    name
    for name in [*COMPLETE, *VARIANTS, *OTHERS]
    if is_planned(name) and name not in WHOLE
]

# Statements to which memories are given: they read no namespace whole, though most are small.
GIVEN = {
    "changes/close", "changes/relate", "changes/update", "injections/claim", "transfer/insert_keys", "transfer/replace",
    "transfer/insert_relations", "transfer/insert_revisions", "transfer/link_successors", "recall/few_numbers",
}  # fmt: skip
SCANS = [
    "recall/dense:plain",
    f"{NEAREST}:plain",
    "recall/dense:plain:others",
    "embeddings/neighbours",
    "embeddings/neighbours:single",
]


def reading_whole(
    plan: dict[str, Any],
    tables: Collection[str] = DATA_TABLES,
    condition: str = "namespace_id",
) -> list[str]:
    """Return the scans of these tables, or of their indexes, that have no such condition."""
    table = plan.get("Relation Name")
    index = plan.get("Index Name", "")
    found = (
        [f"Seq Scan on {table}"]
        if plan["Node Type"] == "Seq Scan" and table in tables
        else []
    )
    if index.startswith(tuple(f"{name}_" for name in tables)) and index not in INVERTED:
        found += (
            []
            if re.search(condition, plan.get("Index Cond", ""))
            else [f"{plan['Node Type']} using {index}"]
        )
    return found + [
        place
        for child in plan.get("Plans", [])
        for place in reading_whole(child, tables, condition)
    ]


@pytest.mark.parametrize("whom", ["owner", "token"])
@pytest.mark.parametrize(("plans", "names"), [("kept", PLANNED), ("scan", SCANS)])
async def test_no_kept_plan_reads_a_data_table_whole(
    skewed: Skewed, plans: Plans, names: Sequence[str], whom: str
) -> None:
    whole = {}
    for place, name in enumerate(names):
        found = statement(name)
        given = (
            f"({', '.join(['null'] * len(found.parameters))})"
            if found.parameters
            else ""
        )
        try:
            async with skewed.seen_by(whom).session(plans) as session:
                connection = session.connection
                await connection.execute(f"prepare explained_{place} as {found.sql}")
                explained = await connection.fetchval(
                    f"explain (format json) execute explained_{place} {given}"
                )
        except Refused:  # a table for the owner alone
            assert whom == "token"
            continue
        plan = json.loads(explained)[0]["Plan"]
        places = set(reading_whole(plan)) - (MEANT if name in OTHERS else set())
        if name in GIVEN and skewed.analyzed:
            places.update(reading_whole(plan, ("memories",), r"\(id = |\(session = "))
        if places:
            whole[name] = places

    assert whole == {}


# Parameters of the statements whose plans are made for their values. Behind a pooler namespaces_find is one of them.
PARAMETERS: dict[str, dict[str, object]] = {
    "namespaces/find": {"names": None, "within": None, "known": None, "hollow": []},
    "memories/list:happened:newest": {"after_time": None, "after_id": None, "fetch": 11},
    "changes/match": {"shown": None, "fetch": 100},
    "embeddings/neighbours": {  # of more than 50 memories
        "similar": 0.8, "asked": [], "most": 10, "least": 0.25, "newest": 1_000, "now": NOON,
    },
    "recall/dense": {"scan": None, "fetch": 30},
    "recall/expand": {
        "bridges": True, "entities": ["word:1"], "max_relations": 5, "most": 10, "hops": 3, "least_strength": 0.1,
    },
    "recall/expression:token": {
        "expression": "'memori' & 'word7'", "lexemes": ["memori", "word7"], "weights": [0.1, 5.0],
        "stems": [None, None], "saturation": 1.2, "flat": 0.3, "growth": 0.3, "bound": 10_000, "fetch": 30,
    },
    "recall/few": {"most": 501},
}  # fmt: skip


@pytest.mark.parametrize("skewed", FILLED, indirect=True, scope="module")
@pytest.mark.parametrize("name", PARAMETERS)
async def test_no_plan_for_a_small_namespace_reads_others(
    skewed: Skewed, name: str
) -> None:
    found = statement(name)
    small = space(SMALL[0])
    async with skewed.database.session("fresh") as session:
        ids = await session.connection.fetch(
            "select id from memories where namespace_id = $1", small
        )
        given = visibility(Filters(kinds=("note",)), NOON) | PARAMETERS[name]
        given |= {
            "namespace": small,
            "namespaces": [small],
            "ids": [row["id"] for row in ids],
            "model": MODEL,
        }
        values = (
            ({"query": HalfVector([0.125] * 64)} | given)[parameter]
            for parameter in found.parameters
        )
        explained = await session.connection.fetchval(
            f"explain (format json) {found.sql}", *values
        )

    # The others have no rows, and are as quickly read whole.
    assert (
        reading_whole(
            json.loads(explained)[0]["Plan"], ("memories", "embeddings", "postings")
        )
        == []
    )


@pytest.mark.parametrize("skewed", FILLED, indirect=True, scope="module")
@pytest.mark.parametrize("plans", ["kept", "fresh"])
async def test_finding_out_that_a_namespace_is_empty_reads_a_few_pages(
    skewed: Skewed, plans: Plans
) -> None:
    async with skewed.database.session(plans) as session:
        rows = await session.rows(
            "namespaces/find", names=None, within=None, known=None, hollow=[]
        )
        analyze = f"explain (analyze, buffers, format json) {statement('namespaces/find').sql}"
        explained = await session.connection.fetchval(analyze, None, None, None, [])
    plan = json.loads(explained)[0]["Plan"]

    assert sum(row["empty"] for row in rows) == len(EMPTY)
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 8 * len(rows)
