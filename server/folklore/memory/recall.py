"""Recall: two branches at once, fused, lent to by neighbours, diversified, cut to the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray

from folklore.db.namespaces import Notebook
from folklore.db.recall import NOTHING, Bm25, Candidate, Hits, Scope
from folklore.errors import InvalidInput, Unavailable
from folklore.memory.budget import within_budget
from folklore.memory.cursors import given_before, given_cursor, is_given
from folklore.memory.keyword_branch import expression_hits, pieces_of, read_question
from folklore.memory.library import Library, scope_of
from folklore.memory.listing import list_memories
from folklore.model import Answer, Degraded, Filters, Recalled, Sort
from folklore.ranking.diversity import maximal_marginal_relevance
from folklore.ranking.evidence import piece_weights, tail_evidence
from folklore.ranking.fusion import best_first, reciprocal_rank_fusion
from folklore.ranking.neighbours import spread
from folklore.ranking.weights import Branch, Ranking
from folklore.text.clean import clean
from folklore.text.query import parse

log = structlog.get_logger(__name__)

MAX_LIMIT = 100
MAX_QUERY = 1_000_000
# What of a long query is read: a pasted log says what it is about in its beginning.
_READ_OF_QUERY = 8_000


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question to the memory."""

    query: str
    namespaces: Sequence[str] = ()
    limit: int = 10
    filters: Filters = Filters()
    ranking: Ranking = field(default_factory=Ranking)
    branches: tuple[Branch, ...] = ("dense", "keyword")
    sort: Sort = "score"
    max_tokens: int | None = None
    cursor: str | None = None


