"""The dense branch: nearest vectors to the question's, with the effect of length removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

from folklore.db.stores.recall_rows import NOTHING, DenseQuery
from folklore.embedding.protocol import Embedder, Model
from folklore.errors import InvalidInput
from folklore.lazy import NDArray
from folklore.lazy import numpy as np
from folklore.memory.context import MemoryContext
from folklore.memory.recall.values import DenseResult, Search, Statistics
from folklore.ranking.statistics import QuestionLine, piece_weights, rarest_weights, sampled_weights
from folklore.telemetry import stage


async def dense_branch(memory: MemoryContext, search: Search, statistics: Statistics) -> DenseResult:
    """Find the memories nearest to the question; nothing if the branch or embedding is off.

    Raises InvalidInput, Unavailable."""
    if "dense" not in search.branches:
        return DenseResult(NOTHING)
    if (error := statistics.unavailable.get("dense")) is not None:
        raise error
    started, embedder, sample, model = perf_counter(), search.embedder, statistics.sample, statistics.model
    if embedder is None or model is None or sample is None:
        if search.question.embedding is not None:
            raise InvalidInput(
                "ranking.embedding", "has nothing to be compared with: embedding is off here.", hint="Leave it out."
            )
        return DenseResult(NOTHING)
    with stage("recall.dense"):
        if search.question.embedding is not None:
            vector = plain = _unit_vector(search.question.embedding, model)
        else:
            vector = plain = await embedder.embed_question(search.pieces, _weights(search, statistics, embedder))
            if embedder.weighs_words:
                plain = await embedder.embed_question(search.pieces, [1.0] * len(search.pieces))
        # A model may give unrelated texts a cosine far above 0.
        unrelated = 0.0 if embedder.weighs_words else max(float(plain @ await embedder.probe()), 0.0)
        if not vector.any():
            return DenseResult(NOTHING, model=model, query=DenseQuery(model.id, vector))
        query, line = _query(statistics, vector)
        hits = await memory.statements.dense(search.scope, query, search.ranking.fetch(search.wanted))
    if line is not None:
        hits = replace(hits, scores=tuple(score - line.expected for score in hits.scores))
    milliseconds = (perf_counter() - started) * 1e3
    total = query.total or 0
    return DenseResult(hits, milliseconds, model, query, line, total, sample.length_ratio, plain, unrelated)


def _query(statistics: Statistics, vector: NDArray[np.float32]) -> tuple[DenseQuery, QuestionLine | None]:
    """Return the question for the statement, and the line of similarities over size, if it was measured."""
    corpus, sample, model = statistics.corpus, statistics.sample, statistics.model
    assert sample is not None
    assert model is not None
    query = DenseQuery(model.id, vector, indexed=sample.indexed, passages=sample.passages)
    if corpus is None or sample.line is None:
        return replace(query, total=None if corpus is None else corpus.total), None
    line = sample.line.of(vector)
    return replace(
        query, total=corpus.total, slope=line.slope, deviation=line.deviation, score_of_best=line.score_of_best
    ), line


def _weights(search: Search, statistics: Statistics, embedder: Embedder) -> list[float]:
    """Return the weights of the question's pieces in its vector: rare words count more, if the model can weigh words.

    Document frequencies come from the sample of a large scope, or from the words that were read in a small one.
    """
    pieces, words = search.pieces, statistics.words
    frequencies = None if statistics.sample is None else statistics.sample.frequencies
    if embedder.weighs_words and not search.expression:
        if frequencies is not None:
            documents = [frequencies.document_frequency(piece) for piece in pieces]
            return piece_weights(sampled_weights(documents, frequencies.total))
        if words is not None:
            return piece_weights(rarest_weights(words.query.places, words.weights, len(pieces)))
    return [1.0] * len(pieces)


def _unit_vector(embedding: Sequence[float], model: Model) -> NDArray[np.float32]:
    """Return a caller's vector, scaled to length 1. Raises InvalidInput for another number of dimensions."""
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
