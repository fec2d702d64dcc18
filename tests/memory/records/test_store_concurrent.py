"""Stores that meet, and stores that are cut off: each memory is whole, once, in its place, or not there."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import asyncpg
import pytest

from folklore.db.database import Database, PoolLimits, Session
from folklore.errors import DatabaseUnavailable, InvalidInput
from folklore.memory.context import MemoryContext
from folklore.model import Draft
from tests import embedders
from tests.person import Person, contents
from tests.waiting import STUCK

WRITERS = 8


@pytest.fixture
async def writers(database_url: str) -> AsyncIterator[list[Person]]:
    """Several processes' worth of pools: each writer has a connection of its own."""
    databases = [
        Database(database_url, PoolLimits(minimum=1, maximum=2)) for _ in range(WRITERS)
    ]
    await asyncio.gather(*(database.open() for database in databases))
    yield [
        Person(MemoryContext.of(database, embedders.ByLetter()), name=f"writer {n}")
        for n, database in enumerate(databases)
    ]
    await asyncio.gather(*(database.close() for database in databases))


async def whole(connection: asyncpg.Connection) -> None:
    """Assert that exactly the memories have postings and an embedding."""
    # Citus joins within a namespace
    of = "where {0}.namespace_id = m.namespace_id and {0}.memory_id = m.id".format
    extra = (
        f"select from fresh_words f where not exists (select from memories m {of('f')})"
    )
    assert await connection.fetch(extra) == []
    lacking = f"""
        select content from memories m
        where not exists (select from fresh_words p {of("p")}) or not exists (select from embeddings e {of("e")})
    """
    assert await connection.fetch(lacking) == []


async def test_the_same_text_stored_by_several_callers_at_once_is_one_memory(
    writers: list[Person], connection: asyncpg.Connection
) -> None:
    stored = await asyncio.gather(
        *(writer.store("said by everybody") for writer in writers)
    )

    statuses = sorted(result.stored[0].status for result in stored)
    assert statuses == ["duplicate"] * (WRITERS - 1) + ["stored"]
    assert len({result.stored[0].id for result in stored}) == 1
    assert await connection.fetchval("select count(*) from memories") == 1
    assert await connection.fetchval("select count(*) from namespaces") == 1
    await whole(connection)


async def test_batches_that_share_texts_in_different_orders_do_not_deadlock(
    writers: list[Person], connection: asyncpg.Connection
) -> None:
    texts = [f"shared text {n}" for n in range(60)]

    stored = await asyncio.gather(
        *(
            writer.keep(*(texts if n % 2 else reversed(texts)))
            for n, writer in enumerate(writers)
        )
    )

    assert await connection.fetchval("select count(*) from memories") == len(texts)
    assert stored[1] == stored[3] == list(reversed(stored[0]))
    await whole(connection)


async def test_a_key_used_by_several_requests_at_once_makes_one_memory(
    writers: list[Person], connection: asyncpg.Connection
) -> None:
    for round_ in range(5):
        stored = await asyncio.gather(
            *(
                writer.store(Draft(f"round {round_}", idempotency_key=f"k{round_}"))
                for writer in writers
            )
        )

        assert len({result.stored[0].id for result in stored}) == 1
        assert sorted(result.stored[0].status for result in stored)[-1] == "stored"
    assert await connection.fetchval("select count(*) from memories") == 5
    await whole(connection)


async def test_one_of_several_concurrent_requests_with_the_same_key_is_stored_and_the_others_are_rejected(
    writers: list[Person], connection: asyncpg.Connection
) -> None:
    for round_ in range(5):
        stored = await asyncio.gather(
            *(
                writer.store(
                    Draft(f"{writer.name}, {round_}", idempotency_key=f"k{round_}")
                )
                for writer in writers
            ),
            return_exceptions=True,
        )

        refused = [result for result in stored if isinstance(result, InvalidInput)]
        assert (len(refused), len(stored)) == (len(writers) - 1, len(writers)), stored
    assert await connection.fetchval("select count(*) from memories") == 5
    await whole(connection)


