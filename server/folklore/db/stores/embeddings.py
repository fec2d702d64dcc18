"""The embeddings table: pending embeddings, coverage, near-duplicates, and the HNSW index."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from pgvector import HalfVector

from folklore.db.database import Plans
from folklore.db.store import Store, many, pairs
from folklore.db.stores.memories import Vectors, embedding_rows
from folklore.db.stores.models import register
from folklore.errors import DatabaseUnavailable, Refused
from folklore.lazy import NDArray, numpy as np

# Sorts before every id.
FIRST = UUID(int=0)

# An older pgvector may build corrupt HNSW indexes, in parallel or at a vacuum.
_OLDEST_PGVECTOR = (0, 8, 4)
# Memories of a call that finds their neighbours by a kept plan: planning takes .9 ms, for a token 3.
_FEW = 50


@dataclass(frozen=True, slots=True)
class PendingMemory:
    """A memory without an embedding: its text and cues, and the digest that the text had when it was read."""

    id: UUID
    content: str
    digest: bytes
    cues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PendingCues:
    """A memory whose cues have no vector, while its text has one."""

    id: UUID
    cues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Subjects:
    """The memories `of` which others on their subjects are looked for: at most `most` of each, down to a cosine."""

    of: Sequence[UUID] = ()
    most: int = 0
    least: float = 1.0


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A memory near to another one, `memory_id`: the cosine of their texts, its text, cues and time for order.

    `recent` if it is among the newest that all were compared with. `settled` if a relation joins the two, other than a
    contradiction; known of memories that `subjects` names.
    """

    memory_id: UUID
    id: UUID
    cosine: float
    content: str
    cues: tuple[str, ...]
    when: datetime
    author: str
    changed_by: str | None
    recent: bool
    settled: bool


@dataclass(frozen=True, slots=True)
class Coverage:
    """The number of memories in a namespace, without forgotten ones, and of those with an embedding in one model."""

    memories: int
    embedded: int

    @property
    def pending(self) -> int:
        """The number of memories without an embedding."""
        return self.memories - self.embedded


