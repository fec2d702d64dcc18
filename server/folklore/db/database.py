"""The pool, and the one place where Postgres' errors become ours."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncpg

from folklore.db.driver_errors import ours
from folklore.db.roles import entry
from folklore.db.session import Lent, Plans, Row, Session
from folklore.db.types import Types
from folklore.errors import DatabaseUnavailable

__all__ = ["Database", "Plans", "PoolLimits", "QueryLogger", "Row", "Session"]

QueryLogger = Callable[[str], None]
Revive = Callable[[], Awaitable[None]]

_KEY = re.compile(r"[0-9a-f]{64}")

# How far an HNSW index is searched, and that it is searched further until enough was found. Postgres takes them before
# the extension is loaded. Not where a pooler may be (no statement cache): it may refuse settings that it does not know;
# then the index is searched less far.
_NEAREST = {"hnsw.ef_search": "200", "hnsw.iterative_scan": "relaxed_order"}
# A kept plan is made for a namespace of average size, as the statistics of that moment have it. If one namespace holds
# most rows, or the tables were still small, Postgres prefers to read a whole table, and does so for each lookup in an
# empty namespace. Through an index a lookup reads its own namespace alone. Set after connecting, since a pooler may
# refuse the setting in the startup packet; not where a pooler hands each transaction another connection.
_BY_INDEX = "set enable_seqscan = off"
# Of fewer connections scans get none of their own: two for each kind, so that one that takes long stops nobody.
_ENOUGH = 6
# One core at most, so that others have some, and no shared memory, of which a container has little; but enough of one's
# own that the graph of some 200,000 vectors is built in memory.
_BUILDING = {"maintenance_work_mem": "256MB", "max_parallel_maintenance_workers": "0"}


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many connections, and how long anything may take, in seconds."""

    minimum: int = 2
    maximum: int = 6
    connect_timeout: float = 10.0
    statement_timeout: float = 30.0
    statement_cache: bool = True


