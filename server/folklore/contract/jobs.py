"""Background jobs: their last runs, and a run at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from folklore.contract.argument_types import Words
from folklore.contract.requests import Request, Returns
from folklore.model import JobOutcome, JobState

# By so much the clocks of two servers may differ.
CLOCKS_DIFFER = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class JobsInfo:
    """The rows of background jobs, the names of those that the server runs, and its time."""

    jobs: tuple[JobState, ...]
    scheduled: tuple[str, ...]
    at: datetime

    def row(self, job: str) -> JobState | None:
        """Return the row of a job; None if it never ran."""
        return next((row for row in self.jobs if row.name == job), None)

    def is_ahead(self, job: str) -> bool:
        """Return True if the last run of a job lies in the future: a clock was ahead when it ended."""
        row = self.row(job)
        ended = None if row is None else row.finished_at
        return ended is not None and ended > self.at + CLOCKS_DIFFER

    def state(self, job: str) -> str:
        """Return running, abandoned (its runner was killed), waiting, off, or the outcome of the last run."""
        row = self.row(job)
        scheduled = job in self.scheduled
        if row is not None and row.holder is not None:
            if row.leased_until is not None and row.leased_until >= self.at:
                return "running"
            return "abandoned"
        if row is None or row.outcome is None:
            return "waiting" if scheduled else "off"
        if scheduled:
            return row.outcome
        return f"{row.outcome} (off)"


class JobsRequest(Request, Returns[JobsInfo]):
    """Read the last run of each background job."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run. `planned`: a dry run; `busy`: another run holds the job, or it is not due; `lost`: another
    process took the job over, because this one did not renew its lease in time.
    """

    job: str
    outcome: JobOutcome | Literal["planned", "busy", "lost"]
    done: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None


class RunJobsRequest(Request, Returns[tuple[RunReport, ...]]):
    """Run background jobs now, due or not; without `jobs`, those that the server runs. `dry_run` counts the work."""

    jobs: Words = ()
    dry_run: bool = False
    lasting = True
