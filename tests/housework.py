"""Upkeep for tests: a runner over a library, and a look at everything a database holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from folklore.db.database import Database
from folklore.db.stores.jobs import Chores
from folklore.jobs.all_jobs import named
from folklore.jobs.job import Chore, Job, Rules
from folklore.jobs.runner import Lease, Ran, Runner
from folklore.memory.context import MemoryContext
from tests.person import NOON

DAY = timedelta(days=1)


@dataclass
class Housekeeper:
    """`await housekeeper("expiry")` runs a chore; `now` stands still unless it is moved."""

    database: Database
    library: MemoryContext
    now: datetime = NOON
    rules: Rules = field(default_factory=lambda: Rules(pause=0))

    def runner(
        self, holder: str = "tester", lease: Lease = Lease(), now: Callable[[], datetime] | None = None
    ) -> Runner:
        clock = now or (lambda: self.now)
        job = Job(self.database, self.library, self.rules, clock)
        return Runner(Chores(self.database), job, holder=holder, lease=lease, now=clock)

    async def __call__(self, name: str) -> dict[str, int]:
        """Run it, insist that it went well, and say what was done."""
        ran = await self.run(named()[name])
        assert (ran.outcome, ran.error) == ("done", None)
        return {what: count for what, count in ran.done.items() if count}

    async def run(self, chore: Chore) -> Ran:
        return await self.runner().run(chore)

    async def rehearse(self, name: str) -> dict[str, int]:
        return dict((await self.runner().rehearse(named()[name])).done)


async def everything(connection: asyncpg.Connection) -> dict[str, list[str]]:
    """All rows of all tables of ours, as text."""
    tables = await connection.fetch(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1"
    )
    held = {}
    for (table,) in tables:
        rows = await connection.fetch(f"select t::text as row from {table} t order by 1")
        held[table] = [row["row"] for row in rows]
    return held


async def holding(connection: asyncpg.Connection, words: str) -> list[str]:
    """The tables in which some row holds these words."""
    return [table for table, rows in (await everything(connection)).items() if any(words in row for row in rows)]


async def field_of(connection: asyncpg.Connection, id_: Any, column: str) -> Any:
    """One column of a memory."""
    return await connection.fetchval(f"select {column} from memories where id = $1", id_)
