"""A connection lent for a while, and what happens to it when it is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import Any, Literal, cast

import asyncpg

from folklore.db.driver_errors import FOREIGN, translated
from folklore.db.roles import MEMBER
from folklore.db.sql_loader import statement
from folklore.errors import DatabaseUnavailable, FolkloreError, Refused

# Transactions that are being ended: a task that nobody holds may be forgotten.
_ENDING: set[asyncio.Task[None]] = set()

Row = asyncpg.Record
Plans = Literal["kept", "scan", "fresh"]
# A pool and a connection of it, to be released.
Acquire = Callable[[Plans], Awaitable[tuple[asyncpg.Pool, Any]]]


class Session:
    """A connection lent for a while: runs named statements."""

    def __init__(self, connection: Any, *, entered: bool = False) -> None:
        self._connection = connection
        self._entered = entered

    @property
    def of_token(self) -> bool:
        """Whether row-level security holds it to what a token opens."""
        return self._entered

    async def rows(self, name: str, /, **values: object) -> list[Row]:
        """All rows of the statement `sql/<name>.sql`."""
        found = statement(name)
        return cast("list[Row]", await self._connection.fetch(found.sql, *found.arguments(values)))

    async def carry_out(self, command: str) -> None:
        """A command that one of our statements has spelled."""
        await self._connection.execute(command)

    def transaction(self) -> Any:
        """An `async with` block that commits at its end and rolls back when it fails.

        A token's session is one transaction already, which ends with the session.
        """
        return nullcontext() if self._entered else self._connection.transaction()

    async def row(self, name: str, /, **values: object) -> Row | None:
        """The first row, or None."""
        found = statement(name)
        return cast("Row | None", await self._connection.fetchrow(found.sql, *found.arguments(values)))


class Lent:
    """A connection for the length of an `async with` block: a class, since generators cost a tenth of a millisecond.

    With `entry` it is one transaction, begun by that command: one that `commits` when the block ends well, or one that
    only reads, whose end nobody waits for. `hurried`: nor does anybody wait until a connection without one is back; for
    those who do not want another at once, which might be a new one.
    """

    __slots__ = ("_acquire", "_connection", "_entry", "_plans", "_pool", "_waits")

    def __init__(
        self, acquire: Acquire, plans: Plans, entry: str | None = None, *, commits: bool = False, hurried: bool = False
    ) -> None:
        self._acquire = acquire
        self._plans: Plans = plans
        self._entry = entry
        self._waits = commits or (entry is None and not hurried)

    async def __aenter__(self) -> Session:
        """Acquire it. Raises DatabaseUnavailable."""
        try:
            self._pool, self._connection = await self._acquire(self._plans)
            if self._entry is not None:
                await self._enter(self._entry)
        except FOREIGN as error:
            raise translated(error) from error
        return Session(self._connection, entered=self._entry is not None)

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Commit if it is to be, release it, and turn what was raised into ours."""
        failed: BaseException | None = None
        if error is None and not self._waits:
            # What only read has no end that anybody need wait for.
            ending = asyncio.create_task(self._end(), name="folklore-end")
            _ENDING.add(ending)
            ending.add_done_callback(_ENDING.discard)
            return
        if isinstance(error, asyncpg.InternalClientError):
            self._terminate()
        try:
            if self._entry is not None:
                failed = await self._leave(well=error is None)
        finally:
            try:
                await self._pool.release(self._connection)  # shields itself
            except FOREIGN as lost:
                failed = failed or lost
        if error is None and failed is not None:
            raise translated(failed) from failed
        if isinstance(error, asyncpg.InsufficientPrivilegeError) and self._entry is not None:
            raise Refused("Your token may not do this here (any more).") from error
        if isinstance(error, FOREIGN) and not isinstance(error, FolkloreError):
            raise translated(error) from error

    async def _enter(self, entry: str) -> None:
        entered = False
        try:
            await self._connection.execute(entry)
            entered = True
        except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidParameterValueError) as error:
            raise DatabaseUnavailable(
                f"The database's role {MEMBER}, in which tokens are served, is not there or not ours to take.",
                hint="`folklore db role` shows what the database's administrator must run.",
            ) from error
        finally:
            if not entered:
                self._terminate()
                with suppress(*FOREIGN):
                    await self._pool.release(self._connection)

    async def _end(self) -> None:
        """End a transaction that only read, if it is one, and release the connection."""
        try:
            if self._entry is not None:
                await self._leave(well=True)
        finally:
            with suppress(*FOREIGN):
                await self._pool.release(self._connection)

    async def _leave(self, *, well: bool) -> BaseException | None:
        """End the transaction; what went wrong with it. Nobody else may get a connection that is still within one."""
        left = False
        try:
            await self._connection.execute("commit" if well else "rollback")
            left = True
        except FOREIGN as error:
            return error
        finally:
            if not left:
                self._terminate()
        return None

    def _terminate(self) -> None:
        """End the connection: what state it is in cannot be told; the pool makes another."""
        with suppress(asyncpg.InterfaceError):  # it is gone, and the pool has noticed already
            self._connection.terminate()
