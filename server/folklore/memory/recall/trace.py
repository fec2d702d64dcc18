"""Explanation of a recall: the values of every step, which the answer itself leaves out."""

from collections.abc import Iterator, Mapping
from uuid import UUID

from folklore.contract.recall import (
    ExplainedCandidate,
    ExplainRequest,
    Explanation,
    Stage,
)
from folklore.db.rows import memory_of
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.recall.pipeline import question_of, ranked, search_of
from folklore.memory.recall.rank import RankedList
from folklore.model import Memory
from folklore.ranking.weights import numbers_of


async def explain(context: RequestContext, request: ExplainRequest) -> Explanation:
    """Explain the recall of a question in its namespaces, or in all, asked as one scope. Raises InvalidInput, NotFound.

    The ranking is that of a recall, with the same statements; one more reads the texts of candidates that it left out.
    """
    memory = context.memory
    namespaces = await memory.find_namespaces(request.namespaces)
    search = search_of(
        context, await question_of(context, request, request.query), namespaces
    )
    if search.text in ("", "*"):
        raise InvalidInput(
            "query", "is empty.", hint="Ask a question, or give some words."
        )
    outcome = await ranked(memory, search)
    return Explanation(
        query=search.text,
        searched=namespaces.names,
        branches=outcome.retrieval.lists(),
        candidates=tuple(_candidates(outcome, await _texts(memory, outcome))),
        words=outcome.retrieval.explained_words(),
        ranking=numbers_of(search.ranking),
        degraded=outcome.degraded,
    )


async def _texts(memory: MemoryContext, outcome: RankedList) -> Mapping[UUID, Memory]:
    """Return all candidates as memories, those too that the ranking did not read."""
    read = {
        id_: memory_of(candidate.row, candidate.namespace)
        for id_, candidate in outcome.candidates.all.items()
    }
    lacking = [
        id_
        for hits in outcome.retrieval.hits.values()
        for id_ in hits.ids
        if id_ not in read
    ]
    if not lacking:
        return read
    namespaces = [namespace.id for namespace in outcome.search.namespaces]
    return read | {
        item.id: item
        for _, item in await memory.memories.get(
            namespaces, list(dict.fromkeys(lacking))
        )
    }


def _candidates(
    outcome: RankedList, texts: Mapping[UUID, Memory]
) -> Iterator[ExplainedCandidate]:
    """Yield the candidates: results in their order, then by relevance."""
    parts = {id_: outcome.parts_of(id_) for id_ in outcome.candidates.all}
    relevance = {id_: sum(of.values()) for id_, of in parts.items()}
    by_relevance = sorted(relevance, key=lambda id_: -relevance[id_])
    hits = [id_ for branch in outcome.retrieval.hits.values() for id_ in branch.ids]
    newest_by_variant: dict[UUID, UUID] = {}
    for newest, variants in outcome.variants.items():
        newest_by_variant |= dict.fromkeys(variants, newest)
    ranks = dict(
        zip(outcome.scores, range(1, outcome.search.question.limit + 1), strict=False)
    )
    for id_ in dict.fromkeys(
        [*outcome.scores, *outcome.representatives, *by_relevance, *hits]
    ):
        if id_ in texts:
            yield ExplainedCandidate(
                memory=texts[id_],
                stage=_stage(outcome, id_, ranks, newest_by_variant),
                rank=ranks.get(id_),
                represented_by=newest_by_variant.get(id_),
                relevance=relevance.get(id_, 0.0),
                shares=parts.get(id_, {}),
                redundancy=outcome.redundancy.get(id_),
                confidence=outcome.confidence.get(id_),
                score=outcome.scores.get(id_)
                if outcome.search.sorted_by_score
                else None,
            )


def _stage(
    outcome: RankedList,
    id_: UUID,
    ranks: Mapping[UUID, int],
    newest_by_variant: Mapping[UUID, UUID],
) -> Stage:
    if id_ in newest_by_variant:
        return "grouped"
    if id_ in outcome.scores:
        return "answer" if id_ in ranks else "next page"
    if id_ in outcome.redundancy:
        return "low confidence"
    candidate = outcome.candidates.all.get(id_)
    if candidate is None:
        return "not read"
    beyond = candidate.kind == "reflection" and id_ not in outcome.representatives
    return "reflection" if beyond else "below the limit"
