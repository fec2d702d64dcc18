"""A standby of the database, which answers questions while it keeps up."""

import asyncio
from dataclasses import dataclass, field
from time import monotonic

from folklore.background import in_background
from folklore.db.database import Database
from folklore.errors import FolkloreError
from folklore.log import Outage

# Seconds that a question waits until the standby has what is committed, between two looks, and in which it is left out.
_WAIT = 0.25
_STEP = 0.002
_PAUSE = 5.0


@dataclass(slots=True)
class Standby:
    """The database that replays what `primary` commits; no standby of a cluster, whose nodes have a log each.

    Each question asks the primary how far its log is, so that it sees every acknowledged write, of other servers too.
    """

    primary: Database
    database: Database
    _left_out_until: float = 0.0
    _behind: Outage = field(
        default_factory=lambda: Outage("standby_left_out", "standby_used_again")
    )

    async def has_all(self) -> bool:
        """Return True when all that is committed by now is replayed, False if that takes long. Two statements."""
        if monotonic() < self._left_out_until:
            return False
        period = self._behind.period
        try:
            async with asyncio.timeout(_WAIT):
                position = await self.primary.row("server/position")
                while position is not None:
                    # It goes on: a connection that takes longer serves the next question.
                    looking = in_background(
                        self.database.row("server/replayed", **position),
                        "folklore-standby",
                    )
                    looking.add_done_callback(
                        lambda task: task.cancelled() or task.exception()
                    )
                    if await asyncio.shield(looking):
                        break
                    await asyncio.sleep(_STEP)
        except (
            TimeoutError,
            FolkloreError,
        ) as error:  # such as a conflict with its replay
            self.leave_out(error)
            return False
        self._behind.over(period)
        return position is not None

    def leave_out(self, error: Exception) -> None:
        """Ask it nothing for some seconds."""
        self._left_out_until = monotonic() + _PAUSE
        self._behind.failed(type(error).__name__, self._behind.period)
