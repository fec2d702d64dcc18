"""Upkeep beside a server: looks every few minutes what is due, as long as the server is being used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

import structlog

from folklore.errors import FolkloreError
from folklore.jobs.job import Chore
from folklore.jobs.runner import Runner

log = structlog.get_logger(__name__)

Open = Callable[[], AbstractAsyncContextManager[Runner]]


async def keep_up(
    open_runner: Open,
    chores: Sequence[Chore],
    asked: asyncio.Event,
    *,
    first: float = 60.0,
    every: float = 300.0,
) -> None:
    """Until cancelled. `asked` is set by whoever uses the server: nothing happens while nobody does, so that an
    embedded engine may go to rest.

    The runner is opened for each look and closed after it, with connections of its own: no request waits for one.
    """
    wait = first
    while True:
        await asyncio.sleep(wait)
        wait = every
        await asked.wait()
        asked.clear()
        try:
            async with open_runner() as runner:
                for ran in await runner.run_due(chores):
                    tell = log.warning if ran.error else log.info
                    tell("upkeep", chore=ran.chore, outcome=ran.outcome, error=ran.error, done=dict(ran.done))
        except FolkloreError as error:  # the database is away: requests are told, upkeep waits
            log.info("upkeep_put_off", reason=error.message)
