"""Sessions: a connection of a pool for single statements, for one transaction, or for statements in sequence."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    nullcontext,
    suppress,
)
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Any, Literal, TypeVar, cast

import asyncpg

from folklore.db.driver_errors import DRIVER_ERRORS, translate
from folklore.db.roles import TOKEN_ROLE, TokenTransaction
from folklore.db.shards import Shards
from folklore.db.sql_loader import statement
from folklore.errors import DatabaseUnavailable, DatabaseUnsuitable, Refused
from folklore.log import Outage

# References to tasks that release connections: the event loop itself keeps only weak ones.
_RELEASING: set[asyncio.Task[BaseException | None]] = set()

# Seconds for a rollback, and for a connection to be ready for its pool.
_RELEASE_SECONDS = 5.0

# Seconds after which a statement that waits for a lock is cancelled. A lock_timeout would take a round trip for each
# statement, or hold for the writes on the same connection, which do wait for each other.
LOCK_SECONDS = 0.4

# The function of Postgres that refuses a query which row-level security would change, while row_security is off.
_ROW_SECURITY_OFF = "check_enable_rls"

T = TypeVar("T")
Row = asyncpg.Record
Plans = Literal["kept", "scan", "fresh"]
# Returns a pool and one of its connections.
Acquire = Callable[[Plans], Awaitable[tuple[asyncpg.Pool, Any]]]
# Cancels the statement of a server process, if it waits for a lock, and returns True if it did.
CancelLocked = Callable[[int], Awaitable[bool]]


@dataclass(slots=True)
class Session:
    """A connection that runs named statements.

    `row_security` is True in a session of a token: one transaction that is limited to the grants of the token. With
    `cancel_locked`, `rows` raises DatabaseUnavailable where its statement waits for a lock. `spare` returns another
    session for a statement of several shards.
    """

    connection: Any
    shards: Shards
    _: KW_ONLY
    row_security: bool = False
    cancel_locked: CancelLocked | None = None
    spare: Callable[[], "AbstractAsyncContextManager[Session] | None"] | None = None

    async def rows(self, name: str, /, **values: object) -> list[Row]:
        """Return all rows of the statement of that name."""
        if self.shards.distributed:
            fetching = self.shards.rows(self, name, values)
        else:
            query = statement(name)
            fetching = self.connection.fetch(query.sql, *query.arguments(values))
        if self.cancel_locked is not None:
            fetching = unless_locked(
                fetching, partial(self.cancel_locked, self.connection.get_server_pid())
            )
        return cast("list[Row]", await fetching)

    async def row(self, name: str, /, **values: object) -> Row | None:
        """Return the first row of a statement, or None."""
        return next(iter(await self.rows(name, **values)), None)

    async def execute(self, command: str) -> None:
        """Run a command that one of our statements returned."""
        await self.connection.execute(command)

    def transaction(self) -> Any:
        """Return an `async with` block that commits at its end and rolls back if it fails."""
        if self.row_security:
            return nullcontext()
        return _Transaction(self.connection)


class _Transaction:
    """Transaction of a connection. Where the server does not answer any more, the connection is closed instead.

    Before its next statement a connection waits, without limit, until the server has confirmed that a statement which
    timed out is cancelled.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._transaction = connection.transaction()

    async def __aenter__(self) -> None:
        """Begin."""
        await self._transaction.start()

    async def __aexit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        """Commit, or roll back after an error."""
        if error is None:
            await self._transaction.commit()
        elif isinstance(error, TimeoutError):
            self._connection.terminate()
        else:
            try:
                async with asyncio.timeout(_RELEASE_SECONDS):
                    await self._transaction.rollback()
            except DRIVER_ERRORS:
                self._connection.terminate()


