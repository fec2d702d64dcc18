"""The dense branch: nearest vectors to the question's by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from folklore.db.stores.recall import visits
from folklore.db.stores.recall_rows import NOTHING, DenseQuery
from folklore.embedding.protocol import Embedder, Model
from folklore.errors import InvalidInput
from folklore.lazy import NDArray, numpy as np
from folklore.memory.context import MemoryContext
from folklore.memory.recall.values import DenseResult, Search
from folklore.telemetry import stage


async def dense_branch(memory: MemoryContext, search: Search) -> DenseResult:
    """Find the memories nearest to the question; nothing if the branch or embedding is off.

    Raises InvalidInput, Unavailable.
    """
    if "dense" not in search.branches:
        return DenseResult(NOTHING)
    started, embedder = perf_counter(), search.embedder
    if embedder is None:
        if search.question.embedding is not None:
            raise InvalidInput(
                "ranking.embedding", "has nothing to be compared with: embedding is off here.", hint="Leave it out."
            )
        return DenseResult(NOTHING)
    with stage("recall.dense"):
        model = await embedder.model()
        vector = await _vector(search, embedder, model)
        # A model may give unrelated texts a cosine far above 0.
        unrelated = 0.0 if embedder.weighs_words else max(float(vector @ await embedder.probe()), 0.0)
        query = await _query(memory, search, model, vector)
        if not vector.any():
            return DenseResult(NOTHING, model=model, query=query)
        hits = await memory.statements.dense(search.scope, query, search.ranking.fetch(search.wanted))
    return DenseResult(hits, (perf_counter() - started) * 1e3, model, query, unrelated)


async def _query(memory: MemoryContext, search: Search, model: Model, vector: NDArray[np.float32]) -> DenseQuery:
    """Return the question for the statement. Two statements a minute: if an index is quicker for the scope."""
    cache, statements, scoped = memory.statistics, memory.statements, search.scope.key
    sizes = cache.vectors.get((scoped, model.id))
    if sizes is None:
        indexed = await statements.indexed(model.id)
        sizes = indexed, await statements.extent(search.scope, model.id) if indexed else 0
        cache.vectors[scoped, model.id] = sizes
    visited = visits(*sizes, search.ranking.fetch(search.wanted))
    return DenseQuery(model.id, vector, visited, cache.totals.get(scoped))


async def _vector(search: Search, embedder: Embedder, model: Model) -> NDArray[np.float32]:
    """Return the vector (dimensions,) of the question, or the caller's own."""
    if search.question.embedding is not None:
        return _unit_vector(search.question.embedding, model, search.question.embedding_model)
    return await embedder.embed_question(search.pieces, [1.0] * len(search.pieces))


def _unit_vector(embedding: Sequence[float], model: Model, named: str | None) -> NDArray[np.float32]:
    """Return a caller's vector, scaled to length 1. Raises InvalidInput for another model or number of dimensions."""
    if named not in (None, model.name):
        hint = "Embed the question with that model, or leave embedding out."
        raise InvalidInput("ranking.embedding_model", f"must be {model.name}, got {named[:60]}.", hint=hint)
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
