"""Explanation of a recall: the values of every step, which the answer itself leaves out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from folklore.db.rows import memory_of
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.recall.keyword import read_terms
from folklore.memory.recall.pipeline import question_of, ranked, search_of
from folklore.memory.recall.rank import Ranked
from folklore.memory.recall.values import Found, Search
from folklore.memory.requests import ExplainRequest
from folklore.memory.results import BranchHit, BranchList, ExplainedCandidate, ExplainedWord, Explanation, Stage
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
    found, outcome = await ranked(memory, search)
    trace = _Trace(search, found, outcome)
    return Explanation(
        query=search.text,
        searched=namespaces.names,
        branches=tuple(trace.branches()),
        candidates=tuple(trace.candidates(await _texts(memory, search, found, outcome))),
        words=tuple(trace.words()),
        ranking=numbers_of(search.ranking),
        degraded=(*found.degraded, *outcome.degraded),
    )


async def _texts(memory: MemoryContext, search: Search, found: Found, outcome: Ranked) -> Mapping[UUID, Memory]:
    """Return all candidates as memories, those too that the ranking did not read."""
    read = {id_: memory_of(candidate.row, candidate.namespace) for id_, candidate in outcome.candidates.all.items()}
    lacking = [id_ for hits in found.hits.values() for id_ in hits.ids if id_ not in read]
    if not lacking:
        return read
    rows = await memory.memories.get([namespace.id for namespace in search.namespaces], list(dict.fromkeys(lacking)))
    return read | {item.id: item for _, item in rows}


@dataclass(frozen=True, slots=True)
class _Trace:
    """A ranked answer with the values that led to it."""

    search: Search
    found: Found
    outcome: Ranked

    def branches(self) -> list[BranchList]:
        """Return the lists of the branches."""
        milliseconds = {"dense": self.found.dense.milliseconds, "keyword": self.found.keyword.milliseconds}
        lists = []
        for branch, hits in self.found.hits.items():
            listed = zip(hits.ids, hits.scores, hits.raw, strict=True)
            rows = tuple(BranchHit(id_, rank, score, raw) for rank, (id_, score, raw) in enumerate(listed, start=1))
            path = hits.path if branch == "dense" else "tsvector" if self.search.expression else "postings"
            lists.append(BranchList(branch, path, milliseconds[branch], rows))
        return lists

    def words(self) -> list[ExplainedWord]:
        """Return the words of the question, the heaviest first."""
        words = self.found.keyword.words
        if words is None:
            return []
        weights = words.weights
        found = [ExplainedWord(word, count, weights.get(word, 0.0)) for word, count in words.query.documents.items()]
        return sorted(found, key=lambda item: -item.weight)

    def candidates(self, texts: Mapping[UUID, Memory]) -> list[ExplainedCandidate]:
        """Return the candidates: results in their order, then by relevance."""
        results = list(self.outcome.scores)
        parts = {id_: self.outcome.parts_of(id_) for id_ in self.outcome.candidates.all}
        relevance = {id_: sum(parts[id_].values()) for id_ in sorted(parts, key=lambda id_: -sum(parts[id_].values()))}
        hits = [id_ for branch in self.found.hits.values() for id_ in branch.ids]
        order = dict.fromkeys([*results, *self.outcome.leading.order, *relevance, *hits])
        representatives = {id_: newest for newest, others in self.outcome.leading.variants.items() for id_ in others}
        ranks = {id_: rank for rank, id_ in enumerate(results[: self.search.question.limit], start=1)}
        return [
            ExplainedCandidate(
                memory=texts[id_],
                stage=self._stage(id_, ranks, representatives),
                rank=ranks.get(id_),
                represented_by=representatives.get(id_),
                relevance=relevance.get(id_, 0.0),
                shares=parts.get(id_, {}),
                redundancy=self.outcome.redundancy.get(id_),
                confidence=self.outcome.confidence.get(id_),
                score=self.outcome.scores.get(id_) if self.search.sorted_by_score else None,
            )
            for id_ in order
            if id_ in texts
        ]

    def _stage(self, id_: UUID, ranks: Mapping[UUID, int], representatives: Mapping[UUID, UUID]) -> Stage:
        outcome = self.outcome
        if id_ in ranks or id_ in outcome.scores:
            return "answer" if id_ in ranks else "next page"
        if id_ in representatives:
            return "grouped"
        if id_ in outcome.redundancy:
            return "low confidence"
        if id_ in outcome.leading.order:
            return "below the limit"
        candidate = outcome.candidates.all.get(id_)
        if candidate is None:
            return "not read"
        return "reflection" if candidate.kind == "reflection" else "below the limit"
