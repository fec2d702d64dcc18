"""Recall: two branches at once, fused, boosted by neighbours, diversified, cut to the token budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from folklore.db.stores.namespaces import NamespaceInfo
from folklore.db.stores.recall_rows import Scope
from folklore.errors import InvalidInput
from folklore.memory.context import RequestContext, names_by_id
from folklore.memory.filters import resolve_filters
from folklore.memory.pagination import MAX_PAGED, given_before, given_cursor, is_given, without_clock
from folklore.memory.recall.branches import Branches, Found
from folklore.memory.recall.expand import expanded
from folklore.memory.recall.explain import explanation
from folklore.memory.recall.rank import ranked
from folklore.memory.recall.token_budget import within_budget
from folklore.memory.records.listing import ListPage, list_page
from folklore.memory.requests import RecallRequest, Reflections, SearchRequest
from folklore.model import Answer, Filters, Recalled, Sort
from folklore.ranking.weights import Branch, Ranking, chosen
from folklore.telemetry import stage
from folklore.text.clean import clean
from folklore.text.query.parser import parse

MAX_LIMIT = 100
MAX_QUERY = 1_000_000
# Characters of a query that are read: the beginning of a pasted log names its subject.
_READ_OF_QUERY = 8_000
_NO_FURTHER_PAGES = f"Paging ends after about {MAX_PAGED:,} results; ask a narrower question, or list with filters."
_REFLECTIONS: dict[Reflections, bool | None] = {"include": None, "exclude": False, "only": True}


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its filters and ranking.

    With `literal`, a phrase must occur; else its words count, and its occurrence is a signal. `embedding` replaces the
    text's own vector of the active model.
    """

    query: str
    namespaces: Sequence[str] = ()
    limit: int = 10
    filters: Filters = Filters()
    ranking: Ranking = field(default_factory=Ranking)
    branches: tuple[Branch, ...] = ("dense", "keyword")
    literal: bool = False
    sort: Sort = "score"
    max_tokens: int | None = None
    cursor: str | None = None
    explain: bool = False
    embedding: Sequence[float] | None = None


async def recall(context: RequestContext, request: RecallRequest) -> Answer:
    """Find memories that answer a question, best first. Raises InvalidInput, NotFound, Unavailable."""
    asked = request.ranking
    filters = resolve_filters(request.filters, context)
    question = Question(
        query=request.query,
        namespaces=request.namespaces,
        limit=request.limit,
        filters=replace(filters, reflections=_REFLECTIONS[asked.reflections]),
        ranking=chosen(
            asked.preset,
            weights=asked.weights,
            min_score=asked.min_score,
            mmr_lambda=asked.mmr_lambda,
            expand=asked.expand or None,
        ),
        sort=request.sort,
        max_tokens=request.max_tokens,
        cursor=request.cursor,
        explain=request.explain,
        embedding=asked.embedding,
    )
    return await answer(context, question)


async def search(context: RequestContext, request: SearchRequest) -> Answer:
    """Find memories that hold words or phrases; rare words count most. Raises InvalidInput, NotFound, Unavailable."""
    question = Question(
        query=request.query,
        namespaces=request.namespaces,
        limit=request.limit,
        filters=resolve_filters(request.filters, context),
        ranking=Ranking(dense=0.0, neighbours=(), relations=0.0, mmr_lambda=1.0),
        branches=("keyword",),
        literal=True,
        cursor=request.cursor,
    )
    return await answer(context, question)


async def answer(context: RequestContext, request: Question) -> Answer:
    """Answer a question.

    A branch that fails degrades the answer. If every branch fails, or Postgres is unavailable, that is an error, never
    an empty answer. Raises InvalidInput, NotFound, Unavailable.
    """
    library, now = context.memory, context.now
    if not 1 <= request.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}, got {request.limit}.")
    if len(request.query) > MAX_QUERY:
        raise InvalidInput("query", f"must be at most {MAX_QUERY:,} characters, got {len(request.query):,}.")
    text = clean(request.query[: 2 * _READ_OF_QUERY]).text.strip()[:_READ_OF_QUERY]
    filters = request.filters
    notebooks = await library.find_namespaces(request.namespaces)
    if not notebooks:
        return Answer((), (), note="Nothing has been stored yet.")
    if text in ("", "*"):
        asked = ListPage(tuple(request.namespaces), request.limit, request.sort, request.cursor, request.max_tokens)
        return await list_page(context, notebooks, filters, asked)
    question = (text, request.namespaces, without_clock(filters), request.ranking, request.branches, request.embedding)
    before = given_before(request.cursor, question)
    wanted = len(before) + request.limit
    searched = _not_empty(notebooks)
    scope = Scope(names_by_id(searched), filters, now)
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
    goes_on = len(before) + len(kept) <= MAX_PAGED
    note = None if results else _why_empty(notebooks, request, found)
    return Answer(
        memories=tuple(kept),
        searched=tuple(notebook.name for notebook in notebooks),
        degraded=tuple(found.degraded),
        truncated=more,
        cursor=given_cursor([result.memory.id for result in kept], before, question) if more and goes_on else None,
        note=_NO_FURTHER_PAGES if more and not goes_on else note,
        explain=explanation(found) if request.explain else None,
        found_by=found.brought(result.memory.id for result in kept),
    )


def _not_empty(notebooks: Sequence[NamespaceInfo]) -> Sequence[NamespaceInfo]:
    """Return the namespaces that hold memories, or all of them if none does.

    Looking up a word takes one descent of an index for each namespace in scope, empty or not.
    """
    return [notebook for notebook in notebooks if not notebook.empty] or notebooks


def _sorted(results: list[Recalled], sort: Sort) -> list[Recalled]:
    """The best results in the order asked for."""
    if sort == "score":
        return results
    if sort.startswith("updated"):
        return sorted(results, key=lambda result: result.memory.updated_at, reverse=sort.endswith("desc"))
    return sorted(results, key=lambda result: result.memory.when, reverse=sort.endswith("desc"))


def _why_empty(notebooks: Sequence[NamespaceInfo], request: Question, found: Found) -> str:
    names = ", ".join(notebook.name for notebook in notebooks[:5])
    if all(notebook.empty for notebook in notebooks):
        return f"Empty so far: {names}."
    if request.ranking.min_score > 0 and any(hits.ids for hits in found.hits.values()):
        return f"Nothing reaches the evidence asked for (min_score {request.ranking.min_score})."
    if found.degraded:
        return "Nothing was found, but a branch of the search could not take part (degraded)."
    if not request.filters.empty:
        return "Nothing matches within these filters; try without them."
    return "Nothing stored here shares a word or a meaning with the question."
