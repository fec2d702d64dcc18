"""Recall: two branches at once, fused, lent to by neighbours, diversified, cut to the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.db.namespaces import Notebook
from folklore.db.recall import Candidate, Scope
from folklore.errors import InvalidInput
from folklore.memory.branches import Branches, Found
from folklore.memory.budget import within_budget
from folklore.memory.cursors import given_before, given_cursor, is_given
from folklore.memory.explain import explained, explanation
from folklore.memory.library import Library, scope_of
from folklore.memory.listing import list_memories
from folklore.memory.reranking import reranked
from folklore.model import Answer, Filters, Recalled, Sort
from folklore.ranking.diversity import maximal_marginal_relevance
from folklore.ranking.evidence import calibrated, dense_weight
from folklore.ranking.pool import Listed, fuse, lend
from folklore.ranking.weights import Branch, Ranking
from folklore.text.clean import clean
from folklore.text.query import parse

MAX_LIMIT = 100
MAX_QUERY = 1_000_000
# What of a long query is read: a pasted log says what it is about in its beginning.
_READ_OF_QUERY = 8_000
# So many beyond those wanted may lend to their neighbours.
_MORE_LENDERS = 5


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
    explain: bool = False


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
    branches = Branches(library, scope, notebooks, parse(text), request.ranking)
    found = await branches.run(request.branches, request.ranking.fetch(wanted))
    ranked = await _ranked(library, scope, found, request, wanted)
    fresh = [result for result in ranked if not is_given(result.memory.id, before)]
    kept, cut = within_budget(_sorted(fresh[: request.limit], request.sort), request.max_tokens)
    more = cut or len(fresh) > request.limit
    return Answer(
        memories=tuple(kept),
        searched=tuple(notebook.name for notebook in notebooks),
        degraded=tuple(found.degraded),
        truncated=more,
        cursor=given_cursor([result.memory.id for result in kept], before, question) if more else None,
        note=None if ranked else _why_empty(notebooks, request),
        explain=explanation(found) if request.explain else None,
    )


async def _ranked(library: Library, scope: Scope, found: Found, request: RecallRequest, wanted: int) -> list[Recalled]:
    """The answer's memories and one more if there is one, best first."""
    ranking = request.ranking
    fetched = ranking.fetch(wanted)
    coverage = found.coverage()
    lists = [
        Listed(branch, hits.ids, hits.scores, _weight(branch, found, ranking, max(coverage.values(), default=0.0)))
        for branch, hits in found.hits.items()
    ]
    fused = fuse(lists, ranking, fetched)
    if not fused.order:
        return []
    # Those beyond could only come last; and who would not be in the answer himself lends next to nothing.
    seeds = fused.order[: fetched + 1]
    candidates = await library.statements.pool(
        scope,
        ids=seeds,
        lenders=seeds[: wanted + _MORE_LENDERS],
        reach=len(ranking.neighbours),
        model=found.model_id,
    )
    pool = lend(fused, candidates, _beside(candidates), ranking)
    leading = list(pool.order[: fetched + 1])
    relevance = np.array([pool.relevance[id_] for id_ in leading])
    if library.reranker is not None and "dense" in request.branches:
        leading, relevance = await reranked(
            library.reranker, request.query, leading, relevance, candidates, found.degraded
        )
    vectors = _matrix([candidates[id_].raw_vector for id_ in leading])
    order = maximal_marginal_relevance(relevance, vectors @ vectors.T, wanted + 1, ranking.mmr_lambda)
    cosines = vectors @ found.vector if found.vector is not None and vectors.shape[1] == len(found.vector) else None
    results = []
    for place in order:
        id_ = leading[place]
        evidence = calibrated(coverage.get(id_, 0.0), 0.0 if cosines is None else float(cosines[place]))
        if evidence >= ranking.min_score:
            terms = explained(id_, found, fused, pool) if request.explain else None
            results.append(Recalled(candidates[id_].memory, round(evidence, 3), terms))
    return results


def _weight(branch: Branch, found: Found, ranking: Ranking, coverage: float) -> float:
    if branch == "dense" and found.model is not None:
        return ranking.dense * dense_weight(found.model.weight, coverage)
    return ranking.weight(branch)


def _sorted(results: list[Recalled], sort: Sort) -> list[Recalled]:
    """The best results in the order asked for."""
    if sort == "score":
        return results
    if sort.startswith("updated"):
        return sorted(results, key=lambda result: result.memory.updated_at, reverse=sort.endswith("desc"))
    return sorted(results, key=lambda result: result.memory.when, reverse=sort.endswith("desc"))


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


def _matrix(vectors: Sequence[bytes | None]) -> NDArray[np.float32]:
    """Unit vectors as rows (n, dimensions), from big-endian half floats; zero where a vector is owed."""
    size = next((len(vector) for vector in vectors if vector is not None), 2)
    joined = b"".join(bytes(size) if vector is None else vector for vector in vectors)
    matrix = np.frombuffer(joined, dtype=">f2").reshape(len(vectors), size // 2).astype(np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    np.divide(matrix, lengths, out=matrix, where=lengths > 0)
    return matrix


def _why_empty(notebooks: Sequence[Notebook], request: RecallRequest) -> str:
    names = ", ".join(notebook.name for notebook in notebooks[:5])
    if all(notebook.empty for notebook in notebooks):
        return f"Empty so far: {names}."
    if not request.filters.empty:
        return "Nothing matches within these filters; try without them."
    if request.ranking.min_score > 0:
        return f"Nothing reaches the evidence asked for (min_score {request.ranking.min_score})."
    return "Nothing stored here shares a word or a meaning with the question."
