"""What upkeep does to memories: forgets what expired, erases what was forgotten long ago, writes quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.database import Database, Session


@dataclass(frozen=True, slots=True)
class Worth:
    """What the quality of a memory is made of."""

    id: UUID
    kind: str
    tags: tuple[str, ...]
    importance: float | None
    quality: float | None
    recalls: int
    confirmations: int
    used_at: datetime


class Hygiene:
    """Statements over one namespace each, in batches. Rows that somebody holds are passed over: nobody waits for
    upkeep, and upkeep for nobody.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def expired(self, namespace: UUID, now: datetime) -> int:
        """How many are past their time and not forgotten."""
        return await self._count("expiry_due", namespace=namespace, now=now)

    async def forget_expired(self, namespace: UUID, now: datetime, batch: int) -> int:
        """Forget some of them, softly; how many."""
        async with self._database.session("fresh") as session:
            return len(await session.rows("expiry_forget", namespace=namespace, now=now, batch=batch))

    async def forgotten(self, namespace: UUID, before: datetime) -> int:
        """How many were forgotten before a time."""
        return await self._count("erase_waiting", namespace=namespace, before=before)

    async def erase_forgotten(self, namespace: UUID, before: datetime, batch: int) -> int:
        """Erase some of them in one transaction, with all that hangs on them; how many memories.

        Reflections made from them go too: they repeat their words.
        """
        async with self._database.transaction() as session:
            rows = await session.rows("erase_due", namespace=namespace, before=before, batch=batch)
            ids = [row["id"] for row in rows]
            return await erase(session, namespace, ids) if ids else 0

    async def worths(self, namespace: UUID, *, after: UUID, batch: int) -> list[Worth]:
        """The next memories by id that were of use at least once."""
        async with self._database.session("fresh") as session:
            rows = await session.rows("quality_read", namespace=namespace, after=after, batch=batch)
        return [
            Worth(
                id=row["id"],
                kind=row["kind"],
                tags=tuple(row["tags"]),
                importance=row["importance"],
                quality=row["quality"],
                recalls=row["recall_count"],
                confirmations=row["confirmed_count"],
                used_at=row["used_at"],
            )
            for row in rows
        ]

    async def write_qualities(self, namespace: UUID, scored: Sequence[tuple[Worth, float | None]]) -> int:
        """Write qualities; how many. One statement."""
        async with self._database.session() as session:
            rows = await session.rows(
                "quality_write",
                namespace=namespace,
                ids=[worth.id for worth, _ in scored],
                uses=[worth.recalls + worth.confirmations for worth, _ in scored],
                qualities=[value for _, value in scored],
            )
        return len(rows)

    async def _count(self, name: str, **values: object) -> int:
        async with self._database.session("fresh") as session:
            row = await session.row(name, **values)
        return 0 if row is None else int(row["count"])


async def erase(session: Session, namespace: UUID, ids: Sequence[UUID]) -> int:
    """Erase memories within the caller's transaction, which holds them: rows, vectors, postings, relations, usage, and
    the reflections that repeat their words. Five statements.
    """
    derived = await session.rows("memories/derived", namespace=namespace, ids=list(ids))
    every = sorted({*ids, *(row["id"] for row in derived)})
    # Postings are found by the words of the row, so they go before it.
    await session.rows("transfer_postings_delete", namespace=namespace, ids=every)
    await session.rows("transfer_embeddings_delete", namespace=namespace, ids=every)
    await session.rows("memories/clear_successor", namespace=namespace, ids=every)
    return len(await session.rows("memories/delete", namespace=namespace, ids=every))
