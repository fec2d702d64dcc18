"""Statistics of the query planner, renewed sooner than autovacuum, which looks once a minute, would."""

import asyncio

from folklore.background import in_background
from folklore.db.database import Database
from folklore.errors import FolkloreError
from folklore.log import get_logger

log = get_logger(__name__)

# Plans made for an empty table are slow until it is analyzed; from so many rows on the difference is noticeable.
_FIRST = 1_000


class PlannerStatistics:
    """Counts the memories that this process stores and analyzes at 1,000, 2,000, 4,000 … of them, after the answer.

    The interval doubles, so the cost per memory stays constant. A role that may not analyze waits for autovacuum.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stored = 0
        self._next = _FIRST
        self._running: asyncio.Task[None] | None = None

    def stored(self, count: int) -> None:
        """Count memories that were committed; start analyzing in the background when it is due."""
        self._stored += count
        if self._stored >= self._next and (
            self._running is None or self._running.done()
        ):
            self._next = 2 * self._stored
            self._running = in_background(self._analyze(), "folklore-analyze")

    async def analyze(self) -> None:
        """Analyze every large table now."""
        await self._database.rows("server/analyze", "fresh")

    async def _analyze(self) -> None:
        try:
            await self.analyze()
        except FolkloreError as error:
            log.info("analyze_failed", reason=error.message)
