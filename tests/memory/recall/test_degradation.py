"""Each branch answers without the tables of the other: with real locks, missing tables and columns."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock

import asyncpg
import numpy as np
import pytest
from numpy.typing import NDArray

from folklore.contract.health import StatusRequest
from folklore.db.database import Database, PoolLimits
from folklore.db.session import LOCK_SECONDS, unless_locked
from folklore.db.sql_loader import statement
from folklore.db.stores.recall import RecallStatements
from folklore.embedding.protocol import Embedder
from folklore.errors import EmbedderUnavailable, Unavailable
from folklore.memory.context import MemoryContext
from folklore.model import Answer, Draft, Filters
from folklore.ranking.weights import PRESETS, Ranking
from tests import embedders
from tests.memory.auth.test_isolation import holder
from tests.person import Person, contents

FACTS = (
    "We deploy from the runner in Frankfurt.", "The office cat is called Turing.",
    "Invoices are sent on the first Monday of a month.", "The backup of the database runs at two in the morning.",
)  # fmt: skip
CAT = FACTS[1]


@asynccontextmanager
async def locked(connection: asyncpg.Connection, table: str) -> AsyncIterator[None]:
    """Hold an exclusive lock on a table by another connection."""
    async with connection.transaction():
        await connection.execute(f"lock table {table} in access exclusive mode")
        yield


@pytest.fixture
async def keeper(person: Person) -> Person:
    await person.keep(*FACTS)
    return person


def failing(answer: Answer) -> list[str]:
    return [item.branch for item in answer.degraded]


@pytest.mark.parametrize(
    ("filters", "asked_before"), [(Filters(), False), (Filters(author="tester"), True)]
)
@pytest.mark.parametrize(
    ("table", "branch"), [("embeddings", "dense"), ("postings", "keyword")]
)
async def test_a_recall_answers_while_the_table_of_a_branch_is_locked(
    keeper: Person,
    connection: asyncpg.Connection,
    table: str,
    branch: str,
    filters: Filters,
    *,
    asked_before: bool,
) -> None:
    await keeper.recall(
        "the cat of the office" if asked_before else "warm", filters=filters
    )
    if not asked_before:
        keeper.library.statistics.tokens.clear()

    async with locked(connection, table):
        answer = await keeper.recall("the cat of the office", filters=filters)

    assert contents(answer)[0] == CAT
    assert failing(answer) == [branch]
    assert "locked" in answer.degraded[0].reason
    assert failing(await keeper.recall("the cat of the office", filters=filters)) == []


async def test_a_search_whose_terms_cannot_be_read_is_an_error_and_no_empty_answer(
    keeper: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        RecallStatements, "terms", AsyncMock(side_effect=Unavailable("All are in use."))
    )

    with pytest.raises(Unavailable, match="could not be read"):
        await keeper.search('"called Turing"')
    assert failing(await keeper.recall('"called Turing" AND cat')) == ["keyword"]


async def test_a_search_by_keyword_reads_no_embeddings_and_fails_while_its_own_table_is_locked(
    keeper: Person, connection: asyncpg.Connection
) -> None:
    async with locked(connection, "embeddings"):
        for query in ("office cat", '"called Turing"', "tag:pets OR cat"):
            answer = await keeper.search(query)
            assert (contents(answer), answer.degraded) == ([CAT], ())
    async with locked(connection, "postings"):
        with pytest.raises(Unavailable, match="locked"):
            await keeper.search("office cat")


async def test_a_lock_that_comes_after_the_branches_leaves_their_results(
    keeper: Person, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = locked(connection, "embeddings")
    candidates = type(keeper.library.statements).candidates

    async def later(self: Any, scope: Any, query: Any) -> Any:
        if query.near is not None:
            await held.__aenter__()
        return await candidates(self, scope, query)

    monkeypatch.setattr(type(keeper.library.statements), "candidates", later)
    try:
        answer = await keeper.recall("the cat of the office")
    finally:
        await held.__aexit__(None, None, None)

    assert contents(answer)[0] == CAT
    assert failing(answer) == ["dense"]


async def test_a_lock_that_comes_before_the_neighbours_of_results_are_read_leaves_the_results(
    keeper: Person, connection: asyncpg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [
        Draft(f"{said} {day}", session=f"day {day}")
        for day in range(6)
        for said in ("Hello", "A cat came on day")
    ]
    await keeper.keep(*turns)
    held = locked(connection, "embeddings")
    candidates = type(keeper.library.statements).candidates
    reads = list[bool]()

    async def later(self: Any, scope: Any, query: Any) -> Any:
        reads.append(query.near is not None)
        if reads == [True, True]:
            await held.__aenter__()
        return await candidates(self, scope, query)

    monkeypatch.setattr(type(keeper.library.statements), "candidates", later)
    monkeypatch.setattr("folklore.ranking.numbers.SURROUNDED", 0)
    try:
        answer = await keeper.recall(
            "which cat came?", limit=1, ranking=Ranking(min_score=0.01)
        )
    finally:
        await held.__aexit__(None, None, None)

    assert reads == [True, True, False]
    assert "cat" in contents(answer)[0]


@pytest.mark.parametrize(
    ("command", "branch"),
    [
        ("alter table embeddings rename to lost", "dense"),
        ("alter table postings rename column entries to lost", "keyword"),
    ],
)
async def test_a_recall_answers_without_a_table_or_column_of_a_branch(
    keeper: Person, connection: asyncpg.Connection, command: str, branch: str
) -> None:
    await connection.execute(command)

    answer = await keeper.recall("the cat of the office")

    assert contents(answer)[0] == CAT
    assert failing(answer) == [branch]


async def test_a_slow_statement_that_waits_for_no_lock_goes_on(
    connection: asyncpg.Connection, database_url: str
) -> None:
    slow = await asyncpg.connect(
        database_url, server_settings={"application_name": "folklore"}
    )
    looked: list[bool] = []

    async def cancel_if_locked() -> bool:
        looked.append(
            bool(
                await connection.fetchval(
                    statement("server/cancel_locked").sql, slow.get_server_pid()
                )
            )
        )
        return looked[-1]

    try:
        slept = await unless_locked(
            slow.fetchval(f"select pg_sleep({2.4 * LOCK_SECONDS})::text"),
            cancel_if_locked,
        )
    finally:
        await slow.close()

    assert slept == ""
    assert looked == [False, False]


async def test_the_connection_of_a_cancelled_statement_is_used_again(
    database_url: str, connection: asyncpg.Connection, embedder: Embedder
) -> None:
    database = Database(database_url, PoolLimits(minimum=0, maximum=2))
    await database.open()
    person = Person(MemoryContext.of(database, embedder))
    await person.keep(*FACTS)

    async with locked(connection, "embeddings"):
        answers = await asyncio.gather(
            *(person.recall("the cat of the office") for _ in range(4))
        )
    after = await person.recall("the cat of the office")
    await database.close()

    assert [failing(answer) for answer in answers] == [["dense"]] * 4
    assert failing(after) == []


async def test_a_recall_with_a_token_answers_while_a_table_is_locked(
    keeper: Person, connection: asyncpg.Connection
) -> None:
    alice = await holder(keeper, "alice", "notes:reader")
    await alice.recall("the cat of the office")

    async with locked(connection, "embeddings"):
        answer = await alice.recall("the cat of the office")

    assert contents(answer)[0] == CAT
    assert failing(answer) == ["dense"]


async def test_the_status_counts_memories_while_embeddings_are_locked(
    keeper: Person, connection: asyncpg.Connection
) -> None:
    async with locked(connection, "embeddings"):
        status = await keeper.call(StatusRequest())

    assert [item.memories for item in status.namespaces] == [len(FACTS)]
    assert [item.branch for item in status.degraded] == ["dense"]


class Dying(embedders.ByLetter):
    """Knows its model, and fails for every text once it is dead."""

    dead = False

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.dead:
            raise EmbedderUnavailable("The embedding service does not answer.")
        return await super().embed(texts)


async def test_status_answers_and_stores_report_a_dead_model(
    database: Database,
) -> None:
    embedder = Dying()
    person = Person(MemoryContext.of(database, embedder))
    await person.keep(*FACTS)
    assert (await person.call(StatusRequest())).degraded == ()

    embedder.dead = True
    status = await person.call(StatusRequest())
    answer = await person.recall("the cat of the office")
    stored = await person.store("The office dog is called Hopper.")

    assert [item.reason for item in status.degraded] == [
        "The embedding service does not answer."
    ]
    assert status.model is not None
    assert failing(answer) == ["dense"]
    assert contents(answer)[0] == CAT
    assert stored.note is not None
    assert "similar memories could not be looked up" in stored.note


async def test_without_a_model_a_ranking_by_meaning_says_so(database: Database) -> None:
    person = Person(MemoryContext.of(database, None))
    await person.keep(*FACTS)

    answer = await person.recall("the cat of the office", ranking=PRESETS["semantic"])
    nothing = await person.recall("zeppelin")

    assert answer.memories == ()
    assert failing(answer) == ["dense"]
    assert answer.note is not None
    assert "no embedding model" in answer.note
    assert nothing.note is not None
    assert "no embedding model" in nothing.note
    assert failing(nothing) == []