class Embeddings(Store):
    """The embeddings of all models. Every method but `backfill`, `write_cues` and `delete` is one statement."""

    pending = many(PendingMemory, "fresh", after=FIRST)
    cues_pending = many(PendingCues, "fresh", after=FIRST, ids=None)
    sample = pairs(UUID, str, "fresh")

    async def backfill(
        self,
        namespace: UUID,
        pending: Sequence[PendingMemory],
        vectors: Vectors,
        now: datetime,
    ) -> int:
        """Write the embeddings of a batch in one transaction and return how many memories have one now.

        Left out are texts that changed since they were read, memories that another transaction has locked, and
        memories whose vector is None.
        """
        embedded = []
        ids = []
        digests = []
        phrases = []
        for memory, vector in zip(pending, vectors.vectors, strict=True):
            if vector is None:
                continue
            embedded.append((memory.id, vector))
            ids.append(memory.id)
            digests.append(memory.digest)
            phrases.append("\n".join(memory.cues))
        if not embedded:
            return 0
        of, columns = embedding_rows(embedded)
        async with self._database.transaction() as session:
            await register(session, vectors.by, now)
            rows = await session.rows(
                "embeddings/backfill",
                namespace=namespace,
                model=vectors.model,
                ids=ids,
                digests=digests,
                phrases=phrases,
                of=of,
                **columns,
            )
        return sum(row["passage"] == 0 for row in rows)

    async def write_cues(
        self, namespace: UUID, pending: Sequence[PendingCues], vectors: Vectors
    ) -> int:
        """Write the vectors of cues and return how many memories have one now.

        Left out are cues that changed since they were read, memories that another transaction has locked, and those
        whose vector is None.
        """
        ids = []
        phrases = []
        halves = []
        for memory, vector in zip(pending, vectors.vectors, strict=True):
            if vector is None:
                continue
            ids.append(memory.id)
            phrases.append("\n".join(memory.cues))
            halves.append(HalfVector(vector.vector))
        if not ids:
            return 0
        async with self._database.transaction() as session:
            rows = await session.rows(
                "embeddings/cues",
                namespace=namespace,
                model=vectors.model,
                ids=ids,
                phrases=phrases,
                vectors=halves,
            )
        return len(rows)

    async def coverage(
        self, namespaces: Sequence[UUID], model: UUID
    ) -> dict[UUID, Coverage]:
        """Count memories and embeddings in a model exactly; a namespace without memories is left out."""
        rows = await self._database.rows(
            "embeddings/coverage", "fresh", namespaces=namespaces, model=model
        )
        by_namespace = {}
        for row in rows:
            counts = Coverage(row["memories"], row["embedded"])
            by_namespace[row["namespace"]] = counts
        return by_namespace

    async def neighbours(
        self,
        namespace: UUID,
        ids: Sequence[UUID],
        model: UUID,
        *,
        newest: int,
        now: datetime,
        similar: float | None = None,
        subjects: Subjects = Subjects(),
    ) -> list[Neighbour]:
        """Return the nearest others in force of each memory, by cosine.

        At most three with a cosine of `similar` or more, None for none, and what `subjects` asks for. Compares with the
        `newest` memories of the namespace; similar ones are looked for among older memories that share a rare word too.
        """
        statement = "embeddings/neighbours"
        plans: Plans = "scan"
        if len(ids) == 1:
            statement += ":single"
        elif len(ids) > _FEW:
            plans = "fresh"
        rows = await self._database.rows(
            statement,
            plans,
            namespace=namespace,
            ids=ids,
            asked=subjects.of,
            model=model,
            similar=similar,
            most=subjects.most,
            least=subjects.least,
            newest=newest,
            now=now,
        )
        return [  # not by `made`: a store reads ten
            Neighbour(
                memory_id=row["memory_id"],
                id=row["id"],
                cosine=row["cosine"],
                content=row["content"],
                cues=tuple(row["cues"]),
                when=row["when"],
                author=row["author"],
                changed_by=row["changed_by"],
                recent=row["recent"],
                settled=row["settled"],
            )
            for row in rows
        ]

    async def nearest(
        self, namespace: UUID, model: UUID, vector: NDArray[np.float32], most: int
    ) -> list[UUID]:
        """Return the memories whose embeddings are nearest by cosine, visible to a recall or not."""
        rows = await self.rows(
            "embeddings/nearest",
            "fresh",
            namespace=namespace,
            model=model,
            query=HalfVector(vector),
            most=most,
        )
        return [row["memory_id"] for row in rows]

    async def delete(self, namespace: UUID, model: UUID, *, most: int) -> int:
        """Delete at most `most` embeddings of a model in one transaction and return how many were deleted."""
        async with self._database.transaction() as session:
            rows = await session.rows(
                "embeddings/delete", namespace=namespace, model=model, most=most
            )
        return len(rows)


@dataclass(frozen=True, slots=True)
class IndexChange:
    """Command that drops or builds an HNSW index; for a build, one that undoes it, and the kilobytes that it takes."""

    action: Literal["drop", "build"]
    command: str
    undo: str
    memory: int


class VectorIndexes(Store):
    """The HNSW index over all vectors of the active model. Reads and writes go on while it is built."""

    # What to drop, and then what to build for a model of at least `threshold` vectors (0: nothing).
    index_changes = many(IndexChange, "fresh")

    async def require_pgvector(self) -> None:
        """Raise Refused if this version of pgvector may build indexes that lose rows."""
        row = await self._database.row("server/info", "fresh")
        version = (row and row["pgvector"]) or ""
        numbers = [int(digits) for digits in re.findall(r"\d+", version)]
        if tuple(numbers[:3]) < _OLDEST_PGVECTOR:
            raise Refused(
                f"pgvector {version} may build corrupt HNSW indexes; search stays exact.",
                hint="Install pgvector 0.8.4 or newer and run `alter extension vector update`, or set hnsw_from: 0.",
            )

    async def apply(self, change: IndexChange) -> None:
        """Make a change. A build that is cut off leaves an invalid index, which the next changes replace.

        Several processes build, or one, where they may not share as much memory, as in most containers.
        """
        try:
            async with self._database.build_session(change.memory) as session:
                await session.execute(change.command)
        except DatabaseUnavailable:
            async with self._database.build_session() as session:
                await session.execute(change.undo)
                await session.execute(change.command)
