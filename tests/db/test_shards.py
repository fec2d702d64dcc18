"""Statements on a cluster: sent to each shard alone and merged, on one Postgres that has no shards."""

import asyncio
from collections.abc import AsyncIterator
from itertools import chain

import asyncpg
import pytest

from folklore.cli.operate.doctor import check_token
from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import ListRequest
from folklore.contract.recall import RecallRequest
from folklore.db.database import Database, PoolLimits
from folklore.db.distribute import distribute
from folklore.db.sql_loader import statement
from folklore.errors import FolkloreError, Refused
from folklore.memory.context import MemoryContext
from tests.person import NOON, Person

SPACES = ("alpha", "beta", "gamma")
TEXTS = (
    "The parser of the {} service uses a hand-written lexer and no generator.",
    "We deploy {} on Tuesdays, after the parser's tests have passed.",
    "The {} queue is drained by two workers; a third one is started by hand.",
    "Nobody restarts the {} lexer while the queue is full.",
)
# As Citus', for the statement that asks for the shards of namespaces.
SHARD_OF = """
    create function get_shard_id_for_distribution_column(relation regclass, value uuid) returns bigint
    language sql immutable return hashtext(value::text)
"""


@pytest.fixture
async def sharded(
    person: Person,
    database_url: str,
    connection: asyncpg.Connection,
    queries: list[str],
) -> AsyncIterator[Database]:
    """A database whose statements run as on a cluster with a shard for each namespace."""
    for space in SPACES:
        await person.store(*(text.format(space) for text in TEXTS), namespace=space)
    spaces = await connection.fetch("select id from namespaces")
    async with Database(database_url, PoolLimits(minimum=0), queries.append) as opened:
        opened._pools.shards.distributed = True
        opened._pools.shards._of.update(
            {row["id"]: place for place, row in enumerate(spaces)}
        )
        yield opened


@pytest.fixture
def apart(person: Person, sharded: Database) -> Person:
    """A person on this database."""
    return Person(MemoryContext.of(sharded, person.library.embedder))


@pytest.mark.parametrize(
    "query",
    [
        "Which service uses a lexer?",
        "parser AND tests",
        '"by hand"',
        "queue OR deploy",
        "what is it",
    ],
)
async def test_a_recall_over_several_shards_is_that_of_one(
    person: Person, apart: Person, query: str
) -> None:
    request = RecallRequest(query=query, namespaces=SPACES, limit=10)
    found = await person.call(request)
    same = await apart.call(request)

    assert [item.memory.id for item in same.memories] == [
        item.memory.id for item in found.memories
    ]
    assert [item.score for item in same.memories] == pytest.approx(
        [item.score for item in found.memories]
    )


@pytest.mark.parametrize(
    "filters",
    [
        FiltersRequest(author="tester"),
        FiltersRequest(exclude_tags=("staging",)),
        FiltersRequest(since=NOON),
        FiltersRequest(as_of=NOON),
    ],
    ids=["author", "tags", "since", "as_of"],
)
async def test_a_filtered_recall_over_several_shards_is_that_of_one(
    person: Person, apart: Person, queries: list[str], filters: FiltersRequest
) -> None:
    unfiltered = RecallRequest(query="parser", namespaces=SPACES, limit=10)
    filtered = unfiltered.model_copy(update={"filters": filters})
    for who in (person, apart):
        await who.call(unfiltered)  # from then on the scope is known to be small
    found = await person.call(filtered)
    queries.clear()
    same = await apart.call(filtered)
    await asyncio.sleep(0)  # asyncpg logs in the next turn of the loop

    assert found.memories
    assert [item.memory.id for item in same.memories] == [
        item.memory.id for item in found.memories
    ]
    assert same.degraded == ()
    # Citus refuses it with the filter by paths, which reads a function.
    assert not [sql for sql in queries if ") space cross join lateral (" in sql]


async def test_an_answer_whose_shards_are_forgotten_meanwhile_asks_all_of_them(
    connection: asyncpg.Connection, sharded: Database
) -> None:
    shards = sharded._pools.shards
    known, *unknown = shards._of
    for namespace in unknown:
        del shards._of[namespace]
    await connection.execute(SHARD_OF)

    groups = asyncio.create_task(shards._groups(connection, [known, *unknown]))
    await asyncio.sleep(0)  # it waits for the shards of the unknown ones
    shards._of.clear()

    assert sorted(chain.from_iterable(await groups)) == sorted([known, *unknown])


