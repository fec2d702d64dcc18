"""Explanation of a recall: the values of every step, which the answer itself leaves out."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from folklore.db.rows import memory_of
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.recall.keyword import read_terms
from folklore.memory.recall.pipeline import question_of, ranked, search_of
from folklore.memory.recall.rank import RankedList
from folklore.memory.recall.values import Retrieval, Search
from folklore.memory.requests import ExplainRequest
from folklore.memory.results import ExplainedCandidate, Explanation, Stage
from folklore.model import Memory
from folklore.ranking.weights import numbers_of


async def explain(context: RequestContext, request: ExplainRequest) -> Explanation:
    """Explain the recall of a question in its namespaces, or in all, asked as one scope. Raises InvalidInput, NotFound.

    The ranking is that of a recall, with the same statements; one more reads the texts of candidates that it left out.
    """
    memory = context.memory
    namespaces = await memory.find_namespaces(request.namespaces)
    search = search_of(context, await question_of(context, request, request.query), namespaces)
    if search.text in ("", "*"):
        raise InvalidInput("query", "is empty.", hint="Ask a question, or give some words.")
    if search.expression:
        search = await read_terms(memory, search)
    retrieval, outcome = await ranked(memory, search)
    texts = await _texts(memory, search, retrieval, outcome)
    return Explanation(
        query=search.text,
        searched=namespaces.names,
        branches=retrieval.lists(search),
        candidates=tuple(_candidates(search, retrieval, outcome, texts)),
        words=retrieval.words(),
        ranking=numbers_of(search.ranking),
        degraded=(*retrieval.degraded, *outcome.degraded),
    )


async def _texts(
    memory: MemoryContext, search: Search, retrieval: Retrieval, outcome: RankedList
) -> Mapping[UUID, Memory]:
    """Return all candidates as memories, those too that the ranking did not read."""
    read = {id_: memory_of(candidate.row, candidate.namespace) for id_, candidate in outcome.candidates.all.items()}
    lacking = [id_ for hits in retrieval.hits.values() for id_ in hits.ids if id_ not in read]
    if not lacking:
        return read
    rows = await memory.memories.get([namespace.id for namespace in search.namespaces], list(dict.fromkeys(lacking)))
    return read | {item.id: item for _, item in rows}


def _candidates(
    search: Search, retrieval: Retrieval, outcome: RankedList, texts: Mapping[UUID, Memory]
) -> Iterator[ExplainedCandidate]:
    """Yield the candidates: results in their order, then by relevance."""
    results = list(outcome.scores)
    parts = {id_: outcome.parts_of(id_) for id_ in outcome.candidates.all}
    relevance = {id_: sum(parts[id_].values()) for id_ in sorted(parts, key=lambda id_: -sum(parts[id_].values()))}
    hits = [id_ for branch in retrieval.hits.values() for id_ in branch.ids]
    representatives = {id_: newest for newest, others in outcome.shortlist.variants.items() for id_ in others}
    ranks = {id_: rank for rank, id_ in enumerate(results[: search.question.limit], start=1)}
    for id_ in dict.fromkeys([*results, *outcome.shortlist.order, *relevance, *hits]):
        if id_ in texts:
            yield ExplainedCandidate(
                memory=texts[id_],
                stage=_stage(outcome, id_, ranks, representatives),
                rank=ranks.get(id_),
                represented_by=representatives.get(id_),
                relevance=relevance.get(id_, 0.0),
                shares=parts.get(id_, {}),
                redundancy=outcome.redundancy.get(id_),
                confidence=outcome.confidence.get(id_),
                score=outcome.scores.get(id_) if search.sorted_by_score else None,
            )


def _stage(outcome: RankedList, id_: UUID, ranks: Mapping[UUID, int], representatives: Mapping[UUID, UUID]) -> Stage:
    if id_ in ranks or id_ in outcome.scores:
        return "answer" if id_ in ranks else "next page"
    if id_ in representatives:
        return "grouped"
    if id_ in outcome.redundancy:
        return "low confidence"
    if id_ in outcome.shortlist.order:
        return "below the limit"
    candidate = outcome.candidates.all.get(id_)
    if candidate is None:
        return "not read"
    return "reflection" if candidate.kind == "reflection" else "below the limit"
