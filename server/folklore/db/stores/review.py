"""Memories that want a person's decision: statements of the review, each over one namespace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from folklore.db.database import Database

Pair = tuple[UUID, UUID]


class ReviewStatements:
    """The statements of the review. Every method is one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, namespace: UUID, *, after: UUID | None, most: int, now: datetime) -> list[UUID]:
        """Return the next memories in force, from the newest to the oldest."""
        rows = await self._database.rows("review/page", "fresh", namespace=namespace, after=after, most=most, now=now)
        return [row["id"] for row in rows]

    async def settled(self, namespace: UUID, ids: Sequence[UUID], types: Sequence[str]) -> set[frozenset[UUID]]:
        """Return the pairs among these memories that a relation of one of the types joins."""
        rows = await self._database.rows("review/settled", "fresh", namespace=namespace, ids=ids, types=types)
        return {frozenset((row["from_id"], row["to_id"])) for row in rows}

    async def contradictions(self, namespace: UUID, contradicts: str, *, kept: str, most: int) -> list[Pair]:
        """Return the latest pairs in force that a relation `contradicts` joins, and none of the type `kept`."""
        rows = await self._database.rows(
            "review/contradictions", "fresh", namespace=namespace, contradicts=contradicts, kept=kept, most=most
        )
        return [(row["from_id"], row["to_id"]) for row in rows]

    async def unused(self, namespace: UUID, *, before: datetime, reviewed: str, most: int, now: datetime) -> list[UUID]:
        """Return the memories that were not used since a time; metadata has the day of a review under `reviewed`."""
        day = before.date().isoformat()
        rows = await self._database.rows(
            "review/unused", "fresh", namespace=namespace, before=before, day=day, reviewed=reviewed, most=most, now=now
        )
        return [row["id"] for row in rows]
