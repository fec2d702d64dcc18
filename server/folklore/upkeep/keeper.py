"""Upkeep of one process: which chores run by themselves, and runners for them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime

from folklore.db.chores import Chores
from folklore.db.database import Database
from folklore.memory.library import Library
from folklore.upkeep.background import keep_up
from folklore.upkeep.chore import Chore, Job, Rules
from folklore.upkeep.chores import ALL
from folklore.upkeep.runner import Runner

Place = Callable[[], AbstractAsyncContextManager[tuple[Database, Library]]]


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

    def runner(self, database: Database, library: Library) -> Runner:
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
