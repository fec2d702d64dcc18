"""A database in which nothing lasts: to try storing and recalling on a real one without leaving a trace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from folklore.db.database import Database, Plans, PoolLimits, Row, Session
from folklore.errors import DatabaseUnavailable


class _Over(Exception):
    """Ends the transaction without a commit."""


class _Shared(Session):
    """The one session there is: whoever has it lets others in between two statements."""

    def __init__(self, session: Session) -> None:
        super().__init__(session._connection, entered=True)
        self._turn = asyncio.Lock()

    async def rows(self, name: str, /, **values: object) -> list[Row]:
        """All rows of a statement, when it is its turn."""
        async with self._turn:
            return await super().rows(name, **values)

    async def row(self, name: str, /, **values: object) -> Row | None:
        """The first row, likewise."""
        async with self._turn:
            return await super().row(name, **values)

    @property
    def of_token(self) -> bool:
        """It is the owner's, though it is within a transaction."""
        return False


class Rehearsal(Database):
    """One transaction that is always rolled back. Its users take turns on the one connection that sees it."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, PoolLimits(minimum=1, maximum=1))
        self._session: _Shared | None = None

    @asynccontextmanager
    async def stage(self) -> AsyncIterator[None]:
        """Within the block sessions and transactions see each other's work; after it there was none."""
        await self.open()
        try:
            with suppress(_Over):
                async with super().transaction() as session:
                    self._session = _Shared(session)
                    try:
                        yield
                    finally:
                        self._session = None
                    raise _Over
        finally:
            await self.close()

    @asynccontextmanager
    async def session(self, plans: Plans = "kept") -> AsyncIterator[Session]:
        """The one session there is."""
        if self._session is None:
            raise DatabaseUnavailable("The rehearsal is over.")
        yield self._session

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """As `session`: all of the rehearsal is one transaction."""
        async with self.session() as session:
            yield session
