"""Statements of the background jobs on memories: forget expired ones, erase forgotten ones, write quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.database import Database, Session


@dataclass(frozen=True, slots=True)
class UsedMemory:
    """A memory that was recalled or confirmed, with everything that its quality is computed from."""

    id: UUID
    kind: str
    importance: float | None
    quality: float | None
    recalls: int
    confirmations: int
    used_at: datetime


@dataclass(frozen=True, slots=True)
class SizedTable:
    """A table with its sizes in bytes, and that of the whole database; `rows` is an estimate, or None."""

    name: str
    rows: int | None
    table_bytes: int
    index_bytes: int
    database_bytes: int


class Maintenance:
    """Statements over one namespace each, in batches.

    Rows that another transaction has locked are skipped, so that jobs and requests never wait for each other.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count_expired(self, namespace: UUID, now: datetime) -> int:
        """Count the memories that have expired and are not forgotten yet."""
        return await self._count("maintenance/count_expired", namespace=namespace, now=now)

    async def forget_expired(self, namespace: UUID, now: datetime, batch: int) -> int:
        """Forget at most `batch` expired memories, which undo can restore, and return how many."""
        return len(
            await self._database.rows("maintenance/forget_expired", "fresh", namespace=namespace, now=now, batch=batch)
        )

    async def count_forgotten(self, namespace: UUID, before: datetime) -> int:
        """Count the memories forgotten before a time."""
        return await self._count("maintenance/count_forgotten", namespace=namespace, before=before)

    async def erase_forgotten(self, namespace: UUID, before: datetime, batch: int) -> int:
        """Erase at most `batch` memories forgotten before a time, in one transaction, and return how many rows went.

        Reflections derived from them are erased too, since they repeat their words.
        """
        async with self._database.transaction() as session:
            rows = await session.rows("maintenance/lock_forgotten", namespace=namespace, before=before, batch=batch)
            ids = [row["id"] for row in rows]
            return len(await erase(session, namespace, ids)) if ids else 0

    async def used_memories(self, namespace: UUID, *, after: UUID, batch: int) -> list[UsedMemory]:
        """Return the next memories by id that were recalled or confirmed at least once."""
        return await self._database.all(
            UsedMemory, "maintenance/used_memories", "fresh", namespace=namespace, after=after, batch=batch
        )

    async def write_qualities(self, namespace: UUID, scored: Sequence[tuple[UsedMemory, float]]) -> int:
        """Write qualities in one statement and return how many rows took theirs."""
        if not scored:
            return 0
        rows = await self._database.rows(
            "maintenance/write_quality",
            namespace=namespace,
            ids=[memory.id for memory, _ in scored],
            uses=[memory.recalls + memory.confirmations for memory, _ in scored],
            qualities=[quality for _, quality in scored],
        )
        return len(rows)

    async def sizes(self) -> list[SizedTable]:
        """Return the tables, the largest first. One statement."""
        return await self._database.all(SizedTable, "maintenance/sizes", "fresh")

    async def _count(self, name: str, **values: object) -> int:
        row = await self._database.row(name, "fresh", **values)
        return 0 if row is None else int(row["count"])


async def erase(session: Session, namespace: UUID, ids: Sequence[UUID]) -> list[UUID]:
    """Erase memories within the caller's transaction, which has locked them, and return the ids of the rows that went.

    Embeddings, postings, relations, usage and the reflections derived from them go too. Five statements.
    """
    derived = await session.rows("memories/derived", namespace=namespace, ids=ids)
    every = sorted({*ids, *(row["id"] for row in derived)})
    # Postings are found by the words of the memory, so they are deleted before it.
    await session.rows("postings/delete", namespace=namespace, ids=every)
    await session.rows("embeddings/delete_by_id", namespace=namespace, ids=every)
    await session.rows("memories/clear_successor", namespace=namespace, ids=every)
    return [row["id"] for row in await session.rows("memories/delete", namespace=namespace, ids=every)]
