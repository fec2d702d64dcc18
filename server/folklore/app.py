"""The composition root: settings become a running application."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from folklore.config import Settings
from folklore.db.stores.usage import UsageEntry, UsageStore
from folklore.errors import ConfigInvalid, EmbedderUnavailable, FolkloreError
from folklore.memory.ids import new_id
from folklore.memory.request_context import RequestContext
from folklore.memory.usage import UsageQueue, UsageRecorder
from folklore.model import Caller
from folklore.project import project_namespace, working_directory

if TYPE_CHECKING:
    from folklore.db.database import Database, PoolLimits, QueryLogger
    from folklore.embedding.protocol import Embedder
    from folklore.jobs.scheduler import Scheduler
    from folklore.memory.context import MemoryContext


@dataclass(frozen=True, slots=True)
class Running:
    """What a ready application holds."""

    database: Database
    library: MemoryContext
    where: str


class App:
    """A running application whose slow parts start beside the caller: engine, pool, migrations and model.

    Building it costs nothing, so that a server answers `tools/list` at once. `ready()` waits for the parts, and a
    start that failed is tried again by the next call, so that a database which comes back is found again.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        log_query: QueryLogger | None = None,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        self.settings = settings
        self._prepare = prepare  # called in the background before the slow parts are imported
        self._log_query = log_query
        self._starting: asyncio.Task[Running] | None = None
        self._jobs: asyncio.Task[None] | None = None
        self._warming: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()  # a request has come since the scheduler last looked
        self.session = str(new_id())  # this process, in the usage log
        try:
            self.zone = ZoneInfo(settings.time_zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ConfigInvalid(
                "time_zone", "is not known.", hint="Use a name such as Europe/Vienna or UTC."
            ) from error

    @property
    def caller(self) -> Caller:
        """Who calls on this process: the person who started it."""
        return Caller(author=self.settings.author, may_write=not self.settings.read_only)

    @property
    def retention(self) -> timedelta:
        """How long what was forgotten can be brought back."""
        return timedelta(days=self.settings.retention_days)

    @cached_property
    def host(self) -> RequestContext:
        """What the edges work with."""

        async def library() -> MemoryContext:
            self._asked.set()
            return (await self.ready()).library

        return RequestContext(
            library=library,
            caller=lambda: self.caller,
            now=self.now,
            namespace=self.namespace,
            zone=self.zone,
            engine="embedded" if self.settings.database_url is None else "server",
            retention=self.retention,
            usage=self.usage,
        )

    @cached_property
    def usage(self) -> UsageRecorder:
        """The usage record of this process; a read-only one writes nothing to the database."""
        if self.settings.read_only:
            return UsageRecorder()

        async def write(entries: Sequence[UsageEntry]) -> list[UsageEntry]:
            return await UsageStore((await self.ready()).database).record(entries)

        return UsageRecorder(UsageQueue(write, session=self.session))

    def namespace(self) -> str:
        """Return where to write when a call names none; callers over HTTP have their own rule (http/team.py)."""
        return self.settings.namespace or self._project

    @cached_property
    def _project(self) -> str:
        return project_namespace(working_directory(os.environ))

    def now(self) -> datetime:
        """The one clock."""
        return datetime.now(UTC)

    def start(self) -> None:
        """Begin to get ready, beside whatever the caller does next."""
        if self._starting is None or (self._starting.done() and _failed(self._starting)):
            self._starting = asyncio.create_task(self._start(), name="folklore-start")

    async def ready(self) -> Running:
        """The running parts. Raises DatabaseUnavailable, EngineFailed, ConfigInvalid; a later call tries again.

        A caller that is cancelled does not end the start for the others.
        """
        self.start()
        assert self._starting is not None
        return await asyncio.shield(self._starting)

    @property
    def here(self) -> Running | None:
        """The running parts if they are there; waits for nothing and starts nothing."""
        task = self._starting
        return None if task is None or not task.done() or _failed(task) else task.result()

    async def _start(self) -> Running:
        # In a thread: numpy, asyncpg and what stands on them are a fifth of a second of imports.
        await asyncio.to_thread(self._prepare)
        await asyncio.to_thread(_import_the_slow_rooms)
        from folklore.db.database import Database
        from folklore.db.migrate import migrate
        from folklore.db.stores.models import Models
        from folklore.embedding.factory import build, wanted
        from folklore.embedding.reranker import choose_reranker
        from folklore.memory.context import MemoryContext
        from folklore.memory.models.active_model import ActiveModel, ModelSource

        named = wanted(self.settings.embedding)
        to_build = partial(build, settings=self.settings.embedding, home=self.settings.home)
        embedder = None if named is None else to_build(named)
        reranker = choose_reranker(self.settings.reranker)
        # Beside everything: a service that does not answer must not hold up those who can do without.
        self._warming = asyncio.create_task(_warm(embedder), name="folklore-warm")
        dsn, where = await self.dsn()
        await migrate(dsn)
        settings = self.settings.database
        limits = self._limits(settings.pool_min, settings.pool_max)
        revive = self._revive if where == "embedded" else None
        login = None if settings.login_url is None else settings.login_url.get_secret_value()
        database = Database(dsn, limits, self._log_query, revive, login)
        await database.open()
        active_model = ActiveModel(embedder, ModelSource(Models(database), named, to_build))
        await active_model.refresh()
        return Running(
            database, MemoryContext.of(database, active_model, reranker, secrets=self.settings.secrets), where
        )

    def _limits(self, minimum: int, maximum: int) -> PoolLimits:
        from folklore.db.database import PoolLimits

        settings = self.settings.database
        return PoolLimits(
            minimum=minimum,
            maximum=maximum,
            connect_timeout=settings.connect_timeout_seconds,
            statement_timeout=settings.statement_timeout_seconds,
            statement_cache=settings.statement_cache,
        )

    async def _revive(self) -> None:
        await self.dsn()

    async def dsn(self) -> tuple[str, str]:
        """The address of the database, the embedded engine started if it is the one, and its name for people."""
        url = self.settings.database_url
        if url is not None:
            return url.get_secret_value(), "server"
        from folklore.engine import Engine

        engine = Engine(
            self.settings.home,
            idle_minutes=self.settings.engine.idle_minutes,
            shared_buffers=self.settings.engine.shared_buffers,
        )
        return await asyncio.to_thread(engine.start), "embedded"

    def start_jobs(self) -> None:
        """Run background jobs from the first request on, unless they are disabled or the process is read-only."""
        if self._jobs is None and self.settings.jobs.enabled and not self.settings.read_only:
            self._jobs = asyncio.create_task(self._run_jobs(), name="folklore-jobs")

    async def _run_jobs(self) -> None:
        await self._asked.wait()
        with suppress(FolkloreError):  # the request reports it; the next one starts the application
            await self.ready()
        await self.scheduler.run_forever(self._asked)

    @cached_property
    def scheduler(self) -> Scheduler:
        """The scheduler of this process."""
        from folklore.jobs.job import JobOptions
        from folklore.jobs.scheduler import Scheduler

        settings = self.settings.jobs
        options = JobOptions(
            retention=self.retention, keep=timedelta(days=settings.keep_days), hnsw_from=settings.hnsw_from
        )
        return Scheduler(self._apart, options, frozenset(settings.optional), self.session, self.now)

    @asynccontextmanager
    async def _apart(self) -> AsyncIterator[tuple[Database, MemoryContext]]:
        """Open the database with connections of its own, so that no request waits for one that a job holds."""
        from folklore.db.database import Database
        from folklore.memory.context import MemoryContext

        running = await self.ready()
        dsn, _ = await self.dsn()
        database = Database(dsn, self._limits(minimum=0, maximum=4))
        await database.open()
        try:
            yield database, MemoryContext.of(database, running.library.embedder)
        finally:
            await database.close()

    async def close(self) -> None:
        """Let go of everything; what is half started is stopped."""
        if self._jobs is not None:
            from folklore.jobs.scheduler import cancel

            await cancel(self._jobs)
        if self._starting is None:
            return
        if not self._starting.done():
            self._starting.cancel()
        if self._warming is not None:
            self._warming.cancel()
            await asyncio.wait({self._warming})
        try:
            running = await self._starting
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 - its caller has been told, or nobody waited
            return
        await self.usage.close()
        await running.database.close()
        await running.library.active_model.close()
        if running.library.reranker is not None:
            await running.library.reranker.close()


def _failed(task: asyncio.Task[Running]) -> bool:
    return task.cancelled() or task.exception() is not None


def _import_the_slow_rooms() -> None:
    import folklore.db.database
    import folklore.db.migrate
    import folklore.memory.recall.pipeline
    import folklore.memory.records.store  # noqa: F401


async def _warm(embedder: Embedder | None) -> None:
    if embedder is None:
        return
    with suppress(EmbedderUnavailable):  # recall degrades and store owes the vector; both say so
        await embedder.probe()


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[App]:
    """An application for the length of a block."""
    app = App(settings)
    try:
        yield app
    finally:
        await app.close()
