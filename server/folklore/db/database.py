"""Sessions and transactions on one Postgres database."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import asyncpg

from folklore.db.driver_errors import closed_after
from folklore.db.pools import PoolLimits, Pools, PoolStatistics, QueryLogger, Revive
from folklore.db.roles import Mode, TokenTransaction
from folklore.db.session import PinnedSession, Plans, PooledSession, Row, Session
from folklore.errors import DatabaseUnavailable, DataMissing
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

_KEY = re.compile(r"[0-9a-f]{64}")


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
        self._pools = Pools(
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
        shards = self._pools.shards
        token = self._token_transaction("isolation level repeatable read, read only")
        connecting = self._pools.connect(tokens=token is not None)
        async with closed_after(connecting) as connection:
            if token is not None:
                await token.begin(connection)
                yield Session(connection, shards, row_security=True)
                return
            async with connection.transaction(
                isolation="repeatable_read", readonly=True
            ):
                yield Session(connection, shards)

    @asynccontextmanager
    async def build_session(
        self, shared_kilobytes: int | None = None
    ) -> AsyncIterator[Session]:
        """Build an index in the block: no transaction, no timeout, on a connection outside the pools.

        Several processes build, with `shared_kilobytes` of memory between them; with None, one process alone.
        """
        connecting = self._pools.connect_to_build(shared_kilobytes)
        async with closed_after(connecting) as connection:
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
    """A database whose every session is part of one transaction: that which `_sharing` was given last."""

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
