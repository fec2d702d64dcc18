"""Connection pools of one Postgres database."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    suppress,
)
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import asyncpg
from pgvector import HalfVector

from folklore.background import all_of, in_background
from folklore.db.distribute import silent_namespaces
from folklore.db.driver_errors import (
    DRIVER_ERRORS,
    closed_after,
    connected,
    describe,
    translated_errors,
)
from folklore.db.roles import Mode, TokenTransaction
from folklore.db.session import PinnedSession, Plans, PooledSession, Row, Session
from folklore.db.shards import Shards
from folklore.db.silent_nodes import SilentNodes
from folklore.db.sql_loader import statement
from folklore.errors import (
    DatabaseUnavailable,
    DataMissing,
    FolkloreError,
    still_starting,
)
from folklore.log import Outage

__all__ = [
    "Database",
    "DryRun",
    "Moment",
    "Plans",
    "PoolLimits",
    "PoolStatistics",
    "QueryLogger",
    "Row",
    "Session",
]


QueryLogger = Callable[[str], None]
Revive = Callable[[], Coroutine[Any, Any, object]]

_KEY = re.compile(r"[0-9a-f]{64}")

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
# A request waits so long for the embedded engine: a client waits for a minute, also for its statements.
_REVIVE_SECONDS = 20.0
# With fewer connections than this, scans share the pool "fresh".
_POOL_FOR_SCANS = 6
# Kilobytes that building an index takes: in one process, enough for 200,000 vectors; in several, at least.
_ALONE = 256_000
_SHARED = 100_000


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
class _Pools:
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

    def beside(self, limits: PoolLimits) -> _Pools:
        """Return pools of the same database, for the process's own role alone."""
        return _Pools(self.dsn, limits, self.outage)

    def _address(self, tokens: bool) -> str:
        return (self.login_dsn if tokens else None) or self.dsn

    async def open(self, *, tokens: bool) -> None:
        limits = self.limits
        if limits.statement_cache and limits.maximum >= _POOL_FOR_SCANS:
            scan = limits.maximum // 3
        else:
            scan = 0
        fresh = max(1, (limits.maximum - scan) // 2)
        size = max(1, limits.maximum - scan - fresh)
        least = min(1, limits.minimum)
        pools: dict[Plans, asyncpg.Pool] = {
            "kept": self._new_pool("kept", least, size, tokens=tokens),
            # A recall without filters needs no connection with fresh plans if there is a pool for scans.
            "fresh": self._new_pool(
                "fresh", 0 if scan else least, fresh, tokens=tokens
            ),
        }
        if scan:
            pools["scan"] = self._new_pool("scan", least, scan, tokens=tokens)
        with translated_errors():
            await _connect_all(pools.values())
        pools.setdefault("scan", pools["fresh"])
        self._pools.update({(tokens, plans): pool for plans, pool in pools.items()})

    def _new_pool(
        self, plans: Plans, minimum: int, maximum: int, *, tokens: bool
    ) -> asyncpg.Pool:
        limits = self.limits
        # These settings need connections of our own; a pooler may also refuse settings that it does not know.
        settings = _HNSW if limits.statement_cache and plans != "kept" else {}
        first = _INDEX_SCANS.get(plans) if limits.statement_cache else None
        return asyncpg.create_pool(
            self._address(tokens),
            min_size=minimum,
            max_size=maximum,
            timeout=limits.connect_timeout,
            command_timeout=limits.statement_timeout + 5,
            statement_cache_size=100 if limits.statement_cache else 0,
            max_inactive_connection_lifetime=300,
            init=partial(self._prepare, first=first),
            reset=_keep_settings,
            server_settings=self._server_settings(plans) | settings,
        )

    def _server_settings(self, plans: Plans) -> dict[str, str]:
        return {
            "application_name": "folklore",
            "plan_cache_mode": "force_custom_plan"
            if plans == "fresh"
            else "force_generic_plan",
            "jit": "off",
            "statement_timeout": str(int(self.limits.statement_timeout * 1000)),
            "timezone": "UTC",
        }

    async def _prepare(self, connection: Any, first: str | None = None) -> None:
        if first is not None:
            await connection.execute(first)
        row = await connection.fetchrow(statement("server/vector_schema").sql)
        if row is None:
            raise DatabaseUnavailable(
                "The database has no pgvector extension.",
                hint="Run `folklore db migrate` with a role that may create it.",
            )
        if row["distributed"]:
            self.shards.distributed = True
            # A generic plan does not know the shard, and cannot be made for most statements. Where the settings of a
            # transaction do not reach a node, row-level security returns no row, and no error.
            await connection.execute(
                "set plan_cache_mode = auto; set citus.propagate_set_commands = local"
            )
            # To hide shards, Citus tests each row of the catalogue: the lookup of types takes .7 s in place of .02.
            await connection.execute("set citus.override_table_visibility = off")
        await connection.set_type_codec(
            "halfvec",
            schema=row["schema"],
            encoder=lambda vector: vector.to_binary(),
            decoder=HalfVector.from_binary,
            format="binary",
        )
        # asyncpg looks up array types in the catalogue when it first meets them, at 9 ms a lookup. One statement that
        # names all of them makes it one lookup, before the first request.
        types = statement("server/array_types")
        await connection.fetch(types.sql, *[None for _ in types.parameters])
        # a statement for several shards of a node opens connections, which takes longer than it
        if row["distributed"]:
            await connection.execute(
                "reset citus.override_table_visibility; set citus.max_cached_conns_per_worker = 4"
            )
        if (log_query := self.log_query) is not None:
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

    async def connect_to_build(self, shared: int | None) -> asyncpg.Connection:
        """Open a connection without a timeout, to build by processes that share so many kilobytes; None: by one."""
        memory = _ALONE if shared is None else max(shared, _SHARED)
        alone = {"max_parallel_maintenance_workers": "0"} if shared is None else {}
        return await asyncpg.connect(
            self.dsn,
            timeout=self.limits.connect_timeout,
            statement_cache_size=0,
            server_settings={"application_name": "folklore", "statement_timeout": "0"}
            | (
                {"maintenance_work_mem": f"{memory}kB", **alone}
                if self.limits.statement_cache
                else {}
            ),
        )

    async def cancel_locked(self, pid: int, *, tokens: bool) -> bool:
        """Cancel the statement of a server process, if it waits for a lock, and return True if it did.

        On a connection outside the pools, all of which may be waiting.
        """
        with suppress(FolkloreError):
            seconds = self.limits.connect_timeout
            async with connected(
                self._address(tokens), seconds, command_timeout=seconds
            ) as connection:
                return bool(
                    await connection.fetchval(
                        statement("server/cancel_locked").sql, pid
                    )
                )
        return False

    async def acquire(self, tokens: bool, plans: Plans) -> tuple[asyncpg.Pool, Any]:
        """Return a pool and one of its connections. Raises DRIVER_ERRORS, DatabaseUnavailable."""
        if tokens and (True, plans) not in self._pools and self._pools:
            async with self._opening:
                if (True, plans) not in self._pools:
                    await self.open(tokens=True)
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
        if not (await asyncio.wait({reviving}, timeout=_REVIVE_SECONDS))[0]:
            raise still_starting("embedded Postgres")
        reviving.result()

    async def renew(self) -> None:
        """Start the embedded engine if it has stopped, and use new connections from now on."""
        if self.revive is not None:
            await self._revived(self.revive)
            for pool in set(self._pools.values()):
                await pool.expire_connections()

    def statistics(self) -> PoolStatistics:
        pools = set(self._pools.values())
        idle = sum(pool.get_idle_size() for pool in pools)
        return PoolStatistics(
            in_use=sum(pool.get_size() for pool in pools) - idle,
            idle=idle,
            waiting=self._waiting,
            maximum=sum(pool.get_max_size() for pool in pools),
        )

    async def close(self) -> None:
        pools = list(dict.fromkeys(self._pools.values()))
        self._pools.clear()
        for pool in pools:
            try:
                await asyncio.wait_for(pool.close(), timeout=3)
            except TimeoutError:
                pool.terminate()


@dataclass(eq=False, repr=False)
class Database:
    """Sessions on one database.

    A statement is one round trip: connections are not reset when they are released, since only SET LOCAL changes their
    settings. They come from three pools, which differ in how Postgres plans:

        kept    generic plans, made once. Most statements look rows up by key, where one plan is right for every
                parameter, and planning would cost 0.5 ms a statement.
        scan    the same for searches over vectors, so that no lookup waits behind a scan.
        fresh   a plan for the parameters of each call, for statements whose right plan depends on them.

    `for_token` gives the same database limited to the grants of a token. Each of its sessions is one transaction in the
    role for tokens. They have pools of their own: a plan made in one role is not valid in another.
    """

    dsn: str
    limits: PoolLimits = PoolLimits()
    log_query: QueryLogger | None = None
    revive: Revive | None = None
    login_dsn: str | None = None
    # raises DiskFull; called before each transaction that writes
    require_space: Callable[[], None] = lambda: None
    # raises DataMissing; called before each of them and after it
    require_data: Callable[[], None] = lambda: None
    token_key: str | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        outage = Outage("database_unreachable", "database_reachable_again")
        self._pools = _Pools(
            self.dsn, self.limits, outage, self.login_dsn, self.log_query, self.revive
        )

    async def open(self) -> None:
        """Connect. Raises DatabaseUnavailable."""
        await self._pools.open(tokens=False)

    async def close(self) -> None:
        """Close every connection, after at most three seconds for running statements."""
        await self._pools.close()

    async def __aenter__(self) -> Self:
        """Connect, for the length of a block. Raises DatabaseUnavailable."""
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close every connection."""
        await self.close()

    def beside(self, limits: PoolLimits) -> Database:
        """Return this database with connections of its own, to be opened and closed. An outage of both is one.

        Its transactions begin on a full disk too: those of jobs free space.
        """
        return self._like(_pools=self._pools.beside(limits), require_space=lambda: None)

    def for_token(self, key: str) -> Database:
        """Return this database limited to a token, by the token's key (64 hexadecimal digits)."""
        if not _KEY.fullmatch(key):
            raise ValueError("not the key of a token")
        return self._like(token_key=key)

    def _like(self, **changes: object) -> Database:
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    @property
    def distributed(self) -> bool:
        """True if the tables are on a cluster, as the first connection saw."""
        return self._pools.shards.distributed

    def statistics(self) -> PoolStatistics:
        """Return how busy the pools are. No statement."""
        return self._pools.statistics()

    def session(
        self,
        plans: Plans = "kept",
        *,
        release_later: bool = False,
        guarded: bool = False,
    ) -> AbstractAsyncContextManager[Session]:
        """Return an `async with` block for single statements; errors of the driver leave it as Folklore's own.

        A token's session only reads. `release_later`: continue before the connection is back in its pool. `guarded`:
        a statement that waits for a lock fails with DatabaseUnavailable.
        """
        pools = self._pools
        guard = None
        # behind a pooler the number of a server process is not known
        if guarded and pools.limits.statement_cache:
            guard = partial(pools.cancel_locked, tokens=self.token_key is not None)
        return PooledSession(
            self._acquire,
            plans,
            pools.shards,
            pools.outage,
            self._token_transaction("read only"),
            release_later=release_later,
            cancel_locked=guard,
        )

    async def rows(
        self, name: str, plans: Plans = "kept", /, **values: object
    ) -> list[Row]:
        """Return all rows of the statement of that name, in a session of its own."""
        async with self.session(plans) as session:
            return await session.rows(name, **values)

    async def row(
        self, name: str, plans: Plans = "kept", /, **values: object
    ) -> Row | None:
        """Return the first row of a statement in a session of its own, or None."""
        async with self.session(plans) as session:
            return await session.row(name, **values)

    def pinned_session(self) -> PinnedSession:
        """Return a guarded session for statements in sequence."""
        return PinnedSession(partial(self.session, release_later=True, guarded=True))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """Run the block in one transaction: committed at its end, rolled back if it fails or is cancelled.

        Raises DiskFull and DataMissing without beginning it, and DataMissing if the data was removed meanwhile.
        """
        self.require_space()
        await self.confirm_data()
        pools = self._pools
        try:
            async with (
                PooledSession(
                    self._acquire,
                    "kept",
                    pools.shards,
                    pools.outage,
                    self._token_transaction("read write"),
                    commits=True,
                ) as session,
                session.transaction(),
            ):
                yield session
        except DatabaseUnavailable:
            self.require_space()  # the cause, if it is one of these
            self.require_data()
            raise
        self.require_data()

    async def confirm_data(self) -> None:
        """Raise DataMissing if the data of the embedded engine was removed.

        If there is other data, as after an upgrade by another process, its engine is joined by new connections.
        """
        try:
            self.require_data()
        except DataMissing:
            await self._pools.renew()
            self.require_data()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Session]:
        """Read one moment of the database for as long as the block takes, on a connection outside the pools."""
        async with closed_after(
            self._pools.connect(tokens=self.token_key is not None)
        ) as connection:
            token = self._token_transaction(
                "isolation level repeatable read, read only"
            )
            if token is not None:
                await token.begin(connection)
                yield Session(connection, self._pools.shards, row_security=True)
            else:
                async with connection.transaction(
                    isolation="repeatable_read", readonly=True
                ):
                    yield Session(connection, self._pools.shards)

    @asynccontextmanager
    async def build_session(self, shared: int | None = None) -> AsyncIterator[Session]:
        """Run the block outside of a transaction, on a connection of _Pools.connect_to_build."""
        async with closed_after(self._pools.connect_to_build(shared)) as connection:
            yield Session(connection, self._pools.shards)

    def _token_transaction(self, mode: Mode) -> TokenTransaction | None:
        """Return the transaction of this token; None for the owner."""
        if self.token_key is None:
            return None
        return TokenTransaction(self.token_key, mode)

    def _acquire(self, plans: Plans) -> Awaitable[tuple[asyncpg.Pool, Any]]:
        return self._pools.acquire(self.token_key is not None, plans)