async def test_lists_and_changes_over_several_shards_are_those_of_one(
    person: Person, apart: Person
) -> None:
    pages = [
        await who.call(ListRequest(namespaces=SPACES, limit=5))
        for who in (person, apart)
    ]
    stored = await apart.store("The gamma service is written anew.", namespace="gamma")
    [forgotten] = [item.id for item in stored.stored]

    assert [item.memory.id for item in pages[0].memories] == [
        item.memory.id for item in pages[1].memories
    ]
    assert await apart.get(forgotten) == await person.get(forgotten)


async def test_the_first_store_registers_its_model_before_it_writes_vectors(
    person: Person, database: Database, queries: list[str]
) -> None:
    """Citus writes vectors to several shards, and no small table after them."""
    database._pools.shards.distributed = True

    await person.store("The heron is grey.", "The crane is blue.")
    await asyncio.sleep(0)  # asyncpg logs in the next turn of the loop

    written = [sql.split()[2] for sql in queries if sql.startswith("insert into")]
    assert written.index("models") < written.index("embeddings")


async def test_functions_are_made_on_workers_after_those_that_they_call(
    connection: asyncpg.Connection,
) -> None:
    commands = await connection.fetch(statement("distribute/functions").sql)
    heads = [row["command"].partition("(")[0] for row in commands]
    made = [head.rpartition(".")[2] for head in heads]
    calls = await connection.fetch(
        "select caller.proname as caller, called.proname as called from pg_depend d"
        " join pg_proc caller on caller.oid = d.objid join pg_proc called on called.oid = d.refobjid"
        " where d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_proc'::regclass"
    )

    too_early = {
        (call["caller"], call["called"])
        for call in calls
        if call["called"] in made
        and made.index(call["caller"]) < made.index(call["called"])
    }
    assert calls
    assert too_early == set()


async def test_a_policy_of_a_cluster_finds_the_namespaces_of_a_token_once_for_a_scan(
    person: Person, connection: asyncpg.Connection
) -> None:
    for space in SPACES:
        await person.store(*(text.format(space) for text in TEXTS), namespace=space)
    await connection.execute("analyze memories")
    for name in ("functions", "tokens", "policies"):
        for row in await connection.fetch(statement(f"distribute/{name}").sql):
            await connection.execute(row["command"])

    async with connection.transaction():
        await connection.execute("set local role folklore_app")
        plan = await connection.fetch(
            "explain select id from memories"
            " where namespace_id = any('{01a2258e-0000-7000-8000-000000000001}') and trust = 'stated'"
        )

    lines = [row[0].strip() for row in plan]
    assert [line for line in lines if "folklore_opened" in line]
    assert not [
        line
        for line in lines
        if line.startswith("Filter") and "folklore_opened" in line
    ]


async def test_distributing_without_citus_is_refused(empty_database_url: str) -> None:
    with pytest.raises(Refused, match="no extension citus"):
        await distribute(empty_database_url, dry_run=True)


async def test_the_check_of_a_token_leaves_the_memories_that_were_there(
    person: Person, database_url: str, connection: asyncpg.Connection
) -> None:
    await person.store(
        "A crane of the user is blue.", namespace="folklore-check/granted"
    )

    await check_token(database_url)

    for table, rows in (
        ("namespaces", 1),
        ("memories", 1),
        ("fresh_words", 1),
        ("principals", 0),
        ("tokens", 0),
    ):
        assert await connection.fetchval(f"select count(*) from {table}") == rows, table


@pytest.mark.parametrize("seen", [0, 2])
async def test_a_token_that_sees_nothing_or_too_much_fails_the_check(
    database_url: str, connection: asyncpg.Connection, seen: int
) -> None:
    await connection.execute(
        f"alter policy memories_read on memories using ({seen > 0})"
    )

    with pytest.raises(FolkloreError, match=f"row-level security showed it {seen}"):
        await check_token(database_url)
