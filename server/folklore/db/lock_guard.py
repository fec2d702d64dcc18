"""Guard of statements that must not wait for a lock: one that does is cancelled, a slow one goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import asyncpg

from folklore.errors import DatabaseUnavailable

T = TypeVar("T")
# Seconds after which a statement that waits for a lock is cancelled. A lock_timeout would take a round trip for each
# statement, or hold for the writes on the same connection, which do wait for each other.
PATIENCE = 0.4


async def unless_locked(statement: Awaitable[T], cancel_if_locked: Callable[[], Awaitable[bool]]) -> T:
    """Return the result of a statement; raise DatabaseUnavailable if it was cancelled since it waits for a lock.

    `cancel_if_locked` is called after PATIENCE seconds and then again and again, so that a statement that ends sooner
    costs a timer only. It returns True if it cancelled the statement.
    """
    finish, watching, cancelled = asyncio.Event(), list[asyncio.Task[None]](), False

    async def watch() -> None:
        nonlocal cancelled
        while not finish.is_set() and not cancelled:
            cancelled = await cancel_if_locked()
            with suppress(TimeoutError):
                await asyncio.wait_for(finish.wait(), PATIENCE)

    async def end() -> None:
        timer.cancel()
        finish.set()
        if watching:  # a cancellation that has begun must not reach the next statement of this connection
            await asyncio.wait(watching)

    loop = asyncio.get_running_loop()
    timer = loop.call_later(PATIENCE, lambda: watching.append(loop.create_task(watch(), name="folklore-lock-guard")))
    try:
        return await statement
    except asyncpg.QueryCanceledError as error:
        await end()
        if not cancelled:
            raise
        raise DatabaseUnavailable("Another session of the database has locked a table that this needs.") from error
    finally:
        await end()
