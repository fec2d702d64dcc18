"""Composition root: settings become a running application."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from folklore import memory
from folklore.background import in_background
from folklore.callers import Caller
from folklore.client.project import project_namespace, working_directory
from folklore.client.surroundings import local_zone
from folklore.config import Settings
from folklore.disk import require_space
from folklore.errors import FolkloreError, still_starting
from folklore.memory import Facts
from folklore.new_ids import new_id
from folklore.ranking.weights import named_presets

if TYPE_CHECKING:
    from folklore.db.database import Database, QueryLogger
    from folklore.db.stores.events.usage import UsageEntry
    from folklore.jobs.scheduler import Scheduler
    from folklore.memory import MemoryContext, RequestContext, UsageRecorder
    from folklore.runtime import Runtime

# A request waits so long for a start: clients wait for a minute.
REQUEST_SECONDS = 25.0


class App:
    """A running application whose slow parts start in the background: engine, pool, migrations and model.

    Constructing it costs nothing, so that a server answers `tools/list` at once. `ready()` waits for the parts. A
    failed start is repeated by the next request, so that a database that returns is found again.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        log_query: QueryLogger | None = None,
        brief: bool = False,
    ) -> None:
        self.settings = settings
        self.brief = brief  # serves one command: nothing is prepared for others
        self._log_query = log_query
        self._starting: asyncio.Task[Runtime] | None = None
        self._jobs: asyncio.Task[None] | None = None
        # a request has come since the scheduler last looked
        self._used = asyncio.Event()
        self._pending = asyncio.Event()  # a request has seen pending embeddings
        self.session = str(new_id())  # names this process in the usage log
        # raises ConfigInvalid before anything starts
        named_presets(settings.ranking.presets)
        self.zone = local_zone(settings)
        self._projects: dict[str, str] = {}  # namespaces by directory

    @property
    def caller(self) -> Caller:
        """The user who started this process."""
        return Caller(
            author=self.settings.author, may_write=not self.settings.read_only
        )

    @property
    def retention(self) -> timedelta:
        """The time in which forgotten memories and deleted namespaces can be restored."""
        return timedelta(days=self.settings.retention_days)

    async def open(self, facts: Facts) -> RequestContext:
        """Return the context of one request, once the parts run.

        Raises DatabaseUnavailable, EngineFailed, ConfigInvalid.
        """
        self._used.set()
        parts = await self.ready(None if self.brief else REQUEST_SECONDS)
        from folklore.runtime import backup_files, model_of

        return memory.RequestContext(
            memory=parts.memory.view_of(facts.caller.access),
            caller=facts.caller,
            now=facts.now,
            zone=facts.zone,
            namespace=facts.namespace,
            project=facts.project,
            retention=self.retention,
            engine=parts.where,
            project_at=facts.project_at,
            scheduled=lambda: (
                [job.name for job in self.scheduler.scheduled]
                if self.settings.jobs.enabled
                else []
            ),
            note_pending=self._pending.set,
            backups=lambda: asyncio.to_thread(backup_files, self.settings),
            run_jobs=lambda names, dry_run: self.scheduler.run_now(
                names, dry_run=dry_run
            ),
            model_of=lambda given: model_of(
                self.settings, given, remote=facts.caller.token is not None
            ),
            clock=self.now,
            report=facts.report,
            moments=self.settings.moments,
            learn_cues=self.settings.learn_cues and not self.settings.read_only,
        )

    @cached_property
    def usage(self) -> UsageRecorder:
        """The usage record of this process; a read-only one writes nothing to the database."""
        if self.settings.read_only:
            return memory.UsageRecorder()

        async def write(entries: Sequence[UsageEntry]) -> list[UsageEntry]:
            return await (await self.ready()).usage.record(entries)

        return memory.UsageRecorder(memory.UsageQueue(write, session=self.session))

    def namespace(self) -> str:
        """Return the namespace of this process: of whose requests it counts, server/facts.py decides."""
        return self.settings.namespace or self._project

    @cached_property
    def _project(self) -> str:
        return project_namespace(working_directory(os.environ), self.settings.remote)

    async def repository_at(self, directory: str) -> str:
        """Return the namespace of the repository of a directory, whatever the setting; it is looked up once."""
        if directory not in self._projects:
            self._projects[directory] = await asyncio.to_thread(
                project_namespace, Path(directory), self.settings.remote
            )
        return self._projects[directory]

    def now(self) -> datetime:
        """Return the current time: the only clock of the application."""
        return datetime.now(UTC)

    def start(self) -> None:
        """Start the parts in the background."""
        if self._starting is None or (
            self._starting.done() and _failed(self._starting)
        ):
            self._starting = in_background(self._start(), "folklore-start")

    async def ready(self, seconds: float | None = None) -> Runtime:
        """Return the running parts, started if they are not.

        A caller that is cancelled, or has waited so long, does not cancel the start for the others. Raises
        DatabaseUnavailable, EngineFailed, DiskFull, ConfigInvalid; a later call tries again.
        """
        self.start()
        starting = self._starting  # another call may begin another start meanwhile
        assert starting is not None
        if (
            not starting.done()
            and not (await asyncio.wait({starting}, timeout=seconds))[0]
        ):
            if self.settings.database_url is None:
                from folklore.engine import require_none

                require_space(self.settings.home)
                require_none(self.settings.home)
            raise still_starting("database")
        return starting.result()

    async def memory(self) -> MemoryContext:
        """Return the memory of a request. Raises as `ready` does."""
        return (await self.ready(REQUEST_SECONDS)).memory

    @property
    def started(self) -> Runtime | None:
        """The running parts, or None before they run; starts nothing."""
        task = self._starting
        if task is None or not task.done() or _failed(task):
            return None
        return task.result()

    async def _start(self) -> Runtime:
        # It imports the database driver: a server answers tools/list before that is there.
        await asyncio.to_thread(import_module, "folklore.runtime")
        from folklore.runtime import Runtime

        return await Runtime.start(self.settings, self._log_query, brief=self.brief)

    def start_jobs(self) -> None:
        """Run background jobs from the first request on, unless they are disabled or the process is read-only."""
        if (
            self._jobs is None
            and self.settings.jobs.enabled
            and not self.settings.read_only
        ):
            self._jobs = in_background(self._run_jobs(), "folklore-jobs")

    async def _run_jobs(self) -> None:
        await self._used.wait()
        # the request reports it; the next one starts the application
        with suppress(FolkloreError):
            await self.ready()
        await self.scheduler.run_forever(self._used, self._pending)

    @cached_property
    def scheduler(self) -> Scheduler:
        """The scheduler of this process."""
        from folklore.jobs.scheduler import Scheduler
        from folklore.runtime import job_options

        options = job_options(self.settings)
        # A Postgres elsewhere has backups of its own.
        backed_up = self.settings.backup.keep > 0 and self.settings.database_url is None
        optional = frozenset(
            (*self.settings.jobs.optional, *(["backup"] if backed_up else []))
        )
        return Scheduler(self._job_database, options, optional, self.session, self.now)

    @asynccontextmanager
    async def _job_database(self) -> AsyncIterator[tuple[Database, MemoryContext]]:
        from folklore.runtime import job_database

        async with job_database(self.settings, await self.ready()) as pair:
            yield pair

    async def close(self) -> None:
        """Close everything, and stop what is starting."""
        if self._jobs is not None:
            from folklore.jobs.scheduler import cancel

            await cancel(self._jobs)
        if self._starting is None:
            return
        if not self._starting.done():
            self._starting.cancel()
        try:
            parts = await self._starting
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - the requests that waited have reported it
            return
        if "usage" in vars(self):
            await self.usage.close()
        await parts.close()


def _failed(task: asyncio.Task[Runtime]) -> bool:
    return task.cancelled() or task.exception() is not None


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[App]:
    """Open an application for the length of a block."""
    app = App(settings)
    try:
        yield app
    finally:
        await app.close()
