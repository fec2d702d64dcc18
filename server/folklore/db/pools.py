"""Connection pools of one Postgres database: three for the process's own role, three for the role of tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import asyncpg
from pgvector import HalfVector

from folklore.background import all_of, in_background
from folklore.db.distribute import silent_namespaces
from folklore.db.driver_errors import (
    DRIVER_ERRORS,
    connected,
    describe,
    translated_errors,
)
from folklore.db.session import Plans
from folklore.db.shards import Shards
from folklore.db.silent_nodes import SilentNodes
from folklore.db.sql_loader import statement
from folklore.errors import DatabaseUnavailable, FolkloreError, still_starting
from folklore.log import Outage

QueryLogger = Callable[[str], None]
Revive = Callable[[], Coroutine[Any, Any, object]]

# Search an HNSW index further than by default, and on until enough rows pass the filters; then search is exact.
_HNSW = {
    "hnsw.ef_search": "400",
    "hnsw.iterative_scan": "relaxed_order",
    "hnsw.max_scan_tuples": "5000",
}
# A generic plan is made for a namespace of average size. If one namespace holds most rows, or the tables were small
# when the plan was made, Postgres prefers a sequential scan of a whole table. Through an index a lookup reads one
# namespace. Vectors come from their index in order: sorting as many as Postgres expects would seem cheaper.
_INDEX_SCANS = {
    "kept": "set enable_seqscan = off",
    "scan": "set enable_seqscan = off; set enable_sort = off",
}
# On a cluster: a generic plan does not know the shard, and cannot be made for most statements. Where the settings of a
# transaction do not reach a node, row-level security returns no row, and no error. To hide shards, Citus tests each row
# of the catalogue: the lookup of types takes .7 s in place of .02.
_CITUS_BEFORE_TYPES = (
    "set plan_cache_mode = auto; set citus.propagate_set_commands = local;"
    " set citus.override_table_visibility = off"
)
# A statement for several shards of a node opens connections, which takes longer than it.
_CITUS_AFTER_TYPES = (
    "reset citus.override_table_visibility; set citus.max_cached_conns_per_worker = 4"
)
# A request waits so long for the embedded engine: a client waits for a minute, also for its statements.
_REVIVE_SECONDS = 20.0
# With fewer connections than this, scans share the pool "fresh".
_POOL_FOR_SCANS = 6
# Memory that building an index takes: in one process, enough for 200,000 vectors; in several, at least.
_KILOBYTES_ALONE = 256_000
_LEAST_KILOBYTES_SHARED = 100_000


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Connections at least and at most, and timeouts in seconds.

    Without `statement_cache` nothing is prepared and no setting of a session is used, as a pooler in transaction mode
    (pgbouncer) needs it.
    """

    minimum: int = 2
    maximum: int = 6
    connect_timeout: float = 10.0
    statement_timeout: float = 30.0
    statement_cache: bool = True


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """Connections of all pools: in use, idle, allowed; and requests that wait for one."""

    in_use: int
    idle: int
    waiting: int
    maximum: int


