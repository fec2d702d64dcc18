"""Which memories say nearly the same as those just stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from folklore.db.database import Database
from folklore.model import Similar


class Similarities:
    """Distances between the vectors of one namespace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(
        self, namespace: UUID, ids: Sequence[UUID], model: UUID, *, nearest: float, newest: int, now: datetime
    ) -> dict[UUID, tuple[Similar, ...]]:
        """Who else is in force and at least as near as the cosine `nearest`, three at most each. One statement."""
        async with self._database.session("fresh") as session:
            rows = await session.rows(
                "memories_similar",
                namespace=namespace,
                ids=list(ids),
                model=model,
                distance=1 - nearest,
                newest=newest,
                now=now,
            )
        found: dict[UUID, tuple[Similar, ...]] = {}
        for row in rows:
            other = Similar(row["id"], round(row["similarity"], 3), row["content"], row["author"])
            found[row["memory_id"]] = (*found.get(row["memory_id"], ()), other)
        return found
