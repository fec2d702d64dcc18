"""Scheduler of the background jobs: runs each due job in one process at a time, under a lease in the jobs table."""

import asyncio
import json
import os
import socket
import traceback
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter

from folklore.contract.jobs import RunReport
from folklore.db.database import Database
from folklore.db.stores.upkeep.jobs import Jobs, RunRecord
from folklore.errors import FolkloreError, InvalidInput
from folklore.jobs.definitions import BY_NAME, JOBS
from folklore.jobs.job import Job, JobOptions, JobRun
from folklore.log import get_logger
from folklore.memory import MemoryContext
from folklore.model import JobOutcome, JobState

log = get_logger(__name__)

Connect = Callable[[], AbstractAsyncContextManager[tuple[Database, MemoryContext]]]

_RETRY = timedelta(minutes=10)
# A cancelled run has so many seconds to end its lease.
_FAREWELL_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Lease:
    """Time for which a runner holds a job, and the interval in seconds at which it renews that.

    The lease of a killed runner ends after `lasts`. Clocks of servers may differ by less than that; if they differ by
    more, two may run the same job, which costs time only: every batch of every job is safe to run twice.
    """

    lasts: timedelta = timedelta(minutes=2)
    renewed_every: float = 20.0


class Runner:
    """Runs jobs in this process; `holder` names it in the jobs table, `template` is copied for each run."""

    def __init__(
        self, template: JobRun, *, holder: str, lease: Lease = Lease()
    ) -> None:
        self._template = template
        self._jobs = Jobs(template.database)
        self._holder = holder
        self._lease = lease
        self._now = template.now

    async def run_due(
        self, jobs: Sequence[Job], forced: Collection[Job] = ()
    ) -> list[RunReport]:
        """Run the due and forced jobs in order; a failed one does not stop the others. Raises DatabaseUnavailable."""
        states = await self._jobs.all()
        now = self._now()
        reports = []
        for job in jobs:
            state = states.get(job.name)
            ahead = self._is_ahead(job, state, now)
            if ahead:
                log.warning("job_of_the_future", job=job.name)
            forcing = job in forced or ahead
            if forcing or _is_due(state, now):
                reports.append(await self.run(job, forced=forcing))
        return reports

    def _is_ahead(self, job: Job, state: JobState | None, now: datetime) -> bool:
        """Return True if a clock that was ahead wrote the last run: waiting for the next would take for ever."""
        if state is None:
            return False
        differing = self._lease.lasts
        if state.finished_at is not None and state.finished_at > now + differing:
            return True
        latest = now + job.every + differing
        return state.next_due is not None and state.next_due > latest

    async def dry_run(self, job: Job) -> RunReport:
        """Count the work of a job; write nothing and take no lease. Raises what the job raises."""
        run = replace(self._template, dry_run=True, done={}, notes={})
        began = perf_counter()
        await job.work(run)
        return RunReport(job.name, "planned", run.done, perf_counter() - began)

    async def run(self, job: Job, *, forced: bool = True) -> RunReport:
        """Run a job now (`forced`), or if it is due, unless another process holds it.

        A failure is recorded and reported, not raised. Raises DatabaseUnavailable if the job cannot be claimed. When
        cancelled, rolls back the present batch, ends the lease so that the job is due at once, and raises.
        """
        now = self._now()
        notes = await self._jobs.claim(
            job=job.name,
            holder=self._holder,
            now=now,
            until=now + self._lease.lasts,
            longest=now + 2 * self._lease.lasts,
            forced=forced,
        )
        if notes is None:
            return RunReport(job.name, "busy")
        run = replace(self._template, done={}, notes=json.loads(notes))
        began = perf_counter()
        work = asyncio.create_task(job.work(run), name=f"folklore-job-{job.name}")
        renewing = asyncio.create_task(
            self._renew(job, run), name=f"folklore-lease-{job.name}"
        )
        try:
            await asyncio.wait({work, renewing}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await cancel(work, renewing)
            await self._give_back(job, run, perf_counter() - began)
            raise
        seconds = perf_counter() - began
        if not work.done():
            await cancel(work, renewing)
            log.warning("job_lease_lost", job=job.name)
            return RunReport(job.name, "lost", run.done, seconds)
        await cancel(renewing)
        return await self._record(job, run, seconds, work.exception())

    async def _record(
        self, job: Job, run: JobRun, seconds: float, error: BaseException | None
    ) -> RunReport:
        """Record a run that ended by itself, and its error; the report says `lost` if another process has the job."""
        now = self._now()
        outcome: JobOutcome = "done"
        text = None
        next_run = now + job.every
        if error is not None:
            outcome = "failed"
            text = _error_text(error)
            next_run = now + min(job.every, _RETRY)
        record = RunRecord(outcome, seconds, run.done, next_run, run.notes, text)
        recorded = await self._jobs.finish(job.name, self._holder, record, now=now)
        return RunReport(
            job.name, outcome if recorded else "lost", run.done, seconds, text
        )

    async def _give_back(self, job: Job, run: JobRun, seconds: float) -> None:
        """Record that the run was cancelled if the database answers soon; otherwise the lease expires."""
        now = self._now()
        record = RunRecord("cancelled", seconds, run.done, now, run.notes)
        with suppress(FolkloreError, TimeoutError):
            await asyncio.wait_for(
                self._jobs.finish(job.name, self._holder, record, now=now),
                _FAREWELL_SECONDS,
            )

    async def _renew(self, job: Job, run: JobRun) -> None:
        """Renew the lease until another process has taken it or it has expired while the database did not answer."""
        until = self._now() + self._lease.lasts
        while True:
            await asyncio.sleep(self._lease.renewed_every)
            renewed_until = self._now() + self._lease.lasts
            try:
                if not await self._jobs.renew(
                    job=job.name,
                    holder=self._holder,
                    until=renewed_until,
                    done=run.done,
                ):
                    return
                until = renewed_until
            except FolkloreError as error:
                log.info("job_lease_not_renewed", job=job.name, reason=error.message)
                if self._now() >= until:
                    return


@dataclass(frozen=True, slots=True)
class Scheduler:
    """The background jobs of one process. `connect` opens a database with connections of its own, so that no request
    waits for one that a job holds; `optional` names the optional jobs to run.
    """

    connect: Connect
    options: JobOptions
    optional: frozenset[str]
    session: str
    now: Callable[[], datetime]

    @property
    def scheduled(self) -> list[Job]:
        """The jobs that run in the background."""
        return [job for job in JOBS if not job.optional or job.name in self.optional]

    def runner(self, database: Database, context: MemoryContext) -> Runner:
        """Return a runner of this process over a database."""
        holder = f"{socket.gethostname()}:{os.getpid()}:{self.session}"
        return Runner(JobRun(database, context, self.options, self.now), holder=holder)

    async def run_now(
        self, names: Sequence[str], *, dry_run: bool
    ) -> tuple[RunReport, ...]:
        """Run the jobs of these names, due or not; without names, those that run in the background.

        Raises InvalidInput for an unknown name, and in a dry run what a job raises.
        """
        unknown = [name for name in names if name not in BY_NAME]
        if unknown:
            raise InvalidInput(
                "jobs",
                f"{unknown[0]!r} does not exist.",
                hint=f"Use {', '.join(BY_NAME)}.",
            )
        jobs = [BY_NAME[name] for name in dict.fromkeys(names)] or self.scheduled
        async with self.connect() as (database, context):
            runner = self.runner(database, context)
            run = runner.dry_run if dry_run else runner.run
            return tuple([await run(job) for job in jobs])

    async def run_forever(
        self,
        used: asyncio.Event,
        pending: asyncio.Event,
        *,
        first: float = 60.0,
        every: float = 300.0,
    ) -> None:
        """Run due jobs every few minutes while the process is used, until cancelled.

        `first` and `every` are the seconds before the first pass, and between two. A request sets `used`; without one
        nothing runs, so that an idle embedded engine can stop. One that sees pending embeddings sets `pending`: they are
        made at once, and the first pass makes those that another process has left.
        """
        embeddings = BY_NAME["embeddings"]
        embeds = True  # whether the next pass makes embeddings, due or not
        wait = first
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    embeds = await pending.wait()
            wait = every
            await used.wait()
            used.clear()
            pending.clear()

            forced = [embeddings] if embeds else []
            try:
                async with self.connect() as (database, context):
                    runner = self.runner(database, context)
                    reports = await runner.run_due(self.scheduled, forced)
            except FolkloreError as error:  # the database is away; requests report that
                log.info("jobs_postponed", reason=error.message)
                continue

            busy = [report.job for report in reports if report.outcome == "busy"]
            embeds = embeddings.name in busy
            if embeds:
                wait = first  # until the process that makes them ends, or the lease of a killed one
            for report in reports:
                _log_report(report)


def _log_report(report: RunReport) -> None:
    write = log.warning if report.error else log.info
    write(
        "job",
        job=report.job,
        outcome=report.outcome,
        error=report.error,
        done=dict(report.done),
    )


async def cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks until they have ended; their errors are ignored.

    Once is not enough before Python 3.12: `asyncio.wait_for`, which the driver uses to close a connection, loses a
    cancellation that arrives together with its result, and the task would go on.
    """
    for task in tasks:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.5)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio logs that it never was


def _is_due(state: JobState | None, now: datetime) -> bool:
    return state is None or state.next_due is None or state.next_due <= now


def _error_text(error: BaseException) -> str:
    """Describe an error for users: only type and line of foreign errors, whose messages may quote a memory."""
    if isinstance(error, FolkloreError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        line = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}"
    else:
        line = ""
    return f"{type(error).__name__}{line}"