@dataclass(eq=False, repr=False, slots=True)  # addresses hold passwords
class Pools:
    """The pools of a process: three for its own role and, once a token is used, three for the role of tokens."""

    dsn: str
    limits: PoolLimits
    outage: Outage
    login_dsn: str | None = None
    log_query: QueryLogger | None = None
    revive: Revive | None = None
    shards: Shards = field(init=False)
    _pools: dict[tuple[bool, Plans], asyncpg.Pool] = field(default_factory=dict)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    _reviving: asyncio.Task[object] | None = None
    _waiting: int = 0

    def __post_init__(self) -> None:
        self.shards = Shards(SilentNodes(partial(silent_namespaces, self.dsn)))

    def beside(self, limits: PoolLimits) -> Pools:
        """Return pools of the same database, for the process's own role alone."""
        return Pools(self.dsn, limits, self.outage)

    def _address(self, tokens: bool) -> str:
        if tokens and self.login_dsn:
            return self.login_dsn
        return self.dsn

    async def open(self, *, tokens: bool) -> None:
        """Open the three pools for the role of tokens, or for the process's own. Raises DatabaseUnavailable."""
        sizes = _sizes(self.limits)
        pools: dict[Plans, asyncpg.Pool] = {}
        for plans, (least, most) in sizes.items():
            pools[plans] = self._new_pool(plans, least, most, tokens=tokens)
        with translated_errors():
            await _connect_all(pools.values())
        pools.setdefault("scan", pools["fresh"])
        for plans, pool in pools.items():
            self._pools[tokens, plans] = pool

    def _new_pool(
        self, plans: Plans, minimum: int, maximum: int, *, tokens: bool
    ) -> asyncpg.Pool:
        limits = self.limits
        server_settings = self._server_settings(plans)
        cached_statements = 0
        first_command = None
        # Settings need connections of our own; a pooler may also refuse those that it does not know.
        if limits.statement_cache:
            cached_statements = 100
            first_command = _INDEX_SCANS.get(plans)
            if plans != "kept":
                server_settings |= _HNSW
        return asyncpg.create_pool(
            self._address(tokens),
            min_size=minimum,
            max_size=maximum,
            timeout=limits.connect_timeout,
            command_timeout=limits.statement_timeout + 5,
            statement_cache_size=cached_statements,
            max_inactive_connection_lifetime=300,
            init=partial(self._prepare, first_command=first_command),
            reset=_keep_settings,
            server_settings=server_settings,
        )

    def _server_settings(self, plans: Plans) -> dict[str, str]:
        timeout = int(self.limits.statement_timeout * 1000)
        kind = "custom" if plans == "fresh" else "generic"
        return {
            "application_name": "folklore",
            "plan_cache_mode": f"force_{kind}_plan",
            "jit": "off",
            "statement_timeout": str(timeout),
            "timezone": "UTC",
        }

    async def _prepare(self, connection: Any, first_command: str | None = None) -> None:
        """Make a new connection know our types, and see whether it is one to a cluster. Raises DatabaseUnavailable."""
        if first_command is not None:
            await connection.execute(first_command)
        row = await connection.fetchrow(statement("server/vector_schema").sql)
        if row is None:
            raise DatabaseUnavailable(
                "The database has no pgvector extension.",
                hint="Run `folklore db migrate` with a role that may create it.",
            )
        if row["distributed"]:
            self.shards.distributed = True
            await connection.execute(_CITUS_BEFORE_TYPES)
        await _know_types(connection, row["schema"])
        if row["distributed"]:
            await connection.execute(_CITUS_AFTER_TYPES)
        log_query = self.log_query
        if log_query is not None:
            connection.add_query_logger(lambda record: log_query(record.query))

    async def connect(self, *, tokens: bool) -> asyncpg.Connection:
        """Open a connection outside the pools."""
        limits = self.limits
        connection = await asyncpg.connect(
            self._address(tokens),
            timeout=limits.connect_timeout,
            statement_cache_size=100 if limits.statement_cache else 0,
            server_settings=self._server_settings("fresh"),
        )
        with ExitStack() as after_failure:
            after_failure.callback(connection.terminate)
            await self._prepare(connection)
            after_failure.pop_all()
        return connection

    async def connect_to_build(
        self, shared_kilobytes: int | None
    ) -> asyncpg.Connection:
        """Open a connection outside the pools, for Database.build_session."""
        settings = {"application_name": "folklore", "statement_timeout": "0"}
        # a pooler may refuse settings that it does not know
        if self.limits.statement_cache:
            if shared_kilobytes is None:
                kilobytes = _KILOBYTES_ALONE
                settings["max_parallel_maintenance_workers"] = "0"
            else:
                kilobytes = max(shared_kilobytes, _LEAST_KILOBYTES_SHARED)
            settings["maintenance_work_mem"] = f"{kilobytes}kB"
        return await asyncpg.connect(
            self.dsn,
            timeout=self.limits.connect_timeout,
            statement_cache_size=0,
            server_settings=settings,
        )

    async def cancel_locked(self, pid: int, *, tokens: bool) -> bool:
        """Cancel the statement of a server process, if it waits for a lock, and return True if it did.

        On a connection outside the pools, all of which may be waiting.
        """
        address = self._address(tokens)
        seconds = self.limits.connect_timeout
        cancel = statement("server/cancel_locked").sql
        with suppress(FolkloreError):
            async with connected(
                address, seconds, command_timeout=seconds
            ) as connection:
                return bool(await connection.fetchval(cancel, pid))
        return False

    async def acquire(self, tokens: bool, plans: Plans) -> tuple[asyncpg.Pool, Any]:
        """Return a pool and one of its connections; the embedded engine is started if it has stopped.

        Raises DRIVER_ERRORS, DatabaseUnavailable.
        """
        if tokens and self._pools:
            await self._open_for_tokens()
        pool = self._pools.get((tokens, plans))
        if pool is None:
            raise DatabaseUnavailable("The database is not open.")
        period = self.outage.period
        try:
            connection = await self._acquire(pool)
        except TimeoutError as error:
            if pool.get_size() < pool.get_max_size():  # else every connection is in use
                self.outage.failed(describe(error), period)
            raise
        except (OSError, asyncpg.CannotConnectNowError) as error:
            connection = await self._acquire_again(pool, error, period)
        return pool, connection

    async def _open_for_tokens(self) -> None:
        """Open the pools for the role of tokens, once."""
        if (True, "kept") in self._pools:
            return
        async with self._opening:
            if (True, "kept") not in self._pools:
                await self.open(tokens=True)

    async def _acquire(self, pool: asyncpg.Pool) -> Any:
        # A timeout takes a task, 0.1 ms; an idle connection is there at once.
        if pool.get_idle_size():
            return await pool.acquire()
        self._waiting += 1
        try:
            return await pool.acquire(timeout=self.limits.connect_timeout)
        finally:
            self._waiting -= 1

    async def _acquire_again(
        self, pool: asyncpg.Pool, error: Exception, period: int
    ) -> Any:
        """Start the embedded engine, which stops when it is idle, and acquire again; nothing was sent yet."""
        if self.revive is None:
            self.outage.failed(describe(error), period)
            raise error
        try:
            await self._revived(self.revive)
            return await self._acquire(pool)
        except (FolkloreError, *DRIVER_ERRORS) as last:
            self.outage.failed(describe(last), period)
            raise

    async def _revived(self, revive: Revive) -> None:
        """Start the embedded engine once for all that wait for it; it goes on being started when they do not wait."""
        if self._reviving is None or self._reviving.done():
            self._reviving = in_background(revive(), "folklore-revive")
            # all may have left
            self._reviving.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )
        reviving = self._reviving  # another call may begin another one meanwhile
        finished, _ = await asyncio.wait({reviving}, timeout=_REVIVE_SECONDS)
        if not finished:
            raise still_starting("embedded Postgres")
        reviving.result()

    async def renew(self) -> None:
        """Start the embedded engine if it has stopped, and use new connections from now on."""
        if self.revive is None:
            return
        await self._revived(self.revive)
        for pool in set(self._pools.values()):
            await pool.expire_connections()

    def statistics(self) -> PoolStatistics:
        size = 0
        idle = 0
        maximum = 0
        for pool in set(self._pools.values()):
            size += pool.get_size()
            idle += pool.get_idle_size()
            maximum += pool.get_max_size()
        return PoolStatistics(size - idle, idle, self._waiting, maximum)

    async def close(self) -> None:
        pools = list(dict.fromkeys(self._pools.values()))
        self._pools.clear()
        for pool in pools:
            try:
                await asyncio.wait_for(pool.close(), timeout=3)
            except TimeoutError:
                pool.terminate()