class _RolledBack(Exception):
    """Ends the transaction of a dry run."""


class _SharedSession(Session):
    """The session of a dry run. Several users may have it at the same time; their statements take turns."""

    def __init__(self, session: Session) -> None:
        super().__init__(session.connection, session.shards)
        self._turn = asyncio.Lock()

    async def rows(self, name: str, /, **values: object) -> list[Row]:
        async with self._turn:
            return await super().rows(name, **values)

    async def execute(self, command: str) -> None:
        async with self._turn:
            await super().execute(command)


class _OneSession(Database):
    """A database whose every session is part of one transaction."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, PoolLimits(minimum=1, maximum=1))
        self._session: Session | None = None

    @asynccontextmanager
    async def _sharing(self, session: Session) -> AsyncIterator[None]:
        """Use a session for all for the length of the block."""
        self._session = _SharedSession(session)
        try:
            yield
        finally:
            self._session = None

    @asynccontextmanager
    async def session(
        self,
        plans: Plans = "kept",
        *,
        release_later: bool = False,
        guarded: bool = False,
    ) -> AsyncIterator[Session]:
        """Use the one session."""
        if self._session is None:
            raise DatabaseUnavailable("The transaction has ended.")
        yield self._session

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """Use the one session."""
        async with self.session() as session:
            yield session


class DryRun(_OneSession):
    """A database whose every session is part of one transaction, which is rolled back."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Open the database and begin the transaction; roll it back at the end of the block."""
        with suppress(_RolledBack):
            async with self, Database.transaction(self) as session:
                async with self._sharing(session):
                    yield
                raise _RolledBack


class Moment(_OneSession):
    """A database as it is at one moment, which nothing can be written to."""

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[str]:
        """Read this moment for as long as the block takes; yield its name for other connections (pg_dump)."""
        async with self.snapshot() as session:
            # every table is read whole
            await session.execute("set local statement_timeout = 0")
            row = await session.row("backup/snapshot")
            assert row is not None
            async with self._sharing(session):
                yield row["snapshot"]


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
