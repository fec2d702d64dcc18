"""The statements of a recall: how the question reads, its two branches, and the candidates with their neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from folklore.db.database import Database, Row
from folklore.db.rows import memory_of, visibility
from folklore.model import Filters, Memory


@dataclass(frozen=True, slots=True)
class Hits:
    """What one branch found, best first, and how scores lie over everything it considered.

    `total` and `squares` sum the scores and their squares over `considered` memories; `known` holds the scores of the
    best of them (far more than were fetched, and whether or not they pass the filters), for candidates that another
    branch proposed.
    """

    ids: tuple[UUID, ...]
    scores: tuple[float, ...]
    total: float
    squares: float
    considered: int
    known: Mapping[UUID, float]


NOTHING = Hits((), (), 0.0, 0.0, 0, {})


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

    async def lexemes(self, scope: Scope, *, text: str, languages: Sequence[str], bound: int) -> dict[str, int]:
        """How the text reads in these languages: each lexeme with its document frequency in scope, up to `bound`."""
        async with self._database.session() as session:
            rows = await session.rows(
                "recall_lexemes",
                namespaces=list(scope.namespaces),
                text=text,
                languages=list(languages),
                bound=bound,
            )
        return {row["lexeme"]: row["documents"] for row in rows}

    async def dense(self, scope: Scope, *, model: UUID, query: NDArray[np.float32], fetch: int, known: int) -> Hits:
        """The nearest by cosine; scores are similarities in [-1, 1]."""
        async with self._database.session() as session:
            rows = await session.rows(
                "recall_dense",
                namespaces=list(scope.namespaces),
                model=model,
                query=HalfVector(query),
                fetch=fetch,
                known=known,
                **visibility(scope.filters, scope.now),
            )
        return _hits(rows)

    async def keyword(
        self, scope: Scope, *, weights: Mapping[str, float], prior: float, fetch: int, known: int
    ) -> Hits:
        """Those in which the weighted lexemes weigh most; scores are positive and unbounded."""
        async with self._database.session() as session:
            rows = await session.rows(
                "recall_keyword",
                namespaces=list(scope.namespaces),
                lexemes=list(weights.keys()),
                weights=list(weights.values()),
                prior=prior,
                fetch=fetch,
                known=known,
                **visibility(scope.filters, scope.now),
            )
        return _hits(rows)

    async def pool(self, scope: Scope, *, ids: Sequence[UUID], reach: int, model: UUID | None) -> dict[UUID, Record]:
        """The candidates whole, and whoever stands at most `reach` places beside one in its session."""
        async with self._database.session() as session:
            rows = await session.rows(
                "recall_pool",
                namespaces=list(scope.namespaces),
                ids=list(ids),
                reach=reach,
                model=model,
                **visibility(scope.filters, scope.now),
            )
        return {
            row["id"]: Record(memory_of(row, scope.namespaces[row["namespace_id"]]), _unit(row["vector"]))
            for row in rows
        }


def _hits(rows: Sequence[Row]) -> Hits:
    if not rows:
        return NOTHING
    first = rows[0]
    return Hits(
        ids=tuple(row["id"] for row in rows),
        scores=tuple(row["score"] for row in rows),
        total=first["total"],
        squares=first["squares"],
        considered=first["considered"],
        known=dict(zip(first["known_ids"], first["known_scores"], strict=True)),
    )


def _unit(raw: bytes | None) -> NDArray[np.float32] | None:
    # halfvec's wire form: dimension and a reserved field (two bytes each), then big-endian half floats.
    if raw is None:
        return None
    vector = np.frombuffer(raw, dtype=">f2", offset=4).astype(np.float32)
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