async def test_concurrent_duplicates_with_one_key_store_the_key_once(
    writers: list[Person], connection: asyncpg.Connection
) -> None:
    [known] = await writers[0].keep("known")
    stored = await asyncio.gather(
        *(writer.keep(Draft("known", idempotency_key="k")) for writer in writers)
    )

    assert stored == [[known]] * len(writers)
    assert await connection.fetchval("select count(*) from idempotency_keys") == 1


@pytest.mark.parametrize("first", ["new", "known"])
async def test_one_of_a_new_and_a_known_text_with_the_same_key_is_rejected(
    writers: list[Person], connection: asyncpg.Connection, first: str
) -> None:
    [known] = await writers[0].keep("known")
    drafts = [Draft("known", idempotency_key="k"), Draft("new", idempotency_key="k")]
    inside = connection.transaction()
    await inside.start()
    # the last table that a store writes
    await connection.execute("lock table audit in exclusive mode")

    storing = []
    for waiting, draft in enumerate(
        drafts if first == "known" else reversed(drafts), 1
    ):
        storing.append(asyncio.create_task(writers[waiting].store(draft)))
        await waiting_for_a_lock(connection, waiting)
    await inside.rollback()
    won, lost = await asyncio.gather(*storing, return_exceptions=True)

    assert not isinstance(won, BaseException), won
    assert won.stored[0].status == ("stored" if first == "new" else "duplicate")
    assert (won.stored[0].id == known) is (first == "known")
    assert isinstance(lost, InvalidInput), lost
    assert (
        f"was used before for another request, which the memory {won.stored[0].id} answered"
        in str(lost)
    )
    assert await connection.fetchval("select count(*) from memories") == (
        2 if first == "new" else 1
    )
    await whole(connection)


async def test_positions_of_one_session_are_never_given_twice(
    writers: list[Person], connection: asyncpg.Connection
) -> None:
    async def talk(writer: Person) -> None:
        for turn in range(4):
            await writer.keep(
                *(
                    Draft(f"{writer.name}, turn {turn}, part {part}", session="s")
                    for part in range(3)
                )
            )

    await asyncio.gather(*(talk(writer) for writer in writers))

    positions = [
        row["position"]
        for row in await connection.fetch("select position from memories order by 1")
    ]
    assert positions == list(range(WRITERS * 4 * 3))


async def test_stores_in_one_namespace_wait_for_each_other_only_if_they_have_a_session(
    writers: list[Person], connection: asyncpg.Connection
) -> None:
    await writers[0].keep("the namespace is there")
    inside = connection.transaction()
    await inside.start()
    await connection.execute(
        "select pg_advisory_xact_lock(hashtextextended(id::text, 1)) from namespaces"
    )

    async with asyncio.timeout(STUCK):
        await writers[1].keep("without a session")
    numbering = asyncio.create_task(writers[2].keep(Draft("with one", session="s")))
    await waiting_for_a_lock(connection)
    await inside.rollback()

    assert len(await numbering) == 1


async def waiting_for_a_lock(connection: asyncpg.Connection, many: int = 1) -> None:
    waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with asyncio.timeout(STUCK):
        while await connection.fetchval(waiting) < many:
            await asyncio.sleep(0.01)


@pytest.fixture
def at_statement(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[int, Callable[[], object]], None]]:
    """Call a function during the n-th statement from now on."""
    rows = Session.rows
    row = Session.row
    left, act = -1, lambda: None

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            asyncio.get_running_loop().call_soon(act)

    async def counted_rows(self: Session, name: str, /, **values: object) -> Any:
        count()
        return await rows(self, name, **values)

    async def counted_row(self: Session, name: str, /, **values: object) -> Any:
        count()
        return await row(self, name, **values)

    def arm(statement: int, action: Callable[[], object]) -> None:
        nonlocal left, act
        left, act = statement, action  # type: ignore[assignment]

    monkeypatch.setattr(Session, "rows", counted_rows)
    monkeypatch.setattr(Session, "row", counted_row)
    yield arm
    left = -1


