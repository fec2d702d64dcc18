"""The usage log: written behind the answers, bounded, counted once, and never in anybody's way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import asyncpg
from mcp import Client

from folklore.app import App
from folklore.config import Settings, UpkeepSettings
from folklore.db.database import Database
from folklore.db.stores.usage import UsageStore, Used
from folklore.errors import DatabaseUnavailable
from folklore.mcp.server import build_server
from folklore.memory.context import MemoryContext
from folklore.memory.ids import new_id
from folklore.memory.usage_log import UsageLog, query_digest
from folklore.model import Answer, Caller
from tests.housework import Housekeeper, field_of
from tests.person import NOON, Person

CALLER = Caller("tester")


async def noted(log: UsageLog, person: Person, query: str) -> Answer:
    answer = await person.recall(query)
    log.note(answer, query, caller=CALLER, now=NOON)
    return answer


def used(memory: object, **more: object) -> Used:
    values: dict[str, object] = {
        "namespace": "notes",
        "memory": memory,
        "answer": new_id(),
        "at": NOON,
        "rank": 1,
        "score": 0.5,
        "query": query_digest("?"),
        "session": None,
        "caller": "tester",
    }
    return Used(**(values | more))  # type: ignore[arg-type]


async def test_what_was_put_into_an_answer_is_logged_with_rank_and_score_and_counted(
    app: App, client: Client, connection: asyncpg.Connection
) -> None:
    await client.call_tool("memory_store", {"memories": [{"content": "red apple"}, {"content": "red apple pie today"}]})
    await client.call_tool("memory_recall", {"query": "Red  apple"})
    await client.call_tool("search_keywords", {"query": "pie"})
    await client.call_tool("memory_recall", {"query": "*"})  # a listing
    await app.close()

    rows = await connection.fetch(
        "select u.*, m.content, m.recall_count, m.last_recalled_at"
        " from usage u join memories m on m.id = u.memory_id order by u.used_at, u.rank"
    )
    assert [(row["content"], row["rank"]) for row in rows] == [
        ("red apple", 1),
        ("red apple pie today", 2),
        ("red apple pie today", 1),
    ]
    assert [row["recall_count"] for row in rows] == [1, 2, 2]
    assert {row["session"] for row in rows} == {app.session}
    assert {row["caller"] for row in rows} == {"tester"}
    assert rows[0]["query"] == query_digest("red apple") != rows[2]["query"]
    assert all(row["last_recalled_at"] is not None and 0 < row["score"] <= 1 for row in rows)
    held = await connection.fetch("select u::text as row from usage u")
    assert not any("apple" in row["row"] for row in held), "never the question's text"


async def test_logging_takes_one_statement_a_namespace_however_many_answers(
    database: Database, person: Person, queries: list[str]
) -> None:
    ids = await person.keep(*(f"text {place}" for place in range(20)))
    await asyncio.sleep(0)
    queries.clear()

    left = await UsageStore(database).record([used(id_, rank=rank) for id_ in ids for rank in range(1, 11)])
    await asyncio.sleep(0)

    assert left == []
    assert len([query for query in queries if query.startswith(("select", "with"))]) == 2


async def test_what_is_logged_already_is_not_counted_twice(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")
    entries = [used(id_), used(id_)]

    await UsageStore(database).record(entries)
    await UsageStore(database).record(entries)

    assert await field_of(connection, id_, "recall_count") == 2


async def test_what_is_logged_late_does_not_set_the_last_use_back(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")

    for at in (NOON, NOON - timedelta(hours=1)):
        assert await UsageStore(database).record([used(id_, at=at)]) == []

    assert await field_of(connection, id_, "last_recalled_at") == NOON
    assert await field_of(connection, id_, "recall_count") == 2


async def test_a_memory_that_somebody_holds_is_passed_over_and_comes_back(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    held, free = await person.keep("held", "free")
    entries = [used(held), used(free)]
    async with connection.transaction(), asyncio.timeout(10):
        await connection.fetch("select from memories where id = $1 for update", held)
        left = await UsageStore(database).record(entries)

    assert left == entries[:1]
    assert await UsageStore(database).record(left) == []
    assert [await field_of(connection, id_, "recall_count") for id_ in (held, free)] == [1, 1]


async def test_what_came_back_is_tried_again_and_given_up_after_three_times(person: Person) -> None:
    tried: list[UUID] = []
    first, second = await person.keep("a text", "another text")

    async def record(entries: Sequence[Used]) -> list[Used]:
        tried.extend(entry.memory for entry in entries)
        return [entry for entry in entries if entry.memory == first]

    log = UsageLog(record, session=None, seconds=0)
    await noted(log, person, "text")
    await log.close()

    assert (tried.count(first), tried.count(second)) == (3, 1)
    assert (log.written, log.dropped) == (1, 1)


async def test_an_erased_memory_does_not_hold_up_the_others(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")

    erased = new_id()

    left = await UsageStore(database).record([used(erased), used(id_), used(id_, namespace="gone")])

    assert [entry.memory for entry in left] == [erased], "to be tried again, as one that somebody holds"
    assert await field_of(connection, id_, "recall_count") == 1


async def test_a_full_queue_drops_what_is_new_and_counts_it(person: Person) -> None:
    await person.keep(*(f"text {place}" for place in range(10)))
    written: list[Used] = []

    async def record(entries: Sequence[Used]) -> list[Used]:
        written.extend(entries)
        return []

    log = UsageLog(record, session=None, seconds=60, room=7)
    await noted(log, person, "text")

    assert (log.written, log.dropped) == (0, 3)
    await log.close()
    assert (log.written, log.dropped, len(written)) == (7, 3, 7)
    assert [entry.rank for entry in written] == list(range(1, 8))


async def test_a_database_that_is_away_loses_entries_and_nothing_else(person: Person) -> None:
    await person.keep("a text")

    async def away(_entries: Sequence[Used]) -> list[Used]:
        raise DatabaseUnavailable("away")

    log = UsageLog(away, session=None, seconds=0)
    answer = await noted(log, person, "text")
    await log.close()

    assert len(answer.memories) == 1
    assert (log.written, log.dropped) == (0, 1)


async def test_closing_waits_for_a_slow_database_only_so_long(person: Person) -> None:
    await person.keep("a text")
    never = asyncio.Event()

    async def slow(_entries: Sequence[Used]) -> list[Used]:
        await never.wait()
        return []

    log = UsageLog(slow, session=None, seconds=0)
    await noted(log, person, "text")
    async with asyncio.timeout(10):
        await log.close(timeout=0.05)

    assert (log.written, log.dropped) == (0, 1)


async def test_noting_never_waits(database: Database, person: Person, connection: asyncpg.Connection) -> None:
    """The whole table is locked, and answers go out all the same."""
    await person.keep("a text")
    log = UsageLog(UsageStore(database).record, session=None, seconds=0)
    async with connection.transaction():
        await connection.execute("lock table usage in access exclusive mode")
        async with asyncio.timeout(10):
            for _ in range(20):
                await noted(log, person, "text")
                await asyncio.sleep(0)
    await log.close()

    assert (log.written, log.dropped) == (20, 0)


async def test_a_read_only_server_and_one_that_is_told_not_to_logs_nothing(
    settings: Settings, person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("a text")
    for change in ({"read_only": True}, {"upkeep": UpkeepSettings(usage=False)}):
        app = App(settings.model_copy(update=change))
        async with Client(build_server(app.service)) as client:
            answer = await client.call_tool("memory_recall", {"query": "text"})
        assert answer.structured_content is not None
        assert len(answer.structured_content["memories"]) == 1
        await app.close()

    assert await connection.fetchval("select count(*) from usage") == 0
    assert await connection.fetchval("select sum(recall_count) from memories") == 0


async def test_stores_and_logging_at_once_end_without_a_deadlock(
    database: Database, person: Person, library: MemoryContext
) -> None:
    """Stores confirm in the order of digests, the log counts in the order of ids."""
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
        raise AssertionError("never done")

    async with asyncio.timeout(60):
        await asyncio.gather(
            *(log_all(turn) for turn in range(1, 7)), *(person.keep(*texts[:: (-1) ** turn]) for turn in range(6))
        )

    found = await library.memories.get([(await library.find_namespaces([]))[0].id], ids)
    assert {memory.recall_count for _, memory in found} == {6}


async def test_old_entries_are_dropped_by_retention(
    database: Database, person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")
    await UsageStore(database).record([used(id_), used(id_, at=NOON + timedelta(days=100))])
    housekeeper.now = NOON + timedelta(days=366)

    assert await housekeeper.rehearse("retention") == {"to_erase": 0, "usage_to_drop": 1}
    assert await housekeeper("retention") == {"usage_dropped": 1, "audit_dropped": 1}
    assert await connection.fetchval("select count(*) from usage") == 1
    assert await field_of(connection, id_, "recall_count") == 2, "what was counted stays counted"
