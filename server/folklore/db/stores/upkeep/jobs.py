"""The jobs table: one row for each background job, with its lease and the outcome of its last run."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from folklore.db.store import Store, affected, value
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


class Jobs(Store):
    """The jobs table. Every method is one statement."""

    claim = value(str)
    # From another pool than the job's own transactions, which may have taken every connection of theirs.
    renew = affected("fresh")

    async def finish(
        self, job: str, holder: str, record: RunRecord, *, now: datetime
    ) -> bool:
        """Record a run and end its lease; return False and record nothing if another process holds it by now."""
        row = await self._database.row(
            "jobs/finish", job=job, holder=holder, now=now, **asdict(record)
        )
        return row is not None

    async def all(self) -> dict[str, JobState]:
        """Return every job that ever ran, by name."""
        rows = await self._database.rows("jobs/read")
        return {
            row["name"]: JobState(
                **dict(row) | {"done": json.loads(row["done"] or "{}")}
            )
            for row in rows
        }
