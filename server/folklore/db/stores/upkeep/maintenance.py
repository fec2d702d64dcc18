"""Statements of the background jobs on memories: forget expired ones, erase forgotten ones, write quality."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.database import Session
from folklore.db.rows import Value, made
from folklore.db.store import Store, affected, many, number


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


class Maintenance(Store):
    """Statements over one namespace each, in batches.

    Rows that another transaction has locked are skipped, so that jobs and requests never wait for each other.
    """

    count_expired = number("fresh")
    forget_expired = affected("fresh")
    count_forgotten = number("fresh")
    used_memories = many(UsedMemory, "fresh")
    write_quality = affected()

    async def sizes(self, table: type[Value]) -> tuple[int, list[Value]]:
        """Return the bytes of the database, and each table with its sizes. One statement."""
        rows = await self.rows("maintenance/sizes", "fresh")
        return rows[0]["database_bytes"], [made(table, row) for row in rows]

    async def erase_forgotten(
        self, namespace: UUID, until: datetime, batch: int
    ) -> int:
        """Erase at most `batch` memories forgotten before a time, in one transaction, and return how many rows went.

        Reflections derived from them are erased too, since they repeat their words.
        """
        async with self._database.transaction() as session:
            rows = await session.rows(
                "maintenance/lock_forgotten",
                namespace=namespace,
                before=until,
                batch=batch,
            )
            if not rows:
                return 0
            ids = [row["id"] for row in rows]
            return len(await erase(session, namespace, ids))


async def erase(session: Session, namespace: UUID, ids: Sequence[UUID]) -> list[UUID]:
    """Erase memories within the caller's transaction, which has locked them, and return the ids of the rows that went.

    Embeddings, postings, relations, usage and the reflections derived from them go too. Five statements.
    """
    derived = await session.rows("memories/derived", namespace=namespace, ids=ids)
    every = set(ids)
    every.update(row["id"] for row in derived)
    where = {"namespace": namespace, "ids": sorted(every)}
    # Postings are found by the words of the memory, so they are deleted before it.
    await session.rows("postings/delete", **where)
    await session.rows("embeddings/delete_by_id", **where)
    await session.rows("memories/clear_successor", **where)
    deleted = await session.rows("memories/delete", **where)
    return [row["id"] for row in deleted]
