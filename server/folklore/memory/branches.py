"""The branches of a recall, run at the same time; one that fails degrades the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray

from folklore.db.namespaces import Notebook
from folklore.db.recall import NOTHING, Bm25, Hits, Scope
from folklore.embedding.embedder import Model
from folklore.errors import Unavailable
from folklore.memory.keyword_branch import expression_hits, pieces_of, read_question
from folklore.memory.library import Library
from folklore.model import Degraded
from folklore.ranking.evidence import piece_weights
from folklore.ranking.weights import Branch, Ranking
from folklore.text.query import KeywordQuery

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Found:
    """What the branches brought, and what later stages need to know of the question."""

    hits: dict[Branch, Hits]
    degraded: list[Degraded]
    milliseconds: dict[Branch, float]
    reading: Bm25 | None = None
    model: Model | None = None
    vector: NDArray[np.float32] | None = None

    @property
    def model_id(self) -> UUID | None:
        """The space the question's vector is in."""
        return None if self.model is None else self.model.id

    def coverage(self) -> dict[UUID, float]:
        """How much of the question's weight the words of each keyword hit cover, 0 to 1."""
        hits = self.hits.get("keyword", NOTHING)
        if self.reading is None or self.reading.mass <= 0:
            return {}
        return {id_: min(raw / self.reading.mass, 1.0) for id_, raw in zip(hits.ids, hits.raw, strict=True)}


class Branches:
    """One question's branches over one scope."""

    def __init__(
        self, library: Library, scope: Scope, notebooks: Sequence[Notebook], query: KeywordQuery, ranking: Ranking
    ) -> None:
        self._library = library
        # Taken once: in the middle of a recall the store may go over to another model.
        self._embedder = library.embedder
        self._scope = scope
        self._query = query
        self._ranking = ranking
        self._languages = sorted({language for notebook in notebooks for language in notebook.languages})
        self._found = Found({}, [], {})
        self._unread: Unavailable | None = None

    async def run(self, branches: Sequence[Branch], fetch: int) -> Found:
        """Run these at the same time, each for `fetch` candidates. Raises Unavailable if every one fails."""
        if not self._is_expression:
            try:
                self._found.reading = await read_question(
                    self._library, self._scope, self._query, self._languages, self._ranking
                )
            except Unavailable as error:
                self._unread = error  # the dense branch can answer without
        chosen = [branch for branch in branches if self._ranking.weight(branch) > 0]
        work: dict[Branch, Callable[[int], Awaitable[Hits]]] = {"dense": self._dense, "keyword": self._keyword}
        outcomes = await asyncio.gather(
            *(self._timed(branch, work[branch](fetch)) for branch in chosen), return_exceptions=True
        )
        for branch, outcome in zip(chosen, outcomes, strict=True):
            if isinstance(outcome, Unavailable):
                log.warning("branch_degraded", branch=branch, reason=outcome.message)
                self._found.degraded.append(Degraded(branch, outcome.message))
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._found.hits[branch] = outcome
        if "dense" in self._found.hits and (mismatch := self._library.generations.mismatch) is not None:
            self._found.degraded.append(Degraded("dense", mismatch))
        if not self._found.hits:
            reasons = "; ".join(f"{item.branch}: {item.reason}" for item in self._found.degraded)
            raise Unavailable(f"Every branch of the search failed: {reasons}")
        return self._found

    @property
    def _is_expression(self) -> bool:
        return self._query.expert and not self._query.only_alternatives

    async def _timed(self, branch: Branch, work: Awaitable[Hits]) -> Hits:
        start = perf_counter()
        hits = await work
        self._found.milliseconds[branch] = (perf_counter() - start) * 1e3
        return hits

    async def _dense(self, fetch: int) -> Hits:
        embedder = self._embedder
        if embedder is None:
            return NOTHING
        pieces = pieces_of(self._query)
        weights = [1.0] * len(pieces)
        if (read := self._found.reading) is not None:
            weights = piece_weights(read.reading.places, read.weights, len(pieces))
        vector = await embedder.embed_question(pieces, weights)
        model = await embedder.model()  # one that is reached over HTTP knows its dimension now
        self._found.model, self._found.vector = model, vector
        if not vector.any():
            return NOTHING
        return await self._library.statements.dense(
            self._scope, model=model.id, query=vector, fetch=fetch, total=None if read is None else read.reading.total
        )

    async def _keyword(self, fetch: int) -> Hits:
        if self._unread is not None:
            raise self._unread
        if self._found.reading is None:
            hits, self._found.reading = await expression_hits(
                self._library,
                self._scope,
                self._query,
                languages=self._languages,
                ranking=self._ranking,
                fetch=fetch,
            )
            return hits
        if not self._found.reading.weights:
            return NOTHING
        return await self._library.statements.keyword(self._scope, bm25=self._found.reading, fetch=fetch)
