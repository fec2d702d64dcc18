"""Memories that owe their vector: found, and paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pgvector import HalfVector

from folklore.db.database import Database
from folklore.db.memories import Vectors

FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Owing:
    """A memory without a vector; `digest` tells whether its text is still this one."""

    id: UUID
    digest: bytes
    content: str


class Debts:
    """Which memories have no vector in a model. Forgotten ones owe nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, namespaces: Sequence[UUID], model: UUID) -> Mapping[UUID, int]:
        """How many owe, by namespace; one statement that reads the keys of them all."""
        async with self._database.session("fresh") as session:
            rows = await session.rows("debt_count", namespaces=list(namespaces), model=model)
        return {row["namespace_id"]: row["owed"] for row in rows}

    async def batch(self, namespace: UUID, model: UUID, *, after: UUID, most: int) -> list[Owing]:
        """The next ones by id; begin with `after` = FIRST."""
        async with self._database.session("fresh") as session:
            rows = await session.rows("debt_batch", namespace=namespace, model=model, after=after, batch=most)
        return [Owing(row["id"], bytes(row["digest"]), row["content"]) for row in rows]

    async def pay(self, namespace: UUID, batch: Sequence[Owing], vectors: Vectors, now: datetime) -> int:
        """Write the vectors of a batch in one transaction of two statements; how many were written.

        Not written: a vector of a text that changed meanwhile, of a memory that is being changed, one that is there by
        now, and None (a text without a known word has no direction).
        """
        held = [(item, vector) for item, vector in zip(batch, vectors.vectors, strict=True) if vector is not None]
        if not held:
            return 0
        async with self._database.transaction() as session:
            await session.rows(
                "models_insert",
                id=vectors.model,
                provider=vectors.provider,
                name=vectors.name,
                dimensions=vectors.dimensions,
                now=now,
            )
            rows = await session.rows(
                "debt_pay",
                namespace=namespace,
                model=vectors.model,
                ids=[item.id for item, _ in held],
                digests=[item.digest for item, _ in held],
                vectors=[HalfVector(vector) for _, vector in held],
            )
        return len(rows)
