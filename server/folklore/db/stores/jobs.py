"""Who is at which chore of upkeep, and how the last run of each went: one row a chore, taken by a lease."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from folklore.db.database import Database
from folklore.model import JsonObject

Outcome = Literal["done", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class ChoreState:
    """What is known of a chore; `done` counts what the last run did, or the present one has done so far."""

    name: str
    holder: str | None = None
    leased_until: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    seconds: float | None = None
    outcome: Outcome | None = None
    done: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    next_due: datetime | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run ended; `notes` is what the next one must know."""

    outcome: Outcome
    seconds: float
    done: Mapping[str, int]
    next_due: datetime
    notes: JsonObject
    error: str | None = None


class Chores:
    """The chores table. Every method is one statement."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, chore: str, holder: str, *, now: datetime, until: datetime, forced: bool = False
    ) -> dict[str, object] | None:
        """Take a chore that nobody has and that is due (`forced`: due or not); its notes, or None if it is not to be
        had. Two that claim at the same time: the second waits for the first's commit and gets None.
        """
        async with self._database.session() as session:
            row = await session.row("chores_claim", chore=chore, holder=holder, now=now, until=until, forced=forced)
        if row is None:
            return None
        notes: dict[str, object] = {} if row["notes"] is None else json.loads(row["notes"])
        return notes

    async def renew(self, chore: str, holder: str, *, until: datetime, done: Mapping[str, int]) -> bool:
        """Keep a chore for longer; False when another has it now."""
        # Not among the connections that a chore's own transactions hold.
        async with self._database.session("fresh") as session:
            row = await session.row(
                "chores_renew", chore=chore, holder=holder, until=until, done=json.dumps(dict(done))
            )
        return row is not None

    async def finish(self, chore: str, holder: str, finished: Finished, *, now: datetime) -> bool:
        """Give a chore back; False when another has it, and this run is not recorded."""
        async with self._database.session() as session:
            row = await session.row(
                "chores_finish",
                chore=chore,
                holder=holder,
                now=now,
                seconds=finished.seconds,
                outcome=finished.outcome,
                done=json.dumps(dict(finished.done)),
                error=finished.error,
                next_due=finished.next_due,
                notes=json.dumps(dict(finished.notes)),
            )
        return row is not None

    async def all(self) -> dict[str, ChoreState]:
        """Every chore that ever ran, by name."""
        async with self._database.session() as session:
            rows = await session.rows("chores_read")
        return {
            row["name"]: ChoreState(
                name=row["name"],
                holder=row["holder"],
                leased_until=row["leased_until"],
                started_at=row["started_at"],
                finished_at=row["finished_at"],
                seconds=row["seconds"],
                outcome=row["outcome"],
                done={} if row["done"] is None else json.loads(row["done"]),
                error=row["error"],
                next_due=row["next_due"],
            )
            for row in rows
        }
