"""Upkeep of one process: which chores run by themselves, and runners for them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from folklore.db.database import Database
from folklore.db.stores.jobs import Chores
from folklore.jobs.all_jobs import ALL
from folklore.jobs.background import keep_up
from folklore.jobs.job import Chore, Job, Rules
from folklore.jobs.runner import Runner
from folklore.memory.context import MemoryContext

Place = Callable[[], AbstractAsyncContextManager[tuple[Database, MemoryContext]]]


@dataclass(frozen=True, slots=True)
class Keeper:
    """`place` opens a database with connections of its own; `off` names chores that run by hand only."""

    place: Place
    rules: Rules
    off: frozenset[str]
    session: str
    now: Callable[[], datetime]

    @property
    def scheduled(self) -> list[Chore]:
        """The chores that run by themselves."""
        return [chore for chore in ALL if chore.name not in self.off]

    def runner(self, database: Database, library: MemoryContext) -> Runner:
        """Whoever does chores for this process, on this database."""
        holder = f"{socket.gethostname()}:{os.getpid()}:{self.session}"
        return Runner(Chores(database), Job(database, library, self.rules, self.now), holder=holder, now=self.now)

    async def keep_up(self, asked: asyncio.Event) -> None:
        """Look every few minutes what is due, while the process is used; until cancelled."""
        await keep_up(self._opened, self.scheduled, asked)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Runner]:
        async with self.place() as (database, library):
            yield self.runner(database, library)
