"""The branches of a recall, run at the same time; one that fails degrades the answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray

from folklore.db.stores.namespaces import NamespaceInfo
from folklore.db.stores.recall import RecallStatements
from folklore.db.stores.recall_rows import NOTHING, Bm25, Hits, Scope
from folklore.embedding.protocol import Embedder, Model
from folklore.errors import InvalidInput, Unavailable
from folklore.memory.context import MemoryContext
from folklore.memory.recall.corpus_statistics import Measured, Sampled
from folklore.memory.recall.keyword import expression_hits, pieces_of, read_question
from folklore.model import Degraded
from folklore.ranking.length import QuestionLine
from folklore.ranking.standard_scores import piece_weights, rarest_weights, sampled_weights
from folklore.ranking.weights import Branch, Ranking
from folklore.telemetry import stage
from folklore.text.query.parser import KeywordQuery
from folklore.text.words import SampledFrequencies

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Found:
    """What the branches brought, and what later stages need to know of the question."""

    hits: dict[Branch, Hits]
    degraded: list[Degraded]
    milliseconds: dict[Branch, float]
    pieces: Sequence[str]
    expression: bool = False
    reading: Bm25 | None = None
    model: Model | None = None
    vector: NDArray[np.float32] | None = None
    # How similarity to the question grows with length among so many memories, where it was measured.
    line: QuestionLine | None = None
    total: int = 0

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

    def brought(self, ids: Iterable[UUID]) -> dict[str, int]:
        """How many of these which branch brought: dense, keyword, both, neither."""
        dense, keyword = (set(self.hits.get(branch, NOTHING).ids) for branch in ("dense", "keyword"))
        told = {(True, True): "both", (True, False): "dense", (False, True): "keyword", (False, False): "neither"}
        return dict(Counter(told[id_ in dense, id_ in keyword] for id_ in ids))


class Branches:
    """One question's branches over one scope. If `literal`, its phrases are demands and not only words."""

    def __init__(
        self,
        library: MemoryContext,
        statements: RecallStatements,
        scope: Scope,
        notebooks: Sequence[NamespaceInfo],
        query: KeywordQuery,
        ranking: Ranking,
        embedding: Sequence[float] | None = None,
        *,
        literal: bool = False,
    ) -> None:
        self._literal = literal
        self._library = library
        self._statements = statements
        self._embedding = embedding
        # Taken once: in the middle of a recall the store may go over to another model.
        self._embedder = library.embedder
        self._scope = scope
        self._query = query
        self._ranking = ranking
        self._languages = sorted({language for notebook in notebooks for language in notebook.languages})
        self._found = Found({}, [], {}, pieces_of(query), expression=self._is_expression)
        self._measured: Measured | None = None
        self._unread: Unavailable | None = None
        self._read = asyncio.Event()
        self._dense_over = False

    async def run(self, branches: Sequence[Branch], fetch: int) -> Found:
        """Run these at the same time, each for `fetch` candidates. Raises Unavailable if every one fails."""
        chosen = [branch for branch in branches if self._ranking.weight(branch) > 0]
        self._dense_over = "dense" not in chosen
        work: dict[Branch, Callable[[int], Awaitable[Hits]]] = {"dense": self._dense, "keyword": self._keyword}
        # The words begin: theirs are two statements, one after the other, and the question is embedded meanwhile.
        begun = sorted(chosen, key=("keyword", "dense").index)
        runs: list[Awaitable[Hits]] = [self._timed(branch, work[branch], fetch) for branch in begun]
        if "keyword" not in chosen:
            runs.append(self._words_alone())
        outcomes = dict(zip(begun, await asyncio.gather(*runs, return_exceptions=True), strict=False))
        for branch in chosen:
            outcome = outcomes[branch]
            if isinstance(outcome, Unavailable):
                log.warning("branch_degraded", branch=branch, reason=outcome.message)
                self._found.degraded.append(Degraded(branch, outcome.message))
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                self._found.hits[branch] = outcome
        if "dense" in self._found.hits and (mismatch := self._library.active_model.mismatch) is not None:
            self._found.degraded.append(Degraded("dense", mismatch))
        if not self._found.hits:
            reasons = "; ".join(f"{item.branch}: {item.reason}" for item in self._found.degraded)
            raise Unavailable(f"Every branch of the search failed: {reasons}")
        return self._found

    @property
    def _is_expression(self) -> bool:
        query = self._query
        return query.is_expression and (not query.only_alternatives or (self._literal and bool(query.phrases)))

    async def _timed(self, branch: Branch, work: Callable[[int], Awaitable[Hits]], fetch: int) -> Hits:
        start = perf_counter()
        with stage(f"recall.{branch}"):
            hits = await work(fetch)  # called here: a recall may be given up before this begins
        self._found.milliseconds[branch] = (perf_counter() - start) * 1e3
        return hits

    async def _dense(self, fetch: int) -> Hits:
        try:
            return await self._dense_hits(fetch)
        finally:
            self._dense_over = True

    async def _dense_hits(self, fetch: int) -> Hits:
        embedder = self._embedder
        if embedder is None:
            if self._embedding is not None:
                raise InvalidInput(
                    "ranking.embedding", "has nothing to be compared with: embedding is off here.", hint="Leave it out."
                )
            return NOTHING
        model = await embedder.model()
        sampled = await self._sampled(model.id)
        vector = await self._vector(embedder, sampled.usual)
        self._found.model, self._found.vector = model, vector
        if not vector.any():
            return NOTHING
        measured = await self._measures()
        line = None if measured is None or sampled.line is None else sampled.line.of(vector)
        if measured is not None:
            self._found.line, self._found.total = line, measured.measures.total
        hits = await self._statements.dense(
            self._scope,
            model=model.id,
            query=vector,
            slope=0.0 if line is None else line.slope,
            passed_by=None if line is None else line.passed_by,
            fetch=fetch,
            total=None if measured is None else measured.measures.total,
            indexed=sampled.indexed,
        )
        return hits if line is None else replace(hits, scores=tuple(score - line.expected for score in hits.scores))

    async def _sampled(self, model: UUID) -> Sampled:
        """Return what samples of the scope say, known from a question before or drawn now. One statement at most."""
        recent, spaces = self._library.measured, self._scope.namespaces
        sampled = recent.sampled(spaces, model)
        if sampled is None:
            usual = recent.usual(spaces)
            sample = await self._statements.sample(self._scope, model, texts=usual is None)
            if sample.texts is not None:
                usual = recent.learn(spaces, sample.texts)
            sampled = Sampled.of(sample, usual)
            recent.put_sampled(spaces, model, sampled)
        return sampled

    async def _vector(self, embedder: Embedder, usual: SampledFrequencies | None) -> NDArray[np.float32]:
        """Return the vector the caller gave, else that of the question, in which rare words may count more.

        They do if the model can weigh words. The usual words of the scope say how rare they are, so that this branch
        need not wait for the other to read the question; a scope without them is small, and there it waits.
        """
        if self._embedding is not None:
            return _unit(self._embedding, await embedder.model())
        pieces = self._found.pieces
        weights = [1.0] * len(pieces)
        if embedder.weighs_words and not self._is_expression:
            if usual is not None:
                frequencies = [usual.document_frequency(piece) for piece in pieces]
                weights = piece_weights(sampled_weights(frequencies, usual.total))
            else:
                await self._read.wait()
                if (read := self._found.reading) is not None:
                    weights = piece_weights(rarest_weights(read.reading.places, read.weights, len(pieces)))
        return await embedder.embed_question(pieces, weights)

    async def _measures(self) -> Measured | None:
        """Return the measures of the scope, known from a question before or measured along with the words.

        None if the words could not be read.
        """
        known = self._library.measured.get(self._scope.namespaces)
        if known is None:
            await self._read.wait()
            known = self._measured
        return known

    async def _words(self) -> None:
        """Read the words of the question, and measure the scope if its measures are not known. At most one statement.

        An expression is read by its own statements. For the dense branch the scope is measured all the same; otherwise
        the answer would depend on an earlier question.
        """
        try:
            if self._is_expression and (self._embedder is None or self._ranking.dense <= 0):
                return
            with stage("recall.words"):
                reading, self._measured = await read_question(
                    self._library,
                    self._statements,
                    self._scope,
                    KeywordQuery("") if self._is_expression else self._query,
                    self._languages,
                    self._ranking,
                )
            if not self._is_expression:
                self._found.reading = reading
        except Unavailable as error:
            self._unread = error  # the dense branch can answer without
        finally:
            self._read.set()

    async def _words_alone(self) -> Hits:
        await self._words()
        await self._let_go_if_waiting()
        return NOTHING

    async def _let_go_if_waiting(self) -> None:
        """Hold no connection while the dense branch is on its way: others would wait for what stands idle."""
        if not self._dense_over:
            await self._statements.let_go()

    async def _keyword(self, fetch: int) -> Hits:
        hits = await self._keyword_hits(fetch)
        await self._let_go_if_waiting()
        return hits

    async def _keyword_hits(self, fetch: int) -> Hits:
        await self._words()
        if self._unread is not None:
            raise self._unread
        if self._is_expression:
            hits, self._found.reading = await expression_hits(
                self._statements,
                self._scope,
                self._query,
                languages=self._languages,
                ranking=self._ranking,
                fetch=fetch,
            )
            return hits
        if self._found.reading is None or not self._found.reading.weights:
            return NOTHING
        return await self._statements.keyword(self._scope, bm25=self._found.reading, fetch=fetch)


def _unit(embedding: Sequence[float], model: Model) -> NDArray[np.float32]:
    """A caller's vector, scaled to length 1. Raises InvalidInput for one that is not of this model's dimension."""
    if len(embedding) != model.dimensions:
        raise InvalidInput(
            "ranking.embedding",
            f"has {len(embedding)} dimensions; the vectors here ({model.name}) have {model.dimensions}.",
            hint="Embed the question with that model, or leave embedding out.",
        )
    vector = np.asarray(embedding, dtype=np.float32)
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0:
        raise InvalidInput("ranking.embedding", "must have finite numbers, not all of them 0.")
    return vector / length