@dataclass(slots=True)
class PooledSession:
    """A pooled connection for the length of an `async with` block.

    With `token` the block is one transaction of that token. A block that `commits` ends when its transaction has; the
    commit of a token's other blocks, and the release of those with `release_later`, are not waited for. (A class, since
    a generator would cost 0.1 ms a statement.)
    """

    acquire: Acquire
    plans: Plans
    shards: Shards
    outage: Outage
    token: TokenTransaction | None = None
    _: KW_ONLY
    commits: bool = False
    release_later: bool = False
    cancel_locked: CancelLocked | None = None
    _pool: asyncpg.Pool = field(init=False)
    _connection: Any = field(init=False)
    _period: int = field(init=False)

    async def __aenter__(self) -> Session:
        """Acquire a connection. Raises DatabaseUnavailable."""
        self._period = self.outage.period
        try:
            self._pool, self._connection = await self.acquire(self.plans)
            if self.token is not None:
                await self._enter(self.token)
        except DRIVER_ERRORS as error:
            raise translate(error) from error
        return Session(
            self._connection,
            self.shards,
            row_security=self.token is not None,
            cancel_locked=self.cancel_locked,
            spare=None if self.commits else self._another,
        )

    def _another(self) -> AbstractAsyncContextManager[Session] | None:
        """Return a session like this one if a connection is idle: waiting for a second one could deadlock."""
        return replace(self) if self._pool.get_idle_size() else None

    async def __aexit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        """End the transaction, release the connection and translate errors."""
        if error is None:
            await self._succeed()
            return
        # after a timeout the server may not answer: see _Transaction
        if isinstance(error, (asyncpg.InternalClientError, TimeoutError)):
            self._terminate()
        await self._finish_and_release("rollback")
        is_denied = isinstance(error, asyncpg.InsufficientPrivilegeError)
        if is_denied and self.token is not None:
            if getattr(error, "server_source_function", None) == _ROW_SECURITY_OFF:
                raise DatabaseUnsuitable(
                    "Calls with a token fail: row_security is off for this database.",
                    hint="Its administrator sets it on; `folklore doctor` prints how.",
                ) from error
            raise Refused("Your token may not do this here (any more).") from error
        if isinstance(error, DRIVER_ERRORS):
            raise translate(error) from error

    async def _succeed(self) -> None:
        """Commit and release the connection, in the background where nothing depends on it. Raises FolkloreError."""
        # the server answered: to acquire an idle connection shows nothing
        self.outage.over(self._period)
        only_read = self.token is not None and not self.commits
        if only_read or (self.release_later and not self.commits):
            task = asyncio.create_task(
                self._finish_and_release("commit"), name="folklore-release"
            )
            _RELEASING.add(task)
            task.add_done_callback(_RELEASING.discard)
            return
        failed = await self._finish_and_release("commit")
        if failed:
            raise translate(failed) from failed

    async def _finish_and_release(self, command: str) -> BaseException | None:
        """End a token's transaction by `commit` or `rollback`, release the connection, return the error of either."""
        failed: BaseException | None = None
        try:
            if self.token is not None:
                failed = await self._finish(command)
        finally:
            try:
                # shields itself from cancellation
                await self._pool.release(self._connection, timeout=_RELEASE_SECONDS)
            except DRIVER_ERRORS as lost:
                failed = failed or lost
        return failed

    async def _enter(self, token: TokenTransaction) -> None:
        """Begin the transaction of a token; else close and release the connection. Raises DatabaseUnavailable."""
        success = False
        try:
            await token.begin(self._connection)
            success = True
        except (
            asyncpg.InsufficientPrivilegeError,
            asyncpg.InvalidParameterValueError,
        ) as error:
            raise DatabaseUnavailable(
                f"The database has no role {TOKEN_ROLE} for requests with a token, or this role is not a member of it.",
                hint="`folklore db role` shows the commands that the database's administrator must run.",
            ) from error
        finally:
            if not success:
                self._terminate()
                with suppress(*DRIVER_ERRORS):
                    await self._pool.release(self._connection)

    async def _finish(self, command: str) -> BaseException | None:
        """End the transaction and return its error. A connection still in a transaction is never released."""
        finished = False
        try:
            async with asyncio.timeout(
                _RELEASE_SECONDS if command == "rollback" else None
            ):
                await self._connection.execute(command)
            finished = True
        except DRIVER_ERRORS as error:
            return error
        finally:
            if not finished:
                self._terminate()
        return None

    def _terminate(self) -> None:
        """Close a connection in an unknown state; the pool opens another."""
        with suppress(asyncpg.InterfaceError):  # closed already, and the pool knows
            self._connection.terminate()


@dataclass(slots=True)
class PinnedSession:
    """Session for statements in sequence: the first acquires it, `release` or a failed statement releases it.

    `async with pinned as session` runs one statement; two must not run at the same time. A token's statements then
    share one transaction instead of one each. While pinned, only sessions with other plans may be acquired: waiting
    for a second connection of the same pool could deadlock.
    """

    new_session: Callable[[], AbstractAsyncContextManager[Session]]
    _acquired: AsyncExitStack = field(default_factory=AsyncExitStack)
    _session: Session | None = None

    async def __aenter__(self) -> Session:
        """Return the session. Raises DatabaseUnavailable."""
        if self._session is None:
            self._session = await self._acquired.enter_async_context(self.new_session())
        return self._session

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Keep the session, unless the statement failed."""
        if error is not None:
            self._session = None
            await self._acquired.__aexit__(kind, error, trace)

    async def release(self) -> None:
        """Release the session if it is acquired."""
        self._session = None
        await self._acquired.aclose()


async def unless_locked(
    fetching: Awaitable[T], cancel_if_locked: Callable[[], Awaitable[bool]]
) -> T:
    """Return the result of a statement; raise DatabaseUnavailable if it was cancelled since it waits for a lock.

    `cancel_if_locked` is called every LOCK_SECONDS, first after these, so that a statement that ends sooner costs a
    timer only. It returns True if it cancelled the statement.
    """
    finish = asyncio.Event()
    watching = list[asyncio.Task[None]]()
    cancelled = False

    async def watch() -> None:
        nonlocal cancelled
        while not finish.is_set() and not cancelled:
            cancelled = await cancel_if_locked()
            with suppress(TimeoutError):
                await asyncio.wait_for(finish.wait(), LOCK_SECONDS)

    async def end() -> None:
        timer.cancel()
        finish.set()
        if watching:  # a cancellation that has begun must not reach the next statement of this connection
            await asyncio.wait(watching)

    loop = asyncio.get_running_loop()
    timer = loop.call_later(
        LOCK_SECONDS,
        lambda: watching.append(loop.create_task(watch(), name="folklore-lock-guard")),
    )
    try:
        return await fetching
    except asyncpg.QueryCanceledError as error:
        await end()
        if not cancelled:
            raise
        raise DatabaseUnavailable(
            "Another session of the database has locked a table that this needs."
        ) from error
    finally:
        await end()
