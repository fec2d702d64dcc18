"""Runs chores, one process at a time each: takes the lease, keeps it while the work goes on, records how it ended."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Literal

import structlog

from folklore.db.stores.jobs import Chores, Finished, Outcome
from folklore.errors import FolkloreError
from folklore.jobs.cancellation import stopped
from folklore.jobs.job import Chore, Job

log = structlog.get_logger(__name__)

_RETRY = timedelta(minutes=10)
_LAST_WORDS = 3.0


@dataclass(frozen=True, slots=True)
class Lease:
    """How long a chore belongs to whoever took it, and how often that is renewed: a killed runner's is free after
    `lasts`. Clocks of servers may differ by less than that; even if they differ by more, every batch of every chore
    is safe to be done by two.
    """

    lasts: timedelta = timedelta(minutes=2)
    beat: float = 20.0


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a chore: `planned` is a dry run, `busy` means that another process is at it, `lost` that another
    took it over because this one did not renew its lease in time.
    """

    chore: str
    outcome: Outcome | Literal["planned", "busy", "lost"]
    done: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    error: str | None = None


class Runner:
    """One runner of one process; `holder` names it in the chores table."""

    def __init__(
        self, chores: Chores, job: Job, *, holder: str, lease: Lease = Lease(), now: Callable[[], datetime]
    ) -> None:
        self._chores = chores
        self._job = job
        self._holder = holder
        self._lease = lease
        self._now = now

    async def run_due(self, chores: Sequence[Chore]) -> list[Ran]:
        """Run those that are due and that nobody is at, one after the other; one that fails does not stop the others.

        Raises DatabaseUnavailable.
        """
        states = await self._chores.all()
        now = self._now()
        ran = []
        for chore in chores:
            state = states.get(chore.name)
            if state is None or state.next_due is None or state.next_due <= now:
                ran.append(await self.run(chore, forced=False))
        return ran

    async def rehearse(self, chore: Chore) -> Ran:
        """Say what a chore would do; writes nothing and needs no lease. Raises what the chore raises."""
        job = replace(self._job, dry_run=True, done={}, notes={})
        began = perf_counter()
        await chore.work(job)
        return Ran(chore.name, "planned", job.done, perf_counter() - began)

    async def run(self, chore: Chore, *, forced: bool = True) -> Ran:
        """Run a chore now (`forced`), or if it is due, unless another process is at it.

        A chore that fails is recorded and told, not raised. Raises DatabaseUnavailable if it cannot be taken.
        Cancelled, it rolls back the batch at hand, gives the chore back, due at once, and raises.
        """
        now = self._now()
        notes = await self._chores.claim(
            chore.name, self._holder, now=now, until=now + self._lease.lasts, forced=forced
        )
        if notes is None:
            return Ran(chore.name, "busy")
        job = replace(self._job, done={}, notes=notes)
        began = perf_counter()
        work = asyncio.create_task(_work(chore, job), name=f"folklore-upkeep-{chore.name}")
        beating = asyncio.create_task(self._beat(chore, job), name=f"folklore-lease-{chore.name}")
        try:
            await asyncio.wait({work, beating}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await stopped(work, beating)
            await self._give_back(chore, job, perf_counter() - began)
            raise
        seconds = perf_counter() - began
        if not work.done():
            await stopped(work, beating)
            log.warning("upkeep_lease_lost", chore=chore.name)
            return Ran(chore.name, "lost", job.done, seconds)
        await stopped(beating)
        return await self._record(chore, job, seconds, work.exception())

    async def _record(self, chore: Chore, job: Job, seconds: float, error: BaseException | None) -> Ran:
        now = self._now()
        words = None if error is None else _words(error)
        outcome: Outcome = "done" if error is None else "failed"
        due = now + (chore.every if error is None else min(chore.every, _RETRY))
        finished = Finished(outcome, seconds, job.done, due, job.notes, words)
        kept = await self._chores.finish(chore.name, self._holder, finished, now=now)
        return Ran(chore.name, outcome if kept else "lost", job.done, seconds, words)

    async def _give_back(self, chore: Chore, job: Job, seconds: float) -> None:
        """Say that the run was cancelled, if that can be said soon; else the lease ends by itself."""
        now = self._now()
        finished = Finished("cancelled", seconds, job.done, now, job.notes)
        with suppress(FolkloreError, TimeoutError):
            await asyncio.wait_for(self._chores.finish(chore.name, self._holder, finished, now=now), _LAST_WORDS)

    async def _beat(self, chore: Chore, job: Job) -> None:
        """Renew the lease until it is lost: to another, or because the database did not answer while it lasted."""
        until = self._now() + self._lease.lasts
        while True:
            await asyncio.sleep(self._lease.beat)
            now = self._now()
            try:
                if not await self._chores.renew(
                    chore.name, self._holder, until=now + self._lease.lasts, done=dict(job.done)
                ):
                    return
                until = now + self._lease.lasts
            except FolkloreError as error:
                log.info("upkeep_lease_not_renewed", chore=chore.name, reason=error.message)
                if self._now() >= until:
                    return


async def _work(chore: Chore, job: Job) -> None:
    await chore.work(job)


def _words(error: BaseException) -> str:
    """What went wrong, for people. Of errors that are not ours only kind and place: their words may hold a memory's."""
    if isinstance(error, FolkloreError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
