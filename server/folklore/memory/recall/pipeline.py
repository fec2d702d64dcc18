"""Recall: two branches at once, fused, lent to by neighbours, diversified, cut to the budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from folklore.db.stores.namespaces import NamespaceInfo
from folklore.db.stores.recall_rows import Scope
from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext, scope_of
from folklore.memory.pagination import MOST_GIVEN, as_said, given_before, given_cursor, is_given
from folklore.memory.recall.branches import Branches, Found
from folklore.memory.recall.expand import expanded
from folklore.memory.recall.explain import explanation
from folklore.memory.recall.rank import ranked
from folklore.memory.recall.token_budget import within_budget
from folklore.memory.records.listing import list_memories
from folklore.model import Answer, Filters, Recalled, Sort
from folklore.ranking.weights import Branch, Ranking
from folklore.telemetry import stage
from folklore.text.clean import clean
from folklore.text.query.parser import parse

MAX_LIMIT = 100
MAX_QUERY = 1_000_000
# What of a long query is read: a pasted log says what it is about in its beginning.
_READ_OF_QUERY = 8_000
_AS_FAR_AS_PAGES_GO = f"Pages go no further than about {MOST_GIVEN:,} results; ask more closely, or list with filters."


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A question to the memory."""

    query: str
    namespaces: Sequence[str] = ()
    limit: int = 10
    filters: Filters = Filters()
    ranking: Ranking = field(default_factory=Ranking)
    branches: tuple[Branch, ...] = ("dense", "keyword")
    # Whether a phrase among alternatives must be held as it stands; else it is words, and preferred (signals.exact).
    literal: bool = False
    sort: Sort = "score"
    max_tokens: int | None = None
    cursor: str | None = None
    explain: bool = False
    # The question's vector, in the model of the vectors here, in place of one made from its text.
    embedding: Sequence[float] | None = None


async def recall(library: MemoryContext, request: RecallRequest, *, now: datetime) -> Answer:
    """Find what is known about a question, best first.

    A branch that fails degrades the answer; if every branch fails, or Postgres is down, that is an error and never an
    empty answer. Raises InvalidInput, NotFound, Unavailable.
    """
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT}, not {request.limit}.")
    if len(request.query) > MAX_QUERY:
        raise InvalidInput("query", f"has {len(request.query):,} characters; the limit is {MAX_QUERY:,}.")
    text = clean(request.query[: 2 * _READ_OF_QUERY]).text.strip()[:_READ_OF_QUERY]
    filters = _filters(request)
    notebooks = await library.notebooks(request.namespaces)
    if not notebooks:
        return Answer((), (), note="Nothing has been stored yet.")
    if text in ("", "*"):
        return await list_memories(
            library,
            notebooks,
            filters,
            limit=request.limit,
            now=now,
            sort=request.sort,
            cursor=request.cursor,
            max_tokens=request.max_tokens,
            asked=request.namespaces,
        )
    question = (text, request.namespaces, as_said(filters), request.ranking, request.branches, request.embedding)
    before = given_before(request.cursor, question)
    wanted = len(before) + request.limit
    searched = _not_empty(notebooks)
    scope = Scope(scope_of(searched), filters, now)
    statements = library.statements.conversation()
    try:
        branches = Branches(
            library,
            statements,
            scope,
            searched,
            parse(text),
            request.ranking,
            request.embedding,
            literal=request.literal,
        )
        found = await branches.run(request.branches, request.ranking.fetch(wanted))
        with stage("recall.rank"):
            results = await ranked(
                library.reranker, statements, scope, found, request.ranking, text, wanted, explain=request.explain
            )
    finally:
        await statements.let_go()
    fresh = [result for result in results if not is_given(result.memory.id, before)]
    page = _sorted(fresh[: request.limit], request.sort)
    beyond = await expanded(library, scope, page, request.ranking.expand) if request.ranking.expand and page else []
    beyond = [result for result in beyond if not is_given(result.memory.id, before)]
    kept, cut = within_budget([*page, *beyond], request.max_tokens)
    more = cut or len(fresh) > request.limit
    goes_on = len(before) + len(kept) <= MOST_GIVEN
    note = None if results else _why_empty(notebooks, request, found)
    return Answer(
        memories=tuple(kept),
        searched=tuple(notebook.name for notebook in notebooks),
        degraded=tuple(found.degraded),
        truncated=more,
        cursor=given_cursor([result.memory.id for result in kept], before, question) if more and goes_on else None,
        note=_AS_FAR_AS_PAGES_GO if more and not goes_on else note,
        explain=explanation(found) if request.explain else None,
        found_by=found.brought(result.memory.id for result in kept),
    )


def _not_empty(notebooks: Sequence[NamespaceInfo]) -> Sequence[NamespaceInfo]:
    """Return the namespaces that hold memories, or all of them if none does.

    Looking up a word takes one descent of an index for each namespace in scope, empty or not.
    """
    return [notebook for notebook in notebooks if not notebook.empty] or notebooks


def _filters(request: RecallRequest) -> Filters:
    """The filters, and what the ranking says of reflections."""
    ranking = request.ranking
    if ranking.reflections_only:
        return replace(request.filters, reflections=True)
    return request.filters if ranking.include_reflections else replace(request.filters, reflections=False)


def _sorted(results: list[Recalled], sort: Sort) -> list[Recalled]:
    """The best results in the order asked for."""
    if sort == "score":
        return results
    if sort.startswith("updated"):
        return sorted(results, key=lambda result: result.memory.updated_at, reverse=sort.endswith("desc"))
    return sorted(results, key=lambda result: result.memory.when, reverse=sort.endswith("desc"))


def _why_empty(notebooks: Sequence[NamespaceInfo], request: RecallRequest, found: Found) -> str:
    names = ", ".join(notebook.name for notebook in notebooks[:5])
    if all(notebook.empty for notebook in notebooks):
        return f"Empty so far: {names}."
    if request.ranking.min_score > 0 and any(hits.ids for hits in found.hits.values()):
        return f"Nothing reaches the evidence asked for (min_score {request.ranking.min_score})."
    if found.degraded:
        return "Nothing was found, but a branch of the search could not take part (degraded)."
    if not request.filters.empty or request.ranking.reflections_only:
        return "Nothing matches within these filters; try without them."
    return "Nothing stored here shares a word or a meaning with the question."