def _sizes(limits: PoolLimits) -> dict[Plans, tuple[int, int]]:
    """Return the least and the most connections of each pool."""
    least = min(1, limits.minimum)
    if not limits.statement_cache or limits.maximum < _POOL_FOR_SCANS:
        fresh = max(1, limits.maximum // 2)
        kept = max(1, limits.maximum - fresh)
        return {"kept": (least, kept), "fresh": (least, fresh)}
    scan = limits.maximum // 3
    fresh = (limits.maximum - scan) // 2
    kept = limits.maximum - scan - fresh
    # A recall without filters needs no connection with fresh plans if there is a pool for scans.
    return {"kept": (least, kept), "fresh": (0, fresh), "scan": (least, scan)}


async def _know_types(connection: Any, schema: str) -> None:
    """Let a connection know the types that statements use; `schema` is that of pgvector."""
    await connection.set_type_codec(
        "halfvec",
        schema=schema,
        encoder=lambda vector: vector.to_binary(),
        decoder=HalfVector.from_binary,
        format="binary",
    )
    # asyncpg looks up array types in the catalogue when it first meets them, at 9 ms a lookup. One statement that
    # names all of them makes it one lookup, before the first request.
    types = statement("server/array_types")
    await connection.fetch(types.sql, *[None for _ in types.parameters])


async def _connect_all(pools: Collection[asyncpg.Pool]) -> None:
    """Open the first connections of pools at the same time; close all of them if one fails."""

    async def connect(pool: asyncpg.Pool) -> None:
        await pool

    with ExitStack() as after_failure:
        for pool in pools:
            after_failure.callback(_terminate, pool)
        await all_of(*map(connect, pools))
        after_failure.pop_all()


def _terminate(pool: asyncpg.Pool) -> None:
    with suppress(asyncpg.InterfaceError):  # one that was not opened
        pool.terminate()


async def _keep_settings(_connection: asyncpg.Connection) -> None:
    """Reset nothing: the default would be one more round trip each time."""