BATCH = [
    Draft(f"one of a batch {n}", session="s", idempotency_key=f"k{n}") for n in range(5)
]
STATEMENTS = 8  # between begin and commit


@pytest.mark.parametrize("statement", range(1, STATEMENTS + 1))
async def test_a_cancelled_store_is_complete_or_absent(
    database: Database,
    connection: asyncpg.Connection,
    at_statement: Any,
    statement: int,
) -> None:
    person = Person(MemoryContext.of(database, embedders.ByLetter()))
    storing = asyncio.create_task(person.keep(*BATCH))
    at_statement(statement, storing.cancel)

    with pytest.raises(asyncio.CancelledError):
        await storing

    assert await connection.fetchval("select count(*) from memories") == 0
    assert await connection.fetchval("select count(*) from namespaces") == 0
    assert len(await person.keep(*BATCH)) == len(BATCH), (
        "the connection it had is usable again"
    )
    await whole(connection)


async def test_a_store_cancelled_at_any_turn_of_the_loop_is_complete_or_absent(
    database: Database, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, embedders.ByLetter()))
    for turns in range(0, 60, 2):
        storing = asyncio.create_task(
            person.keep(*(f"turn {turns}: part {n}" for n in range(3)))
        )
        for _ in range(turns):
            await asyncio.sleep(0.0001 if turns > 20 else 0)
        storing.cancel()
        with suppress(asyncio.CancelledError):
            await storing

        kept = await connection.fetchval(
            "select count(*) from memories where starts_with(content, $1)",
            f"turn {turns}: ",
        )
        assert kept in (0, 3)
    await whole(connection)


async def test_a_store_cancelled_while_it_embeds_writes_nothing(
    database: Database, connection: asyncpg.Connection
) -> None:
    slow = embedders.Waiting()
    storing = asyncio.create_task(
        Person(MemoryContext.of(database, slow)).keep("never")
    )
    await slow.asked.wait()
    storing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await storing
    assert await connection.fetchval("select count(*) from namespaces") == 0


@pytest.mark.parametrize("statement", [1, 3, 4])
async def test_a_store_whose_connection_is_terminated_writes_nothing_and_reports_it(
    database: Database,
    connection: asyncpg.Connection,
    cluster: Any,
    at_statement: Any,
    statement: int,
) -> None:
    person = Person(MemoryContext.of(database, embedders.ByLetter()))
    await person.keep("stored earlier")
    name = await connection.fetchval("select current_database()")
    keep = asyncio.get_running_loop()
    cut = """
        select pg_terminate_backend(pid) from pg_stat_activity
        where datname = $1 and application_name = 'folklore'
    """
    cuts: list[asyncio.Task[Any]] = []
    at_statement(
        statement, lambda: cuts.append(keep.create_task(cluster.admin.fetch(cut, name)))
    )
    blocker = connection.transaction()
    await blocker.start()
    # No store gets past its insert, the fourth statement, before its connection is terminated.
    await connection.execute("lock table memories in share mode")

    with pytest.raises(DatabaseUnavailable):
        await person.keep(*BATCH)
    assert cuts, "and not by the time a statement may take"
    await asyncio.gather(*cuts)
    await blocker.rollback()

    assert await connection.fetchval("select count(*) from memories") == 1
    assert len(await person.keep(*BATCH)) == len(BATCH), "the pool connects anew"
    await whole(connection)


async def test_recalls_are_answered_during_a_store(writers: list[Person]) -> None:
    await writers[0].keep("the first words about harbours")
    going = asyncio.create_task(
        writers[0].keep(*(f"more about harbours {n}" for n in range(200)))
    )

    while not going.done():
        assert "the first words about harbours" in contents(
            await writers[1].recall("first words harbours", limit=100)
        )
    assert len(await going) == 200
