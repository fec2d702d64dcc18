"""Orders of lists: pages over memories of every kind, in one namespace and several, are those of a sorted whole."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta

import asyncpg

from folklore.model import Draft, Memory
from tests.background_jobs import DAY
from tests.person import NOON, Person, ids

SPACES = ("one", "two", "three")


def trending(memory: Memory) -> datetime:
    recalled = (memory.last_recalled_at or memory.created_at).replace(
        minute=0, second=0, microsecond=0
    )
    latest = max(
        memory.occurred_at or memory.created_at,
        recalled
        if memory.last_recalled_at
        else datetime.min.replace(tzinfo=NOON.tzinfo),
    )
    weighed = (
        latest
        + ((0.5 if memory.importance is None else memory.importance) - 0.5) * 60 * DAY
    )
    return datetime.max.replace(tzinfo=NOON.tzinfo) if memory.pinned else weighed


ORDERS: dict[str, tuple[Callable[[Memory], datetime], bool]] = {
    "time_desc": (lambda memory: memory.occurred_at or memory.created_at, True),
    "time_asc": (lambda memory: memory.occurred_at or memory.created_at, False),
    "updated_desc": (lambda memory: memory.updated_at, True),
    "updated_asc": (lambda memory: memory.updated_at, False),
    "score": (trending, True),
}


async def test_pages_are_those_of_a_sorted_whole(
    person: Person, connection: asyncpg.Connection
) -> None:
    rng = random.Random(5)
    for number in range(40):
        at = person.at(NOON + rng.choice((0, number)) * timedelta(hours=7))
        draft = Draft(
            f"Fact {number}.", pinned=rng.random() < 0.1, importance=rng.choice((None, None, 0.25, 0.5, 1.0)),
            occurred_at=rng.choice((None, None, NOON - number * DAY)),
        )  # fmt: skip
        [id_] = await at.keep(draft, namespace=rng.choice(SPACES))
        if rng.random() < 0.3:
            await person.at(NOON + 30 * DAY).update(id_, summary="Changed.")
        if rng.random() < 0.3:
            later = NOON + rng.randrange(60) * DAY + timedelta(minutes=61)
            await connection.execute(
                "update memories set last_recalled_at = $1 where id = $2", later, id_
            )

    for sort, (key, newest) in ORDERS.items():
        for namespaces in (SPACES, ("one",), ("two",)):
            whole = (
                await person.list_memories(limit=1_000, namespaces=namespaces)
            ).memories
            expected = sorted(
                whole,
                key=lambda item: (key(item.memory), item.memory.id),
                reverse=newest,
            )
            listed = []
            cursor = None
            while True:
                page = await person.list_memories(
                    limit=3, sort=sort, cursor=cursor, namespaces=namespaces
                )
                listed += ids(page)
                if (cursor := page.cursor) is None:
                    break
            assert listed == [item.memory.id for item in expected], (sort, namespaces)
            assert len(expected) > 5
