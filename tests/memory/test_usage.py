"""The usage record: written after the answers, bounded, counted once, without delaying an answer."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg
from mcp import Client

from folklore.app import App
from folklore.callers import Caller
from folklore.config import Settings
from folklore.db.database import Database
from folklore.db.stores.events.usage import UsageEntry, UsageStore
from folklore.errors import DatabaseUnavailable
from folklore.mcp.server import build_server
from folklore.memory.context import MemoryContext
from folklore.memory.context.usage import UsageQueue, query_digest
from folklore.model import Answer
from folklore.new_ids import new_id
from tests.background_jobs import BackgroundJobs, field_of
from tests.doors import own_service
from tests.person import NOON, Person
from tests.waiting import STUCK

CALLER = Caller("tester")


async def added(queue: UsageQueue, person: Person, query: str) -> Answer:
    answer = await person.recall(query)
    queue.add(answer, query, caller=CALLER, now=NOON)
    return answer


def used(memory: object, **more: object) -> UsageEntry:
    values: dict[str, object] = {
        "namespace": "notes", "memory": memory, "answer": new_id(), "at": NOON, "rank": 1, "score": 0.5,
        "query": query_digest("?"), "session": None, "caller": "tester",
    }  # fmt: skip
    return UsageEntry(**(values | more))  # type: ignore[arg-type]


async def test_memories_in_an_answer_are_logged_with_rank_and_score_and_counted(
    app: App, client: Client, connection: asyncpg.Connection
) -> None:
    await client.call_tool(
        "memory_store",
        {"memories": [{"content": "red apple"}, {"content": "red apple pie today"}]},
    )
    await client.call_tool("memory_recall", {"query": "Red  apple"})
    await client.call_tool("search_keywords", {"query": "pie"})
    await client.call_tool("memory_recall", {"query": "*"})  # a listing
    await app.close()

    rows = await connection.fetch(
        "select u.*, m.content, m.recall_count, m.last_recalled_at"
        " from usage u join memories m on m.id = u.memory_id order by u.used_at, u.rank"
    )
    counted = [(row["content"], row["rank"], row["recall_count"]) for row in rows]
    assert counted == [("red apple", 1, 1), ("red apple pie today", 1, 1)], (
        "the weak second one only fills up"
    )
    assert {row["session"] for row in rows} == {app.session}
    assert {row["caller"] for row in rows} == {"tester"}
    assert rows[0]["query"] == query_digest("red apple") != rows[1]["query"]
    assert all(row["last_recalled_at"] is not None for row in rows)
    assert [row["score"] is None for row in rows] == [False, True], (
        "a search for words has no score"
    )
    held = await connection.fetch("select u::text as row from usage u")
    assert not any("apple" in row["row"] for row in held), "never the text of the query"


async def test_logging_takes_one_statement_a_namespace_however_many_answers(
    database: Database, person: Person, queries: list[str]
) -> None:
    ids = await person.keep(*(f"text {place}" for place in range(20)))
    await asyncio.sleep(0)
    queries.clear()

    left = await UsageStore(database).record(
        [used(id_, rank=rank) for id_ in ids for rank in range(1, 11)]
    )
    await asyncio.sleep(0)

    assert left == []
    assert (
        len([query for query in queries if query.startswith(("select", "with"))]) == 2
    )


async def test_an_entry_that_is_logged_again_or_late_counts_once_and_does_not_set_the_last_use_back(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")
    first = used(id_)
    late = used(id_, at=NOON - timedelta(hours=1))

    for entries in ([first], [late], [first, late]):
        assert await UsageStore(database).record(entries) == []

    assert await field_of(connection, id_, "last_recalled_at") == NOON
    assert await field_of(connection, id_, "recall_count") == 2


async def test_the_entry_of_a_locked_memory_is_returned_to_be_tried_again(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    held, free = await person.keep("held", "free")
    entries = [used(held), used(free)]
    async with connection.transaction(), asyncio.timeout(STUCK):
        await connection.fetch("select from memories where id = $1 for update", held)
        left = await UsageStore(database).record(entries)

    assert left == entries[:1]
    assert await UsageStore(database).record(left) == []
    assert [
        await field_of(connection, id_, "recall_count") for id_ in (held, free)
    ] == [1, 1]


async def test_an_entry_is_tried_three_times(person: Person) -> None:
    tried: list[UUID] = []
    first, second = await person.keep("a text", "another text")

    async def record(entries: Sequence[UsageEntry]) -> list[UsageEntry]:
        tried.extend(entry.memory for entry in entries)
        return [entry for entry in entries if entry.memory == first]

    queue = UsageQueue(record, session=None, delay=0)
    await added(queue, person, "text")
    await queue.close()

    assert (tried.count(first), tried.count(second)) == (3, 1)
    assert (queue.written, queue.dropped) == (1, 1)


async def test_an_erased_memory_does_not_stop_the_other_entries(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")
    erased = new_id()

    left = await UsageStore(database).record(
        [used(erased), used(id_), used(id_, namespace="gone")]
    )

    assert [entry.memory for entry in left] == [erased], (
        "to be tried again, like that of a locked memory"
    )
    assert await field_of(connection, id_, "recall_count") == 1


async def test_a_full_queue_drops_new_entries_and_counts_them(person: Person) -> None:
    await person.keep(*(f"text {place}" for place in range(10)))
    written: list[UsageEntry] = []

    async def record(entries: Sequence[UsageEntry]) -> list[UsageEntry]:
        written.extend(entries)
        return []

    queue = UsageQueue(record, session=None, delay=60, capacity=7)
    await added(queue, person, "text")

    assert (queue.written, queue.dropped) == (0, 3)
    await queue.close()
    assert (queue.written, queue.dropped, len(written)) == (7, 3, 7)
    assert [entry.rank for entry in written] == list(range(1, 8))


async def test_an_unavailable_database_drops_entries_and_keeps_the_answer(
    person: Person,
) -> None:
    await person.keep("a text")

    async def unavailable(_entries: Sequence[UsageEntry]) -> list[UsageEntry]:
        raise DatabaseUnavailable("The database does not answer.")

    queue = UsageQueue(unavailable, session=None, delay=0)
    answer = await added(queue, person, "text")
    await queue.close()

    assert len(answer.memories) == 1
    assert (queue.written, queue.dropped) == (0, 1)


async def test_closing_waits_for_a_slow_database_until_its_timeout(
    person: Person,
) -> None:
    await person.keep("a text")
    never = asyncio.Event()

    async def slow(_entries: Sequence[UsageEntry]) -> list[UsageEntry]:
        await never.wait()
        return []

    queue = UsageQueue(slow, session=None, delay=0)
    await added(queue, person, "text")
    async with asyncio.timeout(STUCK):
        await queue.close(timeout=0.05)

    assert (queue.written, queue.dropped) == (0, 1)


async def test_an_answer_never_waits_for_the_usage_table(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("a text")
    queue = UsageQueue(UsageStore(database).record, session=None, delay=0)
    async with connection.transaction():
        await connection.execute("lock table usage in access exclusive mode")
        async with asyncio.timeout(STUCK):
            for _ in range(20):
                await added(queue, person, "text")
                await asyncio.sleep(0)
    await queue.close()

    assert (queue.written, queue.dropped) == (20, 0)


async def test_a_read_only_server_logs_nothing(
    settings: Settings, person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("a text")
    app = App(settings.model_copy(update={"read_only": True}))
    async with Client(build_server(own_service(app))) as client:
        answer = await client.call_tool("memory_recall", {"query": "text"})
    assert answer.structured_content is not None
    assert len(answer.structured_content["memories"]) == 1
    await app.close()

    assert await connection.fetchval("select count(*) from usage") == 0
    assert await connection.fetchval("select sum(recall_count) from memories") == 0


async def test_stores_and_logging_at_once_end_without_a_deadlock(
    database: Database, person: Person, library: MemoryContext
) -> None:
    """Stores lock memories in the order of digests, the usage record in the order of ids."""
    texts = [f"text {place}" for place in range(60)]
    ids = await person.keep(*texts)
    usage = UsageStore(database)

    async def log_all(turn: int) -> None:
        left = [used(id_, rank=turn) for id_ in (ids if turn % 2 else ids[::-1])]
        for _ in range(50):
            left = await usage.record(left)
            if not left:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("entries are left after 50 tries")

    async with asyncio.timeout(STUCK):
        await asyncio.gather(
            *(log_all(turn) for turn in range(1, 7)),
            *(person.keep(*texts[:: (-1) ** turn]) for turn in range(6)),
        )

    found = await library.memories.get([(await library.find_namespaces([]))[0].id], ids)
    assert {memory.recall_count for _, memory in found} == {6}


async def test_the_job_retention_drops_old_entries(
    database: Database,
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
) -> None:
    (id_,) = await person.keep("a text")
    await UsageStore(database).record(
        [used(id_), used(id_, at=NOON + timedelta(days=100))]
    )
    jobs.now = NOON + timedelta(days=366)

    assert await jobs.dry_run("retention") == {"to_erase": 0, "usage_to_drop": 1}
    assert await jobs("retention") == {"usage_dropped": 1, "audit_dropped": 1}
    assert await connection.fetchval("select count(*) from usage") == 1
    assert await field_of(connection, id_, "recall_count") == 2, (
        "dropping an entry does not change the count"
    )