async def recall(library: Library, request: RecallRequest, *, now: datetime) -> Answer:
    """Find what is known about a question, best first.

    A branch that fails degrades the answer; if every branch fails, or Postgres is down, that is an error and never an
    empty answer. Raises InvalidInput, NotFound, Unavailable.
    """
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT}, not {request.limit}.")
    if len(request.query) > MAX_QUERY:
        raise InvalidInput("query", f"has {len(request.query):,} characters; the limit is {MAX_QUERY:,}.")
    text = clean(request.query[: 2 * _READ_OF_QUERY]).text.strip()[:_READ_OF_QUERY]
    notebooks = await library.notebooks(request.namespaces)
    if not notebooks:
        return Answer((), (), note="Nothing has been stored yet.")
    if text in ("", "*"):
        return await list_memories(
            library, notebooks, request.filters, limit=request.limit, now=now, sort=request.sort, cursor=request.cursor
        )
    question = (text, request.namespaces, request.filters, request.ranking, request.branches)
    before = given_before(request.cursor, question)
    wanted = len(before) + request.limit
    scope = Scope(scope_of(notebooks), request.filters, now)
    found = await _branches(library, scope, notebooks, text, request, wanted)
    candidates, ranked = await _ranked(library, scope, found, request.ranking, wanted)
    fresh = [(id_, score) for id_, score in ranked if not is_given(id_, before)]
    page = [Recalled(candidates[id_].memory, round(score, 4)) for id_, score in fresh[: request.limit]]
    kept, cut = within_budget(page, request.max_tokens)
    more = cut or len(fresh) > request.limit
    return Answer(
        memories=tuple(kept),
        searched=tuple(notebook.name for notebook in notebooks),
        degraded=found.degraded,
        truncated=more,
        cursor=given_cursor([result.memory.id for result in kept], before, question) if more else None,
        note=None if ranked else _why_empty(notebooks, request.filters),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    hits: dict[Branch, Hits]
    degraded: tuple[Degraded, ...]
    model: UUID | None


async def _branches(
    library: Library, scope: Scope, notebooks: Sequence[Notebook], text: str, request: RecallRequest, wanted: int
) -> _Found:
    ranking = request.ranking
    fetch = ranking.fetch(wanted)
    languages = sorted({language for notebook in notebooks for language in notebook.languages})
    query = parse(text)
    expression = query.expert and not query.only_alternatives
    reading: Bm25 | None = None
    unread: Unavailable | None = None
    if not expression:
        try:
            reading = await read_question(library, scope, query, languages, ranking)
        except Unavailable as error:
            unread = error  # the dense branch can answer without
    model: UUID | None = None

    async def dense() -> Hits:
        nonlocal model
        if library.embedder is None:
            return NOTHING
        pieces = pieces_of(query)
        weights = [1.0] * len(pieces)
        if reading is not None:
            weights = piece_weights(reading.reading.places, reading.weights, len(pieces))
        model = (await library.embedder.model()).id
        vector = await library.embedder.embed_question(pieces, weights)
        if not vector.any():
            return NOTHING
        return await library.statements.dense(scope, model=model, query=vector, fetch=fetch)

    async def keyword() -> Hits:
        if unread is not None:
            raise unread
        if reading is None:
            return await expression_hits(library, scope, query, languages=languages, ranking=ranking, fetch=fetch)
        if not reading.weights:
            return NOTHING
        return await library.statements.keyword(scope, bm25=reading, fetch=fetch)

    run: dict[Branch, Awaitable[Hits]] = {}
    if "dense" in request.branches and ranking.dense > 0:
        run["dense"] = dense()
    if "keyword" in request.branches and ranking.keyword > 0:
        run["keyword"] = keyword()
    outcomes = await asyncio.gather(*run.values(), return_exceptions=True)
    hits: dict[Branch, Hits] = {}
    degraded: list[Degraded] = []
    for branch, outcome in zip(run, outcomes, strict=True):
        if isinstance(outcome, Unavailable):
            log.warning("branch_degraded", branch=branch, reason=outcome.message)
            degraded.append(Degraded(branch, outcome.message))
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            hits[branch] = outcome
    if not hits:
        raise Unavailable(
            "Every branch of the search failed: " + "; ".join(f"{item.branch}: {item.reason}" for item in degraded)
        )
    return _Found(hits, tuple(degraded), model)


async def _ranked(
    library: Library, scope: Scope, found: _Found, ranking: Ranking, wanted: int
) -> tuple[dict[UUID, Candidate], list[tuple[UUID, float]]]:
    fused = reciprocal_rank_fusion(
        [(ranking.weight(branch), hits.ids) for branch, hits in found.hits.items()],
        ranking.rrf_k,
    )
    if not fused:
        return {}, []
    candidates = await library.statements.pool(scope, ids=list(fused), reach=len(ranking.neighbours), model=found.model)
    own = {id_: score for id_, score in _evidence(found, ranking, ranking.fetch(wanted)).items() if id_ in candidates}
    scores = spread(own, _beside(candidates), ranking.neighbours)
    pool = best_first(scores)[: ranking.fetch(wanted) + 1]
    relevance = np.array([scores[id_] for id_ in pool])
    order = maximal_marginal_relevance(
        relevance, _cosines([candidates[id_].vector for id_ in pool]), wanted + 1, ranking.mmr_lambda
    )
    return candidates, [(pool[place], float(relevance[place])) for place in order]


def _evidence(found: _Found, ranking: Ranking, fetched: int) -> dict[UUID, float]:
    together: dict[UUID, float] = {}
    for branch, hits in found.hits.items():
        for id_, evidence in zip(hits.ids, tail_evidence(hits.scores, fetched), strict=False):
            together[id_] = together.get(id_, 0.0) + ranking.evidence(branch) * evidence
    return together


def _beside(candidates: Mapping[UUID, Candidate]) -> list[tuple[UUID, UUID, int]]:
    """Every pair within the pool that stands beside one another in a session, both ways, with how far apart."""
    sessions: dict[tuple[UUID, str], list[tuple[int, UUID]]] = {}
    for candidate in candidates.values():
        if candidate.place is not None:
            session, position = candidate.place
            sessions.setdefault(session, []).append((position, candidate.id))
    pairs = []
    for members in sessions.values():
        members.sort()
        for place, (position, id_) in enumerate(members):
            for other_position, other in members[place + 1 :]:
                gap = other_position - position
                if gap > 2:
                    break
                if gap > 0:
                    pairs += [(id_, other, gap), (other, id_, gap)]
    return pairs


def _cosines(vectors: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float32]:
    """Similarity of every candidate with every other, shape (n, n); 0 where a vector is owed."""
    size = next((len(vector) for vector in vectors if vector is not None), 1)
    matrix = np.zeros((len(vectors), size), dtype=np.float32)
    for place, vector in enumerate(vectors):
        if vector is not None:
            matrix[place] = vector
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return matrix @ matrix.T


def _why_empty(notebooks: Sequence[Notebook], filters: Filters) -> str:
    names = ", ".join(notebook.name for notebook in notebooks[:5])
    if all(notebook.empty for notebook in notebooks):
        return f"Empty so far: {names}."
    if not filters.empty:
        return "Nothing matches within these filters; try without them."
    return "Nothing stored here shares a word or a meaning with the question."
