"""Background job: a name, an interval, and work in small batches that can be cancelled between any two of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from folklore.backup import Store
from folklore.callers import Caller
from folklore.db.database import Database
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.memory import MemoryContext

# The author of everything the jobs write.
AUTHOR = Caller("folklore", agent="jobs")


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Settings of the jobs, as they need them."""

    # Forgotten memories and deleted namespaces are erased after this time.
    retention: timedelta = timedelta(days=30)
    # Entries of the usage log and the audit log are deleted after this time.
    keep: timedelta = timedelta(days=365)
    # From so many embeddings on, the active model has an HNSW index; 0: never.
    hnsw_from: int = 20_000
    # Opens the database to back up and the folder of its backups, of which the newest so many are kept.
    backed_up: Callable[[], Awaitable[Store]] | None = None
    backups: int = 7
    # Pause after each batch, in seconds, in which requests use database and processor.
    pause: float = 0.02


@dataclass(frozen=True, slots=True)
class JobRun:
    """Run of a job. With `dry_run` it counts and writes nothing.

    `done` counts the work by name, to be shown while the run goes on and recorded afterwards. `notes` come from the
    last run and go to the next one.
    """

    database: Database
    context: MemoryContext
    options: JobOptions
    now: Callable[[], datetime]
    dry_run: bool = False
    done: dict[str, int] = field(default_factory=dict)
    notes: dict[str, object] = field(default_factory=dict)

    def count(self, **more: int) -> None:
        """Add to the counts."""
        for name, number in more.items():
            self.done[name] = self.done.get(name, 0) + number

    async def pause(self) -> None:
        """Pause between two batches; a cancelled run ends here or at any other wait."""
        await asyncio.sleep(self.options.pause)

    async def batches(self, name: str, batch: Callable[[], Awaitable[int]]) -> None:
        """Work on batch after batch, each counted under this name, until one finds nothing."""
        while number := await batch():
            self.count(**{name: number})
            await self.pause()

    async def namespaces(self) -> list[NamespaceInfo]:
        """Return the namespaces that hold memories."""
        return [
            namespace
            for namespace in await self.context.namespaces.find(None)
            if not namespace.empty
        ]


@dataclass(frozen=True, slots=True)
class Job:
    """A background job, due again `every` after a run, or ten minutes after one that failed.

    An optional job runs in the background only if the settings list it.
    """

    name: str
    about: str
    every: timedelta
    work: Callable[[JobRun], Coroutine[Any, Any, None]]
    optional: bool = False
