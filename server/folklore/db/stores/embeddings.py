"""Embedding debt: memories without a vector in a model, read and paid in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pgvector import HalfVector

from folklore.db.database import Database
from folklore.db.stores.memories import Vectors
from folklore.db.stores.models import register

# Before every id.
FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Owing:
    """A memory that owes its vector: the text to embed, and its digest at the time it was read."""

    id: UUID
    content: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many memories a namespace holds, the forgotten apart, and how many of them have their vector."""

    memories: int
    embedded: int

    @property
    def owed(self) -> int:
        """Those without."""
        return self.memories - self.embedded


class Debts:
    """What is owed in any model. Paging by id makes it resumable: whoever starts anew finds only what is still owed."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def batch(self, namespace: UUID, model: UUID, *, most: int, after: UUID = FIRST) -> list[Owing]:
        """The next memories after that id which owe their vector in a model, at most `most`. One statement.

        A text that no vector can be made of stays owed: go on after the last id of a batch, or it comes again for ever.
        """
        async with self._database.session("fresh") as session:
            rows = await session.rows("debt_batch", namespace=namespace, model=model, after=after, most=most)
        return [Owing(row["id"], row["content"], bytes(row["digest"])) for row in rows]

    async def pay(self, namespace: UUID, owing: Sequence[Owing], vectors: Vectors, now: datetime) -> int:
        """Write the vectors of these, in one transaction; how many were written.

        Left out are texts that changed since they were read, memories that somebody holds, and those whose vector is
        None.
        """
        held = [
            (item, HalfVector(vector))
            for item, vector in zip(owing, vectors.vectors, strict=True)
            if vector is not None
        ]
        if not held:
            return 0
        async with self._database.transaction() as session:
            await register(session, vectors.by, now)
            rows = await session.rows(
                "debt_pay",
                namespace=namespace,
                model=vectors.model,
                ids=[item.id for item, _ in held],
                digests=[item.digest for item, _ in held],
                vectors=[vector for _, vector in held],
            )
        return len(rows)

    async def count(self, namespaces: Sequence[UUID], model: UUID) -> dict[UUID, int]:
        """How many memories of each of these namespaces owe their vector in a model. One statement."""
        return {namespace: held.owed for namespace, held in (await self.coverage(namespaces, model)).items()}

    async def coverage(self, namespaces: Sequence[UUID], model: UUID) -> dict[UUID, Coverage]:
        """What each of these namespaces holds and owes in a model; an empty one is left out. One statement."""
        async with self._database.session("fresh") as session:
            rows = await session.rows("debt_count", namespaces=list(namespaces), model=model)
        return {row["namespace"]: Coverage(row["memories"], row["embedded"]) for row in rows}
