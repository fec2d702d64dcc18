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
class Form:
    """One reading of a term: its lexemes in order, their places, and in how many memories each is."""

    term: int
    lexemes: tuple[str, ...]
    positions: tuple[int, ...]
    documents: tuple[int, ...]


class Candidate:
    """A memory that may answer. Most never do, so the whole memory and its vector are made when asked for."""

    __slots__ = ("_namespace", "_row", "id", "place")

    def __init__(self, row: Row, namespace: str) -> None:
        self._row = row
        self._namespace = namespace
        self.id: UUID = row["id"]
        session, position = row["session"], row["position"]
        # (namespace, session), position in it; None without a session.
        self.place: tuple[tuple[UUID, str], int] | None = (
            None if session is None or position is None else ((row["namespace_id"], session), position)
        )

    @property
    def memory(self) -> Memory:
        """The memory whole."""
        return memory_of(self._row, self._namespace)

    @property
    def content(self) -> str:
        """Its text."""
        text: str = self._row["content"]
        return text

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """Its vector as stored (float32), or None where it is owed."""
        raw: bytes | None = self._row["vector"]
        # halfvec's wire form: dimension and a reserved field (two bytes each), then big-endian half floats.
        return None if raw is None else np.frombuffer(raw, dtype=">f2", offset=4).astype(np.float32)


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

    async def terms(self, scope: Scope, *, terms: Sequence[str], languages: Sequence[str], bound: int) -> list[Form]:
        """How the terms of an expression read, with the document frequency of every lexeme."""
        async with self._database.session() as session:
            rows = await session.rows(
                "search_terms",
                namespaces=list(scope.namespaces),
                terms=list(terms),
                languages=list(languages),
                bound=bound,
            )
        return [
            Form(row["place"] - 1, tuple(row["lexemes"]), tuple(row["positions"]), tuple(row["documents"]))
            for row in rows
        ]

    async def expression(
        self, scope: Scope, *, expression: str, weights: Mapping[str, float], prior: float, fetch: int, bound: int
    ) -> Hits:
        """Those that satisfy a tsquery, by what the weighted lexemes weigh in them, then the newest."""
        async with self._database.session() as session:
            rows = await session.rows(
                "search_expression",
                namespaces=list(scope.namespaces),
                expression=expression,
                lexemes=list(weights.keys()),
                weights=list(weights.values()),
                prior=prior,
                fetch=fetch,
                bound=bound,
                **visibility(scope.filters, scope.now),
            )
        return _hits(rows)

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

    async def pool(self, scope: Scope, *, ids: Sequence[UUID], reach: int, model: UUID | None) -> dict[UUID, Candidate]:
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
        return {row["id"]: Candidate(row, scope.namespaces[row["namespace_id"]]) for row in rows}


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
