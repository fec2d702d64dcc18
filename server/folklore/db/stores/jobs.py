"""The jobs table: one row for each background job, with its lease and the outcome of its last run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from folklore.db.database import Database
from folklore.model import JobOutcome, JobState, JsonObject


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The outcome of a run as it is recorded; the next run receives `notes`."""

    outcome: JobOutcome
    seconds: float
    done: Mapping[str, int]
    next_due: datetime
    notes: JsonObject
    error: str | None = None


class Jobs:
    """The jobs table. Every method is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, job: str, holder: str, *, now: datetime, until: datetime, forced: bool = False
    ) -> dict[str, object] | None:
        """Lease a job that is free and due (`forced`: due or not) and return its notes, or None if it is not.

        Of two claims at the same time, the second waits for the commit of the first and gets None.
        """
        row = await self._database.row("jobs/claim", job=job, holder=holder, now=now, until=until, forced=forced)
        if row is None:
            return None
        notes: dict[str, object] = {} if row["notes"] is None else json.loads(row["notes"])
        return notes

    async def renew(self, job: str, holder: str, *, until: datetime, done: Mapping[str, int]) -> bool:
        """Extend the lease of a job; return False if another process holds it by now."""
        # From another pool than the job's own transactions, which may have taken every connection of theirs.
        row = await self._database.row(
            "jobs/renew", "fresh", job=job, holder=holder, until=until, done=json.dumps(dict(done))
        )
        return row is not None

    async def finish(self, job: str, holder: str, record: RunRecord, *, now: datetime) -> bool:
        """Record a run and end its lease; return False and record nothing if another process holds it by now."""
        row = await self._database.row(
            "jobs/finish",
            job=job,
            holder=holder,
            now=now,
            seconds=record.seconds,
            outcome=record.outcome,
            done=json.dumps(dict(record.done)),
            error=record.error,
            next_due=record.next_due,
            notes=json.dumps(dict(record.notes)),
        )
        return row is not None

    async def all(self) -> dict[str, JobState]:
        """Return every job that ever ran, by name."""
        rows = await self._database.rows("jobs/read")
        return {row["name"]: JobState(**dict(row) | {"done": json.loads(row["done"] or "{}")}) for row in rows}
