"""Short form of `make soak`: several workers change one database at random; afterwards its invariants hold."""

import asyncio
from collections import Counter

import asyncpg

from benchmarks.soak import prepare, violations, work

WORKERS = 5
STEPS = 40


async def test_random_changes_by_several_workers_keep_every_invariant(
    database_url: str, connection: asyncpg.Connection
) -> None:
    await prepare(database_url)

    tallies = await asyncio.gather(
        *(work(database_url, seed, steps=STEPS) for seed in range(WORKERS))
    )

    raised = sum((tally.raised for tally in tallies), Counter())
    assert (
        sum(sum((tally.done + tally.refused).values()) for tally in tallies)
        == WORKERS * STEPS
    )
    assert sum(raised.values()) > 0
    assert await violations(connection, raised) == []


async def test_a_violated_invariant_is_reported(
    database_url: str, connection: asyncpg.Connection
) -> None:
    await prepare(database_url)
    tally = await work(database_url, 1, steps=30)
    await connection.execute(
        "update memories set revision = revision + 1 where source = 'counter-0'"
    )
    vectorless = "delete from embeddings where memory_id = (select id from memories where source = 'counter-1')"
    await connection.execute(vectorless)

    found = await violations(connection, tally.raised + Counter({"counter-2": 1}))

    assert len(found) == 3
