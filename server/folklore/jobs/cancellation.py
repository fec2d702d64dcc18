"""End tasks for certain."""

from __future__ import annotations

import asyncio


async def stopped(*tasks: asyncio.Task[None]) -> None:
    """Cancel tasks until they have ended; what they raise is not told.

    Once is not enough before Python 3.12: `asyncio.wait_for`, which is below every connection that is closed, forgets
    a cancellation that arrives with its result, and the task would go on, or wait for ever.
    """
    for task in tasks:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=0.5)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody is told it never was
