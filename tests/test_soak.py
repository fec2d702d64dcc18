"""The short form of `make soak`: several at work on one database at random, and afterwards everything fits together."""

from __future__ import annotations

import asyncio
from collections import Counter

import asyncpg
from benchmarks.soak import broken, prepare, work

WORKERS, STEPS = 5, 40


async def test_several_changing_everything_at_random_leave_a_whole_database(
    database_url: str, connection: asyncpg.Connection
) -> None:
    await prepare(database_url)

    tallies = await asyncio.gather(*(work(database_url, seed, steps=STEPS) for seed in range(WORKERS)))

    raised = sum((tally.raised for tally in tallies), Counter())
    assert sum(sum((tally.done + tally.refused).values()) for tally in tallies) == WORKERS * STEPS
    assert sum(raised.values()) > 0
    assert await broken(connection, raised) == []


async def test_what_does_not_fit_together_would_be_noticed(database_url: str, connection: asyncpg.Connection) -> None:
    await prepare(database_url)
    tally = await work(database_url, 1, steps=30)
    await connection.execute("update memories set revision = revision + 1 where source = 'counter-0'")
    vectorless = "delete from embeddings where memory_id = (select id from memories where source = 'counter-1')"
    await connection.execute(vectorless)

    wrong = await broken(connection, tally.raised + Counter({"counter-2": 1}))

    assert len(wrong) == 3
