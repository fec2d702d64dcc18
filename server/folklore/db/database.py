"""The pool, and the one place where Postgres' errors become ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

import asyncpg
from pgvector.asyncpg import register_vector

from folklore.db.statements import statement
from folklore.errors import DatabaseUnavailable, FolkloreError, InvalidInput, Raced

Row = asyncpg.Record
QueryLogger = Callable[[str], None]
Plans = Literal["kept", "fresh"]
Revive = Callable[[], Awaitable[None]]

# How far an HNSW index is searched, and that it is searched further until enough was found. Postgres takes them before
# the extension is loaded. Not where a pooler may be (no statement cache): it may refuse settings that it does not know;
# then the index is searched less far.
_NEAREST = {"hnsw.ef_search": "200", "hnsw.iterative_scan": "relaxed_order"}
# One core at most, so that others have some, and no shared memory, of which a container has little; but enough of one's
# own that the graph of some 200,000 vectors is built in memory.
_BUILDING = {"maintenance_work_mem": "256MB", "max_parallel_maintenance_workers": "0"}


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many connections, and how long anything may take, in seconds."""

    minimum: int = 2
    maximum: int = 4
    connect_timeout: float = 10.0
    statement_timeout: float = 30.0
    statement_cache: bool = True


class Session:
    """A connection lent for a while: runs named statements."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def rows(self, name: str, /, **values: object) -> list[Row]:
        """All rows of the statement `sql/<name>.sql`."""
        found = statement(name)
        return cast("list[Row]", await self._connection.fetch(found.sql, *found.arguments(values)))

    async def carry_out(self, command: str) -> None:
        """A command that one of our statements has spelled."""
        await self._connection.execute(command)

    def transaction(self) -> Any:
        """An `async with` block that commits at its end and rolls back when it fails."""
        return self._connection.transaction()

    async def row(self, name: str, /, **values: object) -> Row | None:
        """The first row, or None."""
        found = statement(name)
        return cast("Row | None", await self._connection.fetchrow(found.sql, *found.arguments(values)))


class Database:
    """Connections to one Postgres, embedded or a server; nobody above knows which.

    One statement is one round trip: no reset on release (only SET LOCAL is ever used). There are two pools. In the one,
    plans are generic and kept: most statements look rows up by key, one shape is right for every parameter, and to plan
    anew takes 0.5 ms of each. In the other, plans are made for the parameters, for the statements whose right shape
    depends on them: a kept plan reckons with namespaces of the average size, and would read every vector there is for
    the smallest of them.
    """

    def __init__(
        self,
        dsn: str,
        limits: PoolLimits = PoolLimits(),
        log_query: QueryLogger | None = None,
        revive: Revive | None = None,
    ) -> None:
        self._dsn = dsn
        self._limits = limits
        self._log_query = log_query
        self._revive = revive
        self._pools: dict[Plans, asyncpg.Pool] = {}

    async def open(self) -> None:
        """Connect. Raises DatabaseUnavailable; never falls back to another database."""
        most = self._limits.maximum
        with ours():
            try:
                nearest = _NEAREST if self._limits.statement_cache else {}
                self._pools["fresh"] = await self._pool("force_custom_plan", max(1, most // 2), **nearest)
                self._pools["kept"] = await self._pool("force_generic_plan", max(1, most - most // 2))
            except BaseException:
                await self.close()
                raise

    async def _pool(self, plan_cache_mode: str, most: int, **more: str) -> asyncpg.Pool:
        limits = self._limits
        return await asyncpg.create_pool(
            self._dsn,
            min_size=min(most, max(1, limits.minimum // 2) if limits.minimum else 0),
            max_size=most,
            timeout=limits.connect_timeout,
            command_timeout=limits.statement_timeout + 5,
            statement_cache_size=100 if limits.statement_cache else 0,
            max_inactive_connection_lifetime=300,
            init=self._prepare,
            reset=_keep,
            server_settings={
                "application_name": "folklore",
                "plan_cache_mode": plan_cache_mode,
                "jit": "off",
                "statement_timeout": str(int(limits.statement_timeout * 1000)),
                "timezone": "UTC",
                **more,
            },
        )

    async def _prepare(self, connection: asyncpg.Connection) -> None:
        await register_vector(connection, schema=await _vector_schema(connection))
        # The first use of an array type asks the catalogue about it; asked here, a request never does.
        await connection.fetch("select $1::uuid[], $2::float8[], $3::int8[], $4::int2[], $5::halfvec[]", *[None] * 5)
        if self._log_query is not None:
            log = self._log_query
            connection.add_query_logger(lambda record: log(record.query))

    async def close(self) -> None:
        """Give the connections back; what runs may finish for a moment, then it is cut."""
        pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            try:
                await asyncio.wait_for(pool.close(), timeout=3)
            except TimeoutError:
                pool.terminate()

    def session(self, plans: Plans = "kept") -> AbstractAsyncContextManager[Session]:
        """A connection for single statements, with plans that are kept, or fresh for these parameters.

        `async with database.session() as session`; what Postgres and the network raise within leaves it as ours.
        """
        return Lent(self, plans)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """A connection in one transaction: committed when the block ends, rolled back when it fails or is cancelled."""
        async with Lent(self, "kept") as session, session.transaction():
            yield session

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
        pool = self._pools.get(plans)
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


class Lent:
    """A connection for the length of an `async with` block: a class, since generators cost a tenth of a millisecond."""

    __slots__ = ("_connection", "_database", "_plans", "_pool")

    def __init__(self, database: Database, plans: Plans) -> None:
        self._database = database
        self._plans: Plans = plans

    async def __aenter__(self) -> Session:
        """Acquire it. Raises DatabaseUnavailable."""
        try:
            self._pool, self._connection = await self._database.acquire(self._plans)
        except FOREIGN as error:
            raise translated(error) from error
        return Session(self._connection)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Release it, and turn what was raised into ours."""
        try:
            await self._pool.release(self._connection)  # shields itself
        except FOREIGN as failed:
            if error is None:
                raise translated(failed) from failed
        if isinstance(error, FOREIGN) and not isinstance(error, FolkloreError):
            raise translated(error) from error


