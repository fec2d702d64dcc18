"""Recall: two branches at the same time, one trained ranking of their candidates, page.

docs/ranking.md has the whole formula.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import starmap
from uuid import UUID

from folklore.background import all_of
from folklore.contract.filters import ALL
from folklore.contract.recall import (
    ExplainRequest,
    RecallRequest,
    Reflections,
    SearchRequest,
)
from folklore.db.stores.namespaces import Listed
from folklore.db.stores.recall_rows import Scope
from folklore.errors import Unavailable
from folklore.log import get_logger
from folklore.memory.context import MemoryContext, RequestContext, names_by_id
from folklore.memory.context.active_model import SWITCHED_OFF
from folklore.memory.context.filters import resolve_filters
from folklore.memory.context.pagination import given_before, without_clock
from folklore.memory.recall.dense import dense_branch
from folklore.memory.recall.elsewhere import (
    asked_elsewhere,
    divided,
    project_of,
    with_elsewhere,
)
from folklore.memory.recall.keyword import keyword_branch, read_terms
from folklore.memory.recall.page import page
from folklore.memory.recall.rank import RankedList, rank
from folklore.memory.recall.several import each_of, joined, queries_of
from folklore.memory.recall.values import BranchResult, Question, Retrieval, Search
from folklore.memory.records.listing import PageOptions, list_page
from folklore.model import Answer, Degraded
from folklore.ranking.weights import Branch, Ranking, chosen
from folklore.text.clean import clean
from folklore.text.query.parser import parse

log = get_logger(__name__)

# Characters of a query that are read: the beginning of a pasted log names its subject.
_READ_OF_QUERY = 8_000
# Words of a query that are read.
_TOKENS = 512
# Memories in a scope from which on it is asked first whether the filters let few through.
_LARGE_SCOPE = 2_000
# Scopes whose names and languages are kept.
_SCOPES = 32
_REFLECTIONS: Mapping[Reflections, bool | None] = {
    "include": None,
    "exclude": False,
    "only": True,
    "boost": None,
}


async def recall(context: RequestContext, request: RecallRequest) -> Answer:
    """Find memories that answer a question, best first, or several. Raises InvalidInput, NotFound, Unavailable."""
    queries = queries_of(request)
    asked = request.ranking
    question = replace(
        await question_of(context, request, queries[0]),
        project=None if request.namespaces else context.project(),
        sort=request.sort,
        max_tokens=request.max_tokens,
        cursor=request.cursor,
        explain=request.explain,
        embedding=asked.embedding,
        embedding_model=asked.embedding_model,
        boost_reflections=asked.reflections == "boost",
        hops=asked.hops,
        least_strength=asked.least_strength,
    )
    if not request.queries:
        return await answer(context, question)
    questions = [replace(question, query=query) for query in queries]
    answers = await all_of(*(answer(context, item) for item in each_of(questions)))
    return joined(questions, answers)


async def question_of(
    context: RequestContext, request: RecallRequest | ExplainRequest, query: str
) -> Question:
    """Return the question of a request, with its filters and its ranking. Raises InvalidInput."""
    asked = request.ranking
    filters = resolve_filters(request.filters, context)
    return Question(
        query=query,
        namespaces=() if request.namespaces == (ALL,) else request.namespaces,
        limit=request.limit,
        filters=replace(filters, reflections=_REFLECTIONS[asked.reflections]),
        ranking=chosen(
            asked.preset,
            context.memory.presets,
            weights=asked.weights,
            min_score=asked.min_score,
            mmr_lambda=asked.mmr_lambda,
            expand=asked.expand or None,
        ),
    )


async def search(context: RequestContext, request: SearchRequest) -> Answer:
    """Find memories that hold words or phrases; rare words count most. Raises InvalidInput, NotFound, Unavailable."""
    question = Question(
        query=request.query,
        namespaces=() if request.namespaces == (ALL,) else request.namespaces,
        project=None if request.namespaces else context.project(),
        limit=request.limit,
        filters=resolve_filters(request.filters, context),
        ranking=Ranking(dense=0.0, neighbours=0.0, relations=0.0, mmr_lambda=1.0),
        branches=("keyword",),
        literal=True,
        max_tokens=request.max_tokens,
        cursor=request.cursor,
    )
    return await answer(context, question)


async def answer(context: RequestContext, question: Question) -> Answer:
    """Answer a question, in its project first.

    A branch that fails degrades the answer. If every branch fails, or Postgres is unavailable, that is an error, never
    an empty answer. Raises InvalidInput, NotFound, Unavailable.
    """
    memory = context.memory
    namespaces = await memory.find_namespaces(question.namespaces)
    if not namespaces:
        return Answer((), (), note="Nothing has been stored yet.")
    question = replace(
        question, project=project_of(question, namespaces, context.caller)
    )
    home, others = divided(namespaces, question.project)
    searches_all = not question.project and not question.namespaces
    all_but_none = None
    if searches_all and _sees_all(memory):
        all_but_none = ()
    search = search_of(context, question, home, all_but_none)
    if search.text in ("", "*"):
        requested = tuple(question.namespaces)
        if question.project:
            requested = (question.project,)
        listed = PageOptions(
            requested,
            question.limit,
            question.sort,
            question.cursor,
            question.max_tokens,
        )
        return await list_page(context, home, question.filters, listed)
    if search.before or not others:  # what is elsewhere is on the first page
        return await page(memory, await ranked(memory, search))
    return await _answer_everywhere(context, search, home, others)


def _sees_all(memory: MemoryContext) -> bool:
    """Return whether this is the memory with all namespaces, not a token's view of it."""
    return memory.whole is None