class Database:
    """Connections to one Postgres, embedded or a server; nobody above knows which.

    One statement is one round trip: no reset on release (once connected, only SET LOCAL is ever used). There are three
    pools. In the first, plans are generic and kept: most statements look rows up by key, one shape is right for every
    parameter, and planning costs 0.5 ms a statement. The second keeps its plans too. It serves scans of all vectors of
    small namespaces, so that no lookup waits behind a scan. Neither plans a sequential scan where an index can serve
    (_BY_INDEX). In the third, plans are made for the parameters, for statements whose right shape depends on them.

    `bound(key)` is the same database as the holder of a token sees it: each of its sessions is one transaction in the
    role that owns nothing, which has said whose it is. These have pools of their own, made when the first is asked for:
    a plan made in one role is not good in another.
    """

    def __init__(
        self,
        dsn: str,
        limits: PoolLimits = PoolLimits(),
        log_query: QueryLogger | None = None,
        revive: Revive | None = None,
        login_dsn: str | None = None,
    ) -> None:
        self._dsn = dsn
        self._login_dsn = login_dsn or dsn
        self._limits = limits
        self._log_query = log_query
        self._revive = revive
        self._types = Types()
        self._pools: dict[tuple[bool, Plans], asyncpg.Pool] = {}  # by whether they are for tokens
        self._opening = asyncio.Lock()
        self._reading: str | None = None  # how a token's transactions begin: those that read, those that write
        self._writing: str | None = None
        self._moment: str | None = None

    async def open(self) -> None:
        """Connect. Raises DatabaseUnavailable; never falls back to another database."""
        await self._open(tokens=False)

    def bound(self, key: str) -> Database:
        """This database as the holder of a token sees it, by the token's key (64 hexadecimal digits)."""
        if not _KEY.fullmatch(key):
            raise ValueError("not the key of a token")
        twin = copy.copy(self)  # the pools are shared
        twin._reading, twin._writing = entry(key, "read only"), entry(key, "read write")
        twin._moment = entry(key, "isolation level repeatable read, read only")
        return twin

    async def _open(self, *, tokens: bool) -> None:
        limits = self._limits
        made: dict[tuple[bool, Plans], asyncpg.Pool] = {}
        dsn = self._login_dsn if tokens else self._dsn
        # Where nothing is prepared no plan is kept.
        by_index = _BY_INDEX if limits.statement_cache else None
        scan = limits.maximum // 3 if limits.statement_cache and limits.maximum >= _ENOUGH else 0
        fresh = max(1, (limits.maximum - scan) // 2)
        kept = max(1, limits.maximum - scan - fresh)
        with ours():
            try:
                nearest = _NEAREST if limits.statement_cache else {}
                made[tokens, "kept"] = await self._pool(dsn, "force_generic_plan", kept, then=by_index)
                made[tokens, "fresh"] = await self._pool(dsn, "force_custom_plan", fresh, spare=scan > 0, **nearest)
                made[tokens, "scan"] = made[tokens, "fresh"]
                if scan:
                    made[tokens, "scan"] = await self._pool(dsn, "force_generic_plan", scan, then=by_index)
            except BaseException:
                for pool in made.values():
                    pool.terminate()
                raise
        self._pools.update(made)

    async def _pool(
        self, dsn: str, plan_cache_mode: str, most: int, *, spare: bool = False, then: str | None = None, **more: Any
    ) -> asyncpg.Pool:
        """At most so many connections, each made ready by the command `then`, with `more` settings.

        If `spare`, a recall without filters needs none, and none is made beforehand.
        """
        limits = self._limits
        return await asyncpg.create_pool(
            dsn,
            min_size=min(most, max(1, limits.minimum // 2) if limits.minimum and not spare else 0),
            max_size=most,
            timeout=limits.connect_timeout,
            command_timeout=limits.statement_timeout + 5,
            statement_cache_size=100 if limits.statement_cache else 0,
            max_inactive_connection_lifetime=300,
            connection_class=self._types.connection_class(),
            init=self._prepare if then is None else partial(self._prepare, then=then),
            reset=_keep,
            server_settings=self._server_settings(plan_cache_mode) | more,
        )

    def _server_settings(self, plan_cache_mode: str) -> dict[str, str]:
        return {
            "application_name": "folklore",
            "plan_cache_mode": plan_cache_mode,
            "jit": "off",
            "statement_timeout": str(int(self._limits.statement_timeout * 1000)),
            "timezone": "UTC",
        }

    async def _prepare(self, connection: asyncpg.Connection, then: str | None = None) -> None:
        if then is not None:
            await connection.execute(then)
        await self._types.teach(connection)
        if self._log_query is not None:
            log = self._log_query
            connection.add_query_logger(lambda record: log(record.query))

    async def close(self) -> None:
        """Give the connections back; what runs may finish for a moment, then it is cut."""
        pools = list(dict.fromkeys(self._pools.values()))
        self._pools.clear()
        for pool in pools:
            try:
                await asyncio.wait_for(pool.close(), timeout=3)
            except TimeoutError:
                pool.terminate()

    def session(self, plans: Plans = "kept", *, hurried: bool = False) -> AbstractAsyncContextManager[Session]:
        """A connection for single statements, with plans that are kept, kept for a `scan`, or fresh for the parameters.

        `async with database.session() as session`; what Postgres and the network raise within leaves it as ours. A
        token's only reads: what writes is a `transaction`. `hurried`: go on before the connection is back.
        """
        return Lent(self.acquire, plans, self._reading, hurried=hurried)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """A connection in one transaction: committed when the block ends, rolled back when it fails or is cancelled."""
        async with Lent(self.acquire, "kept", self._writing, commits=True) as session, session.transaction():
            yield session

    @asynccontextmanager
    async def apart(self) -> AsyncIterator[Session]:
        """A connection of its own that reads and sees one moment, however slowly: pools are for those in a hurry."""
        limits = self._limits
        with ours():
            connection = await asyncpg.connect(
                self._dsn if self._moment is None else self._login_dsn,
                timeout=limits.connect_timeout,
                statement_cache_size=100 if limits.statement_cache else 0,
                connection_class=self._types.connection_class(),
                server_settings=self._server_settings("force_custom_plan"),
            )
            try:
                await self._prepare(connection)
                if self._moment is not None:
                    await connection.execute(self._moment)
                    yield Session(connection, entered=True)
                else:
                    async with connection.transaction(isolation="repeatable_read", readonly=True):
                        yield Session(connection)
            finally:
                await connection.close(timeout=5)

    @asynccontextmanager
    async def unhurried(self) -> AsyncIterator[Session]:
        """A connection of its own, in no transaction and without a limit of time: for building an index.

        Named statements may not use vectors on it.
        """
        limits = self._limits
        with ours():
            connection = await asyncpg.connect(
                self._dsn,
                timeout=limits.connect_timeout,
                statement_cache_size=0,
                server_settings={"application_name": "folklore", "statement_timeout": "0"}
                | (_BUILDING if limits.statement_cache else {}),
            )
            try:
                yield Session(connection)
            finally:
                await connection.close(timeout=5)

    async def acquire(self, plans: Plans) -> tuple[asyncpg.Pool, Any]:
        """A pool and a connection of it, to be released. Raises what asyncpg and the network raise."""
        tokens = self._reading is not None
        if tokens and (True, plans) not in self._pools and self._pools:
            async with self._opening:
                if (True, plans) not in self._pools:
                    await self._open(tokens=True)
        pool = self._pools.get((tokens, plans))
        if pool is None:
            raise DatabaseUnavailable("The database is not open.")
        timeout = self._limits.connect_timeout
        try:
            # A wait with a limit takes a task, a tenth of a millisecond; where one is idle nothing needs waiting for.
            return pool, await pool.acquire(timeout=None if pool.get_idle_size() else timeout)
        except (OSError, asyncpg.CannotConnectNowError):
            # The embedded engine may have gone to rest, or been stopped, while nobody had a session. No statement has
            # been sent yet, so starting it and asking again repeats nothing.
            if self._revive is None:
                raise
            await self._revive()
            return pool, await pool.acquire(timeout=timeout)


async def _keep(_connection: asyncpg.Connection) -> None:
    """Nothing to reset between uses: settings are only ever SET LOCAL."""
