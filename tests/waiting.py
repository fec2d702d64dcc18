"""Waits for events, with a limit that only a stuck test reaches, and for the log of statements."""

import asyncio
import time
from collections.abc import Awaitable, Callable

# For `asyncio.timeout` and `communicate`, in seconds: only a test that is stuck takes so long.
STUCK = 120


def eventually(condition: Callable[[], object]) -> None:
    """Wait until the condition is true."""
    deadline = time.monotonic() + STUCK
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true"
        time.sleep(0.005)


async def statements_of(asked: Awaitable[object], queries: list[str]) -> list[str]:
    """Return the statements of a call. asyncpg logs a statement in the loop's next turn."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    queries.clear()
    await asked
    await asyncio.sleep(0)
    return queries.copy()