async def _answer_everywhere(
    context: RequestContext, search: Search, home: Listed, others: Listed
) -> Answer:
    """Answer a question in its project and in other namespaces at the same time."""
    memory = context.memory
    all_but_home = None
    if _sees_all(memory):
        all_but_home = [namespace.id for namespace in home]
    question = asked_elsewhere(search.question)
    elsewhere = search_of(context, question, others, all_but_home)
    at_home, away = await asyncio.gather(
        ranked(memory, search), ranked(memory, elsewhere), return_exceptions=True
    )
    return await with_elsewhere(memory, at_home, away)


async def ranked(memory: MemoryContext, search: Search) -> RankedList:
    """Return the ranked results of a question in its scope. Raises InvalidInput, Unavailable."""
    if search.expression:
        search = await read_terms(memory, search)
    # A scope of which the number of memories is not known yet may be large.
    total = memory.statistics.totals.get(search.scope.key, _LARGE_SCOPE)
    has_index = search.expression and "dense" not in search.branches
    if total >= _LARGE_SCOPE and not has_index:
        narrowed = await memory.statements.narrowed(search.scope)
        search = replace(search, scope=narrowed)
    retrieval = await run_branches(memory, search)
    return await rank(memory, retrieval)


def search_of(
    context: RequestContext,
    question: Question,
    namespaces: Listed,
    all_but: Sequence[UUID] | None = None,
) -> Search:
    """Return a question in its scope, without empty namespaces.

    `all_but` are the ids of the namespaces that are left out, if these are all but a few (`Scope.others`).
    """
    text = clean(question.query[: 2 * _READ_OF_QUERY]).text.strip()[:_READ_OF_QUERY]
    query = parse(text)
    ranking = question.ranking
    requires_phrase = question.literal and bool(query.phrases)
    is_more_than_words = not query.only_alternatives or requires_phrase
    requested = question.project or question.namespaces
    filters = without_clock(question.filters)
    key = (text, requested, filters, ranking, question.branches, question.embedding)
    before = question.before
    if text not in ("", "*"):
        before |= given_before(question.cursor, key)
    names, languages = _filled(namespaces)
    return Search(
        question=question,
        text=text,
        query=query,
        tokens=query.bag.split()[:_TOKENS],
        expression=query.is_expression and is_more_than_words,
        namespaces=namespaces,
        scope=Scope(names, question.filters, context.now, all_but),
        languages=languages,
        branches=[branch for branch in question.branches if ranking.scale(branch) > 0],
        embedder=context.memory.embedder,
        key=key,
        before=before,
    )


@lru_cache(_SCOPES)
def _filled(namespaces: Listed) -> tuple[Mapping[UUID, str], Sequence[str]]:
    """Return the names of those namespaces that hold any, else of all, by id, and their languages."""
    filled = [namespace for namespace in namespaces if not namespace.empty]
    if not filled:
        filled = namespaces
    languages: set[str] = set()
    for namespace in filled:
        languages.update(namespace.languages)
    return names_by_id(filled), sorted(languages)


async def run_branches(memory: MemoryContext, search: Search) -> Retrieval:
    """Run the branches at the same time. Raises Unavailable if every one fails."""
    # The keyword branch begins: Postgres works on its first statement while this process embeds the question. Without a
    # weight it reads the words of the question, which the ranking needs.
    keyword, dense = await asyncio.gather(
        keyword_branch(memory, search),
        dense_branch(memory, search),
        return_exceptions=True,
    )
    outcomes: Mapping[Branch, BranchResult | BaseException] = {
        "dense": dense,
        "keyword": keyword,
    }
    failures = _failures(search, outcomes)
    results: dict[Branch, BranchResult] = {}
    for branch, outcome in outcomes.items():
        if isinstance(outcome, BranchResult):
            results[branch] = outcome
        else:
            results[branch] = BranchResult()
    answering = [branch for branch in search.branches if branch not in failures]
    if not answering:
        reasons = "; ".join(map(": ".join, failures.items()))
        raise Unavailable(f"Every branch of the search failed: {reasons}")
    hits = {branch: results[branch].hits for branch in answering}
    if "dense" in hits and (mismatch := memory.active_model.mismatch) is not None:
        failures["dense"] = mismatch
    if search.embedder is None and "keyword" not in hits:
        failures["dense"] = SWITCHED_OFF
    degraded = tuple(starmap(Degraded, failures.items()))
    return Retrieval(search, hits, degraded, results["dense"], results["keyword"])


def _failures(search: Search, outcomes: Mapping[Branch, object]) -> dict[Branch, str]:
    """Return the reasons of the branches that were unavailable. Raises every other error."""
    for outcome in outcomes.values():
        if isinstance(outcome, BaseException) and not isinstance(outcome, Unavailable):
            raise outcome
    failures: dict[Branch, str] = {}
    for branch, outcome in outcomes.items():
        if isinstance(outcome, Unavailable) and branch in search.branches:
            failures[branch] = outcome.message
            log.warning("branch_degraded", branch=branch, reason=outcome.message)
    return failures
