"""One connection for statements that follow one another."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

from folklore.db.database import Database, Session


class Held:
    """A session taken by the first statement that needs it and kept for the next, until it is let go.

    `async with held as session` is one statement; two may not run at the same time. One that fails gives the connection
    back, as a session of its own would, and the next takes another. Where a session begins and ends with statements of
    its own, what follows one another pays for them once. Who holds one may wait for a session for a scan or with
    fresh plans, whose holders wait for none: these come from pools of their own.
    """

    __slots__ = ("_database", "_lent", "_session")

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lent: AbstractAsyncContextManager[Session] | None = None
        self._session: Session | None = None

    async def __aenter__(self) -> Session:
        """The session. Raises DatabaseUnavailable."""
        if self._session is None:
            lent = self._database.session(hurried=True)
            self._session = await lent.__aenter__()
            self._lent = lent
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the session, unless the statement failed."""
        if error is not None:
            await self._give_back(kind, error, trace)

    async def let_go(self) -> None:
        """Give the connection back, if one is held."""
        await self._give_back(None, None, None)

    async def _give_back(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lent, self._lent, self._session = self._lent, None, None
        if lent is not None:
            await lent.__aexit__(kind, error, trace)
