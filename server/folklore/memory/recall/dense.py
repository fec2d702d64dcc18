"""The dense branch: nearest vectors to the question's by cosine."""

from __future__ import annotations

from time import perf_counter

from folklore.db.stores.recall import visits
from folklore.db.stores.recall_rows import DenseQuery, Indexed, Scope
from folklore.embedding import Embedder, Model
from folklore.errors import InvalidInput
from folklore.lazy import NDArray, numpy as np
from folklore.memory.context import MemoryContext
from folklore.memory.recall.values import BranchResult, Search
from folklore.telemetry import stage


async def dense_branch(memory: MemoryContext, search: Search) -> BranchResult:
    """Find the memories nearest to the question; nothing if the branch or embedding is off.

    Two more statements a minute: if an index is quicker for the scope. Raises InvalidInput, Unavailable.
    """
    if "dense" not in search.branches:
        return BranchResult()
    started = perf_counter()
    embedder = search.embedder
    scope = search.scope
    if embedder is None:
        if search.question.embedding is not None:
            reason = "has nothing to be compared with: embedding is off here."
            raise InvalidInput("ranking.embedding", reason, hint="Leave it out.")
        return BranchResult()
    with stage("recall.dense"):
        model = await embedder.model()
        vector = await _vector(search, embedder, model)
        # A model may give unrelated texts a cosine far above 0.
        unrelated = 0.0
        if not embedder.weighs_words:
            unrelated = max(float(vector @ await embedder.probe()), 0.0)
        fetched = search.ranking.fetch(search.wanted)
        indexed, in_scope = await _indexed(memory, scope, model)
        query = DenseQuery(
            model=model.id,
            vector=vector,
            visited=visits(indexed.vectors, in_scope, fetched),
            total=memory.statistics.totals.get(scope.key),
            cues_indexed=indexed.of_cues,
            crowded=scope.key in memory.statistics.crowded,
        )
        if not vector.any():
            return BranchResult(model=model, query=query)
        hits = await memory.statements.dense(scope, query, fetched)
        if hits.crowded and not query.crowded:
            memory.statistics.crowded[scope.key] = True
    return BranchResult(
        hits=hits,
        milliseconds=(perf_counter() - started) * 1e3,
        model=model,
        query=query,
        unrelated=unrelated,
    )


async def _indexed(
    memory: MemoryContext, scope: Scope, model: Model
) -> tuple[Indexed, int]:
    """Return the size of the index of a model, and about how many of its vectors are in scope; kept for a minute."""
    sizes = memory.statistics.vectors.get((scope.key, model.id))
    if sizes is None:
        indexed = await memory.statements.indexed(model.id)
        in_scope = 0
        if indexed.vectors:
            in_scope = await memory.statements.extent(scope, model.id)
        sizes = (indexed, in_scope)
        memory.statistics.vectors[scope.key, model.id] = sizes
    return sizes


async def _vector(
    search: Search, embedder: Embedder, model: Model
) -> NDArray[np.float32]:
    """Return the vector (dimensions,) of the question, or the caller's own, scaled to length 1.

    Raises InvalidInput for one of another model or number of dimensions.
    """
    embedding = search.question.embedding
    named = search.question.embedding_model
    if embedding is None:
        return await embedder.embed_question(search.tokens, [1.0] * len(search.tokens))
    hint = "Embed the question with that model, or leave embedding out."
    if named not in (None, model.name):
        raise InvalidInput(
            "ranking.embedding_model",
            f"must be {model.name}, got {named[:60]}.",
            hint=hint,
        )
    if len(embedding) != model.dimensions:
        reason = f"has {len(embedding)} dimensions; the vectors here ({model.name}) have {model.dimensions}."
        raise InvalidInput("ranking.embedding", reason, hint=hint)
    vector = np.asarray(embedding, dtype=np.float32)
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0:
        raise InvalidInput(
            "ranking.embedding", "must have finite numbers, not all of them 0."
        )
    return vector / length
