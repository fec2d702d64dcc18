"""The statements of a recall: how the question reads, its two branches, and the candidates with their neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from folklore.db.database import Database, Plans, Row, Session
from folklore.db.rows import memory_of, seen, visibility
from folklore.db.session import PinnedSession
from folklore.db.stores.recall_rows import Bm25, Candidate, Form, Hits, Lexemes, Measures, Sample, Scope
from folklore.model import Recalled

# From how many vectors it is learned how similarity grows with length.
_SAMPLE = 600
# Of one namespace among many at least so many: a line through fewer is hardly trusted.
_SHARE = 60
# The same of texts and their usual words, and how far each is read; a scope of fewer memories is not sampled.
_TEXTS, _SHARE_OF_TEXTS, _READ_OF_TEXT = 1_000, 20, 200
# Of how many relations of one memory are followed.
_TIES = 5
# How many hidden memories among the nearest are expected at most.
_HIDDEN = 40
# How many of the best an index is asked for at least (as many as it looks at anyway: hnsw.ef_search in database.py),
# and for each that is wanted, since some may be hidden.
_NEAR, _NEAR_EACH = 200, 4
# Of so few memories a plan made for them would save less than making it takes.
_SMALL = 20_000
# Of all vectors those are sorted that pass a score which so many times as many should pass as are asked about, and at
# least this share; where that would be most of them, all are.
_SPARE, _LEAST_SHARE, _MOST_SHARE = 4, 0.04, 0.5
# By what a vector's last number in the index times this is its size, but for a constant (folklore_sized).
_SIZE_SCALE = 2.0


class RecallStatements:
    """Each method is one statement on a connection of its own, so that branches can run at the same time.

    In a `conversation`, those with kept plans follow one another on one connection.
    """

    def __init__(self, database: Database, pinned: PinnedSession | None = None) -> None:
        self._database = database
        self._pinned = pinned

    def conversation(self) -> RecallStatements:
        """The statements of one recall: lexemes, terms, keyword and pool share a connection, until it is let go."""
        return RecallStatements(self._database, self._database.pinned_session())

    async def let_go(self) -> None:
        """Give back the connection of a conversation; a later statement takes another."""
        if self._pinned is not None:
            await self._pinned.release()

    def _session(self, plans: Plans = "kept") -> AbstractAsyncContextManager[Session]:
        if self._pinned is not None and plans == "kept":
            return self._pinned
        return self._database.session(plans, release_later=plans == "scan")

    async def lexemes(
        self,
        scope: Scope,
        *,
        pieces: Sequence[str],
        marks: Sequence[str],
        languages: Sequence[str],
        bound: int,
        saturation: float,
        prior: float,
        mean_length: float | None,
        measure: bool = False,
    ) -> tuple[Lexemes, Measures | None]:
        """Read the text in these languages; document frequencies are counted up to `bound`.

        The evidence of the lexemes follows from BM25's constants and the scope's mean length, which is looked up if
        None. With `measure`, also the measures of the scope.
        """
        async with self._session() as session:
            rows = await session.rows(
                "recall/lexemes",
                namespaces=list(scope.namespaces),
                pieces=list(pieces),
                marks=list(marks),
                languages=list(languages),
                bound=bound,
                saturation=saturation,
                prior=prior,
                mean_length=mean_length,
                measure=measure,
            )
        whole = rows.pop(next(place for place, row in enumerate(rows) if row["lexeme"] == ""))
        return Lexemes.of(rows), Measures.of(whole) if measure else None

    async def sample(self, scope: Scope, model: UUID, *, texts: bool) -> Sample:
        """Draw a sample of the scope's vectors and, where there are many memories, of its texts. One statement."""
        spaces = max(len(scope.namespaces), 1)
        async with self._session("scan") as session:
            rows = await session.rows(
                "recall/sample",
                namespaces=list(scope.namespaces),
                model=model,
                sample=_SAMPLE,
                share=max(_SAMPLE // spaces, _SHARE),
                many=_TEXTS,
                texts=texts,
                text_share=max(_TEXTS // spaces, _SHARE_OF_TEXTS),
                text_read=_READ_OF_TEXT,
            )
        return Sample.of(rows[0])

    async def terms(
        self, scope: Scope, *, terms: Sequence[str], columns: Sequence[str], languages: Sequence[str], bound: int
    ) -> tuple[list[Form], int, float]:
        """How the terms of an expression read, each in its column ("" for any); how many memories there are in scope,
        and their mean length."""
        async with self._session() as session:
            rows = await session.rows(
                "recall/terms",
                namespaces=list(scope.namespaces),
                terms=list(terms),
                columns=list(columns),
                languages=list(languages),
                bound=bound,
            )
        total, mean_length = rows[0]["documents"]
        forms = [
            Form(
                row["place"] - 1,
                tuple(row["lexemes"]),
                tuple(row["positions"]),
                tuple(map(int, row["documents"])),
                tuple(row["stems"] or ()),
            )
            for row in rows[1:]
        ]
        return forms, int(total), float(mean_length)

    async def expression(self, scope: Scope, *, expression: str, bm25: Bm25, fetch: int, bound: int) -> Hits:
        """Those that satisfy a tsquery, by what the weighted lexemes weigh in them, then the newest."""
        async with self._session("fresh") as session:
            rows = await session.rows(
                "recall/expression:token" if session.row_security else "recall/expression",
                namespaces=list(scope.namespaces),
                expression=expression,
                fetch=fetch,
                bound=bound,
                lexemes=list(bm25.weights.keys()),
                weights=list(bm25.weights.values()),
                stems=bm25.stems,
                mean_length=bm25.reading.mean_length,
                saturation=bm25.saturation,
                prior=bm25.prior,
                **visibility(scope.filters, scope.now),
            )
        return Hits.of(rows)

    async def dense(
        self,
        scope: Scope,
        *,
        model: UUID,
        query: NDArray[np.float32],
        slope: float,
        fetch: int,
        total: int | None,
        passed_by: Callable[[float], float] | None = None,
        indexed: bool = False,
    ) -> Hits:
        """The nearest by cosine less `slope` times size; raw is the cosine.

        One statement; two where too few may be seen of the nearest among `total` in scope. Only those are sorted that
        pass the score of which `passed_by` says that a share of all texts passes it. A question without filters goes by
        the index if the scope is `indexed`, and by all vectors if that brings too few.
        """
        vector = HalfVector(query)
        if indexed and scope.filters.empty:
            rows = await self._nearest(scope, fetch, query, model=model, slope=slope)
            if len(rows) >= fetch:
                return Hits.of(rows, "hnsw")
        plans: Plans = "scan" if scope.filters.empty and total is not None and total <= _SMALL else "fresh"
        near, floor = _near(scope, fetch, total), None
        if near is not None and total is not None and passed_by is not None:
            share = max(_SPARE * near / total, _LEAST_SHARE)
            floor = passed_by(share) if share <= _MOST_SHARE else None
        values = {"model": model, "query": vector, "slope": slope, "floor": floor}
        rows = await self._best("recall/dense", plans, scope, fetch, near, **values)
        return Hits.of(rows)

    async def _nearest(
        self, scope: Scope, fetch: int, query: NDArray[np.float32], *, model: UUID, slope: float
    ) -> list[Row]:
        [namespace] = scope.namespaces
        sized = np.append(query, np.float32(-slope * _SIZE_SCALE))
        _, filters = seen("recall/nearest", scope.filters, scope.now)
        async with self._session("fresh") as session:
            return await session.rows(
                f"recall/nearest:{len(sized)}",
                namespace=namespace,
                model=model,
                query=HalfVector(query),
                sized=HalfVector(sized),
                slope=slope,
                fetch=fetch,
                scan=max(_NEAR, _NEAR_EACH * fetch),
                **filters,
            )

    async def keyword(self, scope: Scope, *, bm25: Bm25, fetch: int) -> Hits:
        """Those in which the weighted lexemes weigh most; scores are unbounded, length taken off, around their mean.

        One statement; two where hidden memories leave too few of the best.
        """
        reading, stems = bm25.reading, bm25.stems
        rows = await self._best(
            "recall/keyword" if any(stems) else "recall/keyword:stems",
            "kept",
            scope,
            fetch,
            _near(scope, fetch, min(reading.total, sum(reading.documents.get(lexeme, 0) for lexeme in bm25.weights))),
            lexemes=list(bm25.weights.keys()),
            weights=list(bm25.weights.values()),
            stems=stems,
            saturation=bm25.saturation,
            prior=bm25.prior,
            damping=bm25.saturation / max(reading.mean_length + bm25.prior, 1.0),
            mean_score=bm25.mean_score,
            score_slope=bm25.score_slope,
            mean_size=reading.mean_size,
        )
        return Hits.of(rows)

    async def _best(
        self,
        name: str,
        plans: Plans,
        scope: Scope,
        fetch: int,
        near: int | None,
        **values: object,
    ) -> list[Row]:
        statement, filters = seen(name, scope.filters, scope.now)
        while True:
            async with self._session(plans) as session:
                rows = await session.rows(
                    statement, namespaces=list(scope.namespaces), fetch=fetch, scan=near, **values, **filters
                )
            if near is None or len(rows) >= fetch:
                return rows
            near = None
            if "floor" in values:
                values["floor"] = None

    async def pool(
        self,
        scope: Scope,
        *,
        ids: Sequence[UUID],
        lenders: Sequence[UUID],
        reach: int,
        related: bool,
        model: UUID | None,
    ) -> dict[UUID, Candidate]:
        """Return the candidates whole, and the memories at most `reach` places from one of the lenders in its session.

        If `related`, also those that a lender has a relation with. Without a `model` they have no vectors.
        """
        name, vectors = ("recall/pool:no_vectors", {}) if model is None else ("recall/pool", {"model": model})
        statement, filters = seen(name, scope.filters, scope.now)
        async with self._session() as session:
            rows = await session.rows(
                statement,
                namespaces=list(scope.namespaces),
                ids=list(ids),
                lenders=list(lenders),
                reach=reach,
                related=related,
                ties=_TIES,
                **vectors,
                **filters,
            )
        return {row["id"]: Candidate(row, scope.namespaces[row["namespace_id"]]) for row in rows}

    async def expand(
        self, scope: Scope, *, ids: Sequence[UUID], bridges: bool, tags: Sequence[str], most: int
    ) -> list[Recalled]:
        """What is tied to several of these results, and what carries one of these tags, best first."""
        async with self._session("fresh") as session:
            rows = await session.rows(
                "recall/expand",
                namespaces=list(scope.namespaces),
                ids=list(ids),
                bridges=bridges,
                entities=list(tags),
                ties=_TIES,
                most=most,
                **visibility(scope.filters, scope.now),
            )
        return [Recalled(memory_of(row, scope.namespaces[row["namespace_id"]]), expanded=row["by"]) for row in rows]


def _near(scope: Scope, fetch: int, among: int | None) -> int | None:
    """How many of the best are sorted and asked whether they are visible; None for all, as where filters hide most."""
    near = 2 * fetch + _HIDDEN
    return near if scope.filters.empty and among is not None and among > near else None
