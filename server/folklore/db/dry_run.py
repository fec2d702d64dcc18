"""A database in which nothing lasts: to try storing and recalling on a real one without leaving a trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from folklore.db.database import Database, Plans, PoolLimits, Row, Session
from folklore.errors import DatabaseUnavailable


class _Over(Exception):
    """Ends the transaction without a commit."""


class _InTurn(Session):
    """The one session, which several users may hold at once: each statement waits for its turn."""

    def __init__(self, session: Session) -> None:
        super().__init__(session._connection)
        self._turn = asyncio.Lock()

    async def rows(self, name: str, /, **values: object) -> list[Row]:
        async with self._turn:
            return await super().rows(name, **values)

    async def row(self, name: str, /, **values: object) -> Row | None:
        async with self._turn:
            return await super().row(name, **values)

    async def carry_out(self, command: str) -> None:
        async with self._turn:
            await super().carry_out(command)


class Rehearsal(Database):
    """One transaction that is always rolled back. Its users take turns on the one connection that sees it."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, PoolLimits(minimum=1, maximum=1))
        self._session: Session | None = None

    @asynccontextmanager
    async def stage(self) -> AsyncIterator[None]:
        """Within the block sessions and transactions see each other's work; after it there was none."""
        await self.open()
        try:
            with suppress(_Over):
                async with super().transaction() as session:
                    self._session = _InTurn(session)
                    try:
                        yield
                    finally:
                        self._session = None
                    raise _Over
        finally:
            await self.close()

    @asynccontextmanager
    async def session(self, plans: Plans = "kept", *, hurried: bool = False) -> AsyncIterator[Session]:
        """The one session there is. A recall holds it twice, once for each branch."""
        if self._session is None:
            raise DatabaseUnavailable("The rehearsal is over.")
        yield self._session

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """As `session`: all of the rehearsal is one transaction."""
        async with self.session() as session:
            yield session
