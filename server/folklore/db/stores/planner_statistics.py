"""Keep the planner's statistics near the truth where autovacuum, which looks once a minute, would come too late."""

from __future__ import annotations

import asyncio

import structlog

from folklore.db.database import Database
from folklore.errors import FolkloreError

log = structlog.get_logger(__name__)

# A table that was empty when its plans were made answers slowly until it is analyzed; so many rows are noticed.
_FIRST = 1_000


class PlannerStatistics:
    """Counts what this process stores and analyzes at 1,000, 2,000, 4,000 … memories, behind the answer.

    It doubles, so the cost a memory stays constant. A role that may not analyze loses nothing but the head start.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored = 0
        self._next = _FIRST
        self._running: asyncio.Task[None] | None = None

    def stored(self, count: int) -> None:
        """So many memories were committed."""
        self._stored += count
        if self._stored >= self._next and (self._running is None or self._running.done()):
            self._next = 2 * self._stored
            self._running = asyncio.create_task(self._analyze(), name="folklore-analyze")

    async def analyze(self) -> None:
        """Analyze now."""
        async with self._database.session("fresh") as session:
            await session.rows("analyze")

    async def _analyze(self) -> None:
        try:
            await self.analyze()
        except FolkloreError as error:
            log.info("not_analyzed", reason=error.message)
