"""Background jobs for tests: run one by hand, and look at everything a database holds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import asyncpg

from folklore.contract.jobs import RunReport
from folklore.db.database import Database
from folklore.jobs.definitions import BY_NAME
from folklore.jobs.job import Job, JobOptions, JobRun
from folklore.jobs.scheduler import Lease, Runner
from folklore.memory.context import MemoryContext
from tests.person import NOON

DAY = timedelta(days=1)


@dataclass
class BackgroundJobs:
    """`await jobs("expiry")` runs a job; `now` changes only by assignment."""

    database: Database
    context: MemoryContext
    now: datetime = NOON
    options: JobOptions = field(default_factory=lambda: JobOptions(pause=0))

    def new_run(self, now: Callable[[], datetime] | None = None) -> JobRun:
        return JobRun(
            self.database, self.context, self.options, now or (lambda: self.now)
        )

    def runner(
        self,
        holder: str = "tester",
        lease: Lease = Lease(),
        now: Callable[[], datetime] | None = None,
    ) -> Runner:
        return Runner(self.new_run(now), holder=holder, lease=lease)

    async def __call__(self, name: str) -> dict[str, int]:
        """Run a job, check that it succeeded, and return its counts other than 0."""
        report = await self.run(BY_NAME[name])
        assert (report.outcome, report.error) == ("done", None)
        return {what: count for what, count in report.done.items() if count}

    async def run(self, job: Job) -> RunReport:
        return await self.runner().run(job)

    async def dry_run(self, name: str) -> dict[str, int]:
        return dict((await self.runner().dry_run(BY_NAME[name])).done)


async def everything(connection: asyncpg.Connection) -> dict[str, list[str]]:
    """Return all rows of all tables of ours, as text."""
    tables = await connection.fetch(
        "select relname from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' order by 1"
    )
    held = {}
    for (table,) in tables:
        rows = await connection.fetch(
            f"select t::text as row from {table} t order by 1"
        )
        held[table] = [row["row"] for row in rows]
    return held


async def holding(connection: asyncpg.Connection, words: str) -> list[str]:
    """Return the tables in which a row contains these words."""
    return [
        table
        for table, rows in (await everything(connection)).items()
        if any(words in row for row in rows)
    ]


async def field_of(connection: asyncpg.Connection, id_: Any, column: str) -> Any:
    """Return one column of a memory."""
    return await connection.fetchval(
        f"select {column} from memories where id = $1", id_
    )
