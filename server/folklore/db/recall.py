"""The statements of a recall: two branches, the neighbours of what they found, and the records to answer with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from folklore.db.database import Database
from folklore.db.rows import memory_of, visibility
from folklore.model import Filters, Memory


@dataclass(frozen=True, slots=True)
class Hits:
    """What one branch found: ids best first with their scores, and how scores lie over all it considered."""

    ids: tuple[UUID, ...]
    scores: tuple[float, ...]
    mean: float
    deviation: float
    considered: int


@dataclass(frozen=True, slots=True)
class Beside:
    """`id` stands `gap` places from `seed` in the same session."""

    seed: UUID
    id: UUID
    gap: int


@dataclass(frozen=True, slots=True)
class Record:
    """A candidate whole, with its unit vector (float32, one row) unless it is owed."""

    memory: Memory
    vector: NDArray[np.float32] | None


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a question is asked: namespaces by id, filters, the time it is now."""

    namespaces: Mapping[UUID, str]
    filters: Filters
    now: datetime


class RecallStatements:
    """Each method is one statement on a connection of its own, so that branches can run at the same time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def dense(self, scope: Scope, *, model: UUID, query: NDArray[np.float32], fetch: int) -> Hits:
        """The nearest by cosine; scores are similarities in [-1, 1]."""
        async with self._database.session() as session:
            rows = await session.rows(
                "recall_dense",
                namespaces=list(scope.namespaces),
                model=model,
                query=HalfVector(query),
                fetch=fetch,
                **visibility(scope.filters, scope.now),
            )
        if not rows:
            return Hits((), (), 0.0, 0.0, 0)
        return Hits(
            ids=tuple(row["id"] for row in rows),
            scores=tuple(1.0 - row["distance"] for row in rows),
            mean=1.0 - rows[0]["mean"],
            deviation=rows[0]["deviation"],
            considered=rows[0]["considered"],
        )

    async def keyword(
        self,
        scope: Scope,
        *,
        text: str,
        languages: Sequence[str],
        total: int,
        fetch: int,
        budget: int,
        saturation: float,
        length_weight: float,
    ) -> Hits:
        """Those that share the rarest lexemes with the text; scores are idf-weighted and unbounded."""
        async with self._database.session() as session:
            rows = await session.rows(
                "recall_keyword",
                namespaces=list(scope.namespaces),
                text=text,
                languages=list(languages),
                total=float(total),
                fetch=fetch,
                budget=budget,
                saturation=saturation,
                length_weight=length_weight,
                **visibility(scope.filters, scope.now),
            )
        if not rows:
            return Hits((), (), 0.0, 0.0, 0)
        return Hits(
            ids=tuple(row["id"] for row in rows),
            scores=tuple(row["score"] for row in rows),
            mean=rows[0]["mean"],
            deviation=rows[0]["deviation"],
            considered=rows[0]["considered"],
        )

    async def neighbours(self, scope: Scope, ids: Sequence[UUID], reach: int) -> list[Beside]:
        """Who stood beside these in their sessions."""
        async with self._database.session() as session:
            rows = await session.rows(
                "recall_neighbours",
                namespaces=list(scope.namespaces),
                ids=list(ids),
                reach=reach,
                **visibility(scope.filters, scope.now),
            )
        return [Beside(row["seed"], row["id"], row["gap"]) for row in rows]

    async def records(self, scope: Scope, ids: Sequence[UUID], model: UUID | None) -> dict[UUID, Record]:
        """The candidates whole, by id; what was forgotten in between is missing."""
        async with self._database.session() as session:
            rows = await session.rows("recall_records", namespaces=list(scope.namespaces), ids=list(ids), model=model)
        found = {}
        for row in rows:
            memory = memory_of(row, scope.namespaces[row["namespace_id"]])
            found[memory.id] = Record(memory, _unit(row["vector"]))
        return found


def _unit(raw: bytes | None) -> NDArray[np.float32] | None:
    # halfvec's wire form: dimension and a reserved field (two bytes each), then big-endian half floats.
    if raw is None:
        return None
    vector = np.frombuffer(raw, dtype=">f2", offset=4).astype(np.float32)
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