async def _keep(_connection: asyncpg.Connection) -> None:
    """Nothing to reset between uses: settings are only ever SET LOCAL."""


async def _vector_schema(connection: asyncpg.Connection) -> str:
    found = await connection.fetchval(
        "select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'"
    )
    if found is None:
        raise DatabaseUnavailable(
            "The database has no pgvector extension.", hint="Run `folklore db migrate` with a role that may create it."
        )
    return cast("str", found)


# What asyncpg and the network raise.
FOREIGN = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError)


@contextmanager
def ours() -> Iterator[None]:
    """Turn what asyncpg and the network raise into our family; our own pass through."""
    try:
        yield
    except FOREIGN as error:
        raise translated(error) from error


def translated(error: BaseException) -> FolkloreError:
    """The one of our family that stands for an error of asyncpg or the network."""
    match error:
        case asyncpg.UniqueViolationError() | asyncpg.SerializationError() | asyncpg.DeadlockDetectedError():
            return Raced("Somebody else changed the same memory at the same time.", hint="Try again.")
        case asyncpg.DataError():
            return InvalidInput("value", f"Postgres refused it ({type(error).__name__}).")
        case asyncpg.QueryCanceledError():
            return DatabaseUnavailable("The database took too long and the statement was cancelled.")
        case asyncpg.DiskFullError() | asyncpg.OutOfMemoryError():
            return DatabaseUnavailable("The database has no room left; nothing was written.")
        case (
            asyncpg.CannotConnectNowError()
            | asyncpg.AdminShutdownError()
            | asyncpg.CrashShutdownError()
            | asyncpg.PostgresConnectionError()
        ):
            return DatabaseUnavailable(
                "The database is unavailable: it is being started or stopped, or the connection to it was lost.",
                hint="Try again in a moment; a text that was stored already is not stored twice.",
            )
        case asyncpg.InvalidPasswordError():
            return DatabaseUnavailable("The database refused the user or password.", hint="Check the database_url.")
        case asyncpg.InsufficientPrivilegeError():
            return DatabaseUnavailable(f"The database role may not do this: {error}.")
        case asyncpg.PostgresError() | asyncpg.InterfaceError():
            return DatabaseUnavailable(f"The database failed ({type(error).__name__}): {error}")
        case _:
            return DatabaseUnavailable(
                f"The database cannot be reached ({error or type(error).__name__}).",
                hint="Check that it runs and that database_url is right; `folklore doctor` tells more.",
            )
