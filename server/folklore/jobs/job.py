"""What a chore is: a name, a schedule, and work in small batches that may be stopped between any two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from folklore.db.database import Database
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.memory.context import MemoryContext


@dataclass(frozen=True, slots=True)
class Rules:
    """What a user may say about upkeep, as the chores need it."""

    retention: timedelta = timedelta(days=30)
    usage_kept: timedelta = timedelta(days=365)
    audit_kept: timedelta = timedelta(days=365)
    # From how many vectors on a namespace gets an HNSW index; 0: none does.
    hnsw_from: int = 20_000
    # Rest after each batch: the database and this process have others to serve.
    pause: float = 0.02


@dataclass(frozen=True, slots=True)
class Job:
    """One run of a chore. With `dry_run` it counts and writes nothing.

    `done` is what it did so far, by name: told while it runs and kept afterwards. `notes` is what the last run left and
    the next one gets.
    """

    database: Database
    library: MemoryContext
    rules: Rules
    now: Callable[[], datetime]
    dry_run: bool = False
    done: dict[str, int] = field(default_factory=dict)
    notes: dict[str, object] = field(default_factory=dict)

    def count(self, **more: int) -> None:
        """Add to what was done."""
        for name, number in more.items():
            self.done[name] = self.done.get(name, 0) + number

    async def breathe(self) -> None:
        """Between two batches: let others work; a cancelled run ends here or at any other wait."""
        await asyncio.sleep(self.rules.pause)

    async def notebooks(self) -> list[NamespaceInfo]:
        """The namespaces that hold anything."""
        return [one for one in await self.library.namespaces.find(None) if not one.empty]


@dataclass(frozen=True, slots=True)
class Chore:
    """`every` is how long after a run the next is due; a run that failed is due again after `every` or ten minutes."""

    name: str
    about: str
    every: timedelta
    work: Callable[[Job], Awaitable[None]]
