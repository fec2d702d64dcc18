"""The parts of a running application: engine, pool, active model, jobs. Imports the database driver and numpy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from folklore.backup import Store, archives, upgrade_engine
from folklore.config import Settings, expanded
from folklore.contract.health import BackupInfo
from folklore.db.database import Database, PoolLimits, QueryLogger
from folklore.db.migrate import migrate
from folklore.db.stores.events.usage import UsageStore
from folklore.db.stores.models import Models
from folklore.disk import DataGuard, require_space
from folklore.embedding import (
    Embedder,
    ModelChoice,
    build_embedder,
    changed_settings,
    configured_choice,
    configured_reranker,
)
from folklore.engine import Engine, EnginePaths, OlderData
from folklore.errors import EmbedderUnavailable
from folklore.jobs.job import JobOptions
from folklore.memory import ActiveModel, Build, MemoryContext, ModelSource
from folklore.ranking.weights import named_presets

# Seconds that a store waits for its embeddings, by which similar memories are found, and the end of a process for those
# that stores did not wait for.
_EMBEDDING_WAIT = 0.5
_FAREWELL = 2.0
# A model is loaded when a request needs it, or so long after the start: the hook of a session's start, which waits for
# the server, needs none, and the load would take the processor from it.
_WARM_AFTER = 1.0
# Connections of background jobs.
_JOB_CONNECTIONS = 4


@dataclass(frozen=True, slots=True)
class Runtime:
    """The running parts. `where` is "embedded" or "server"; `warming` loads the embedding model."""

    database: Database
    memory: MemoryContext
    usage: UsageStore
    where: str
    warming: asyncio.Task[None]

    @classmethod
    async def start(
        cls, settings: Settings, log_query: QueryLogger | None, *, brief: bool = False
    ) -> Runtime:
        """Start engine and pool, migrate, and look up the active model; for a `brief` process, not before its use.

        Raises DatabaseUnavailable, EngineFailed, ConfigInvalid.
        """
        choice = configured_choice(settings.embedding, settings.home)
        build = partial(build_embedder, settings=settings.embedding, home=settings.home)
        embedder = None if choice is None else build(choice)
        # In the background: an unreachable service must not delay what works without it.
        auto = settings.embedding.provider == "auto"
        # which a database may not have
        late = auto and choice is not None and choice.provider == "minilm"
        warming = asyncio.create_task(
            _warm(embedder, skip=brief or late), name="folklore-warm"
        )
        dsn, where = await database_address(settings)
        await migrate(dsn)
        database = _primary(settings, dsn, where, log_query, brief)
        await database.open()
        active_model = ActiveModel(
            embedder, ModelSource(Models(database), choice, build, auto)
        )
        if not brief:
            await active_model.refresh()
            if late:
                warming = asyncio.create_task(
                    _warm(active_model.embedder), name="folklore-warm"
                )
        reranker = configured_reranker(settings.reranker)
        presets = named_presets(settings.ranking.presets)
        memory = MemoryContext.of(
            database,
            active_model,
            reranker,
            secrets=settings.secrets,
            presets=presets,
            embedding_wait=None if brief else _EMBEDDING_WAIT,
        )
        return cls(database, memory, UsageStore(database), where, warming)

    async def close(self) -> None:
        """Close connections and models."""
        self.warming.cancel()
        await asyncio.wait({self.warming})
        await self.memory.finish(_FAREWELL)
        await self.database.close()
        await self.memory.active_model.close()
        if self.memory.reranker is not None:
            await self.memory.reranker.close()


def model_of(
    settings: Settings, properties: Mapping[str, str], remote: bool
) -> tuple[ModelChoice | None, Build]:
    """Return the model of the settings with these properties of `embedding`, and what builds an embedder."""
    configured = settings.embedding
    # a key without an address is not for one that a caller elsewhere names
    if remote and configured.url is None:
        configured = configured.model_copy(update={"api_key": None})
    changed = changed_settings(configured, properties)
    build = partial(build_embedder, settings=changed, home=settings.home)
    return configured_choice(changed, settings.home), build


def _primary(
    settings: Settings, dsn: str, where: str, log_query: QueryLogger | None, brief: bool
) -> Database:
    new = partial(
        Database,
        dsn,
        _limits(settings, 0 if brief else 2),
        log_query,
        login_dsn=_login_dsn(settings),
    )
    if where != "embedded":
        return new()
    guard = DataGuard(EnginePaths(settings.home).data)
    revive = partial(_revive, settings, guard)
    space = partial(require_space, settings.home)
    return new(revive=revive, require_space=space, require_data=guard.require)


def _limits(settings: Settings, minimum: int) -> PoolLimits:
    return PoolLimits(
        minimum,
        settings.database.pool_max,
        statement_cache=settings.database.statement_cache,
    )


def _login_dsn(settings: Settings) -> str | None:
    if settings.database.login_url is None:
        return None
    return settings.database.login_url.get_secret_value()


@asynccontextmanager
async def job_database(
    settings: Settings, runtime: Runtime
) -> AsyncIterator[tuple[Database, MemoryContext]]:
    """Open the database with connections of its own, so that no request waits for one that a job holds."""
    # starts the embedded engine, which stops when it is idle
    await database_address(settings, may_create=False)
    limits = replace(_limits(settings, 0), maximum=_JOB_CONNECTIONS)
    async with runtime.database.beside(limits) as database:
        yield database, MemoryContext.of(database, runtime.memory.embedder)


def job_options(settings: Settings) -> JobOptions:
    """Return the options of background jobs."""
    return JobOptions(
        retention=timedelta(days=settings.retention_days),
        keep=timedelta(days=settings.jobs.keep_days),
        hnsw_from=settings.jobs.hnsw_from,
        backed_up=partial(backed_up_store, settings),
        backups=settings.backup.keep,
    )


async def backed_up_store(settings: Settings) -> Store:
    """Return the database with the folder of its backups; the embedded engine is started if it is used."""
    address, where = await database_address(settings)
    disk = settings.home if where == "embedded" else None
    return Store(address, backup_folder(settings), disk)


def backup_folder(settings: Settings) -> Path:
    """Return the folder of backups: the setting, else `backups` in the home."""
    if settings.backup.folder is None:
        return settings.home / "backups"
    return expanded(settings.backup.folder)


def backup_files(settings: Settings) -> tuple[BackupInfo, ...]:
    """Return the backups in that folder, newest first."""
    return tuple(
        BackupInfo(
            archive.path.name,
            archive.manifest.created_at,
            archive.manifest.contents.memories,
            archive.size,
            archive.verified_at,
        )
        for archive in archives(backup_folder(settings))
    )


async def database_address(
    settings: Settings, *, may_create: bool = True
) -> tuple[str, str]:
    """Return the DSN of the database, and "embedded" or "server"; the embedded engine is started if it is used."""
    if settings.database_url is not None:
        return settings.database_url.get_secret_value(), "server"
    engine = Engine(
        settings.home, idle_minutes=settings.engine.idle_minutes, may_create=may_create
    )
    return await asyncio.to_thread(start_engine, engine), "embedded"


def start_engine(engine: Engine, *, new: bool = False) -> str:
    """Start the engine and return the address of its database; upgrade data of an older major version before.

    Blocks. Raises EngineFailed, DiskFull; the data is then as it was.
    """
    try:
        return engine.start(new=new)
    except OlderData:
        upgrade_engine(engine)
        return engine.start(new=new)


async def _revive(settings: Settings, guard: DataGuard) -> None:
    """Start the engine again. Raises DataMissing if its data was removed."""
    await database_address(settings, may_create=False)
    guard.note()


async def _warm(embedder: Embedder | None, *, skip: bool = False) -> None:
    if embedder is not None and not skip:
        await asyncio.sleep(_WARM_AFTER)
        # recall degrades, and the embeddings of stores are pending
        with suppress(EmbedderUnavailable):
            await embedder.probe()
