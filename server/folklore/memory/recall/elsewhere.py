"""The project first: a question is asked in its project, and elsewhere for what is answered clearly better there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from uuid import UUID

from folklore.callers import Caller
from folklore.db.stores.namespaces import Listed, NamespaceInfo
from folklore.errors import Unavailable
from folklore.log import get_logger
from folklore.memory.context import MemoryContext
from folklore.memory.context.budget import result_tokens, within_budget
from folklore.memory.recall.page import page
from folklore.memory.recall.rank import RankedList
from folklore.memory.recall.values import Question
from folklore.model import Answer, Degraded, Recalled
from folklore.permissions import role_in
from folklore.ranking.numbers import CLEAR, CLEARLY
from folklore.text import names
from folklore.text.amounts import amount

log = get_logger(__name__)

# Most results from elsewhere; candidates of a branch, postings read for them: 30 and 20,000 found no more answers.
_AT_MOST = 3
_FETCHED = 15
_POSTINGS = 2_000
# In a search for exact words, by how much the share of them must exceed that of the project's best.
_MARGIN = 0.3


def project_of(
    question: Question, namespaces: Sequence[NamespaceInfo], caller: Caller
) -> str | None:
    """Return the name of the project of a question, None for a question to all of `namespaces`.

    A project that the caller may not read does not count, nor does `default` while it holds nothing: it is the
    namespace of every directory outside a repository. A new repository is a project.
    """
    if question.project is None or question.namespaces:
        return None
    project = names.normalise(question.project)
    key = names.key(project)
    own = [space for space in namespaces if names.key(space.name) == key]
    if key == names.DEFAULT and all(space.empty for space in own):
        return None
    if role_in(caller, project) is None:
        return None
    return project


@lru_cache(16)  # lists of namespaces
def divided(namespaces: Listed, project: str | None) -> tuple[Listed, Listed]:
    """Return the namespaces of a project, its own before those shared with every one, and all others that hold any."""
    if project is None:
        return namespaces, Listed()
    key = names.key(project)
    own = Listed()
    shared = Listed()
    others = Listed()
    for space in namespaces:
        if names.key(space.name) == key:
            own.append(space)
        elif space.shared:
            shared.append(space)
        elif not space.empty:
            others.append(space)
    return Listed(own + shared), others


def asked_elsewhere(question: Question) -> Question:
    """Return a question of a project as the other namespaces are asked it: for its few best results."""
    budget = question.ranking.postings_budget
    if not question.literal:  # which is compared by the share of its words
        budget = min(budget, _POSTINGS)
    ranking = replace(
        question.ranking, expand=(), least_fetched=_FETCHED, postings_budget=budget
    )
    return replace(
        question,
        limit=_AT_MOST,
        max_tokens=None,
        ranking=ranking,
        sort="score",
        cursor=None,
    )


async def with_elsewhere(
    memory: MemoryContext,
    home: RankedList | BaseException,
    elsewhere: RankedList | BaseException,
) -> Answer:
    """Return the page of the project, and after its results those from elsewhere that answer clearly better.

    Without the others the answer is degraded. Raises errors that are not their unavailability.
    """
    if isinstance(home, BaseException):
        raise home
    if isinstance(elsewhere, Unavailable):
        log.warning("elsewhere_degraded", reason=elsewhere.message)
        answer = await page(memory, home)
        return replace(
            answer,
            degraded=(*answer.degraded, Degraded("elsewhere", elsewhere.message)),
        )
    if isinstance(elsewhere, BaseException):
        raise elsewhere
    best = max(_fits(elsewhere).values(), default=0.0)
    needed = _needed(home)
    question = home.search.question
    additions, limit, max_tokens = within_room(
        question,
        await _better(memory, elsewhere, needed),
        len(home.scores),
        home.search.query.bag,
    )
    question = replace(question, limit=limit, max_tokens=max_tokens)
    search = replace(home.search, question=question)
    answer = await page(memory, replace(home, search=search))

    spaces = elsewhere.search.namespaces
    explain = answer.explain
    if explain:
        figures = {
            "namespaces": len(spaces),
            "best": round(best, 3),
            "needed": round(needed, 3),
        }
        explain = {**explain, "elsewhere": figures}
    found_elsewhere = elsewhere.retrieval.counts(item.memory.id for item in additions)
    return replace(
        answer,
        memories=(*answer.memories, *additions),
        searched=answer.searched + spaces.names,
        degraded=tuple(dict.fromkeys((*answer.degraded, *elsewhere.degraded))),
        note=_note(answer, additions, question, len(spaces)),
        explain=explain,
        found_by=Counter(answer.found_by) + Counter(found_elsewhere),
    )


async def _better(
    memory: MemoryContext, elsewhere: RankedList, needed: float
) -> list[Recalled]:
    """Return the results from elsewhere that fit at least as well as is needed."""
    fits = _fits(elsewhere)
    if max(fits.values(), default=0.0) < needed:
        return []
    results = (await page(memory, elsewhere)).memories
    better = [result for result in results if fits[result.memory.id] >= needed]
    return [replace(result, elsewhere=True) for result in better]


def _note(
    answer: Answer, additions: Sequence[Recalled], question: Question, spaces: int
) -> str | None:
    """Return the note of a page of the project with results from other namespaces, of which there are `spaces`."""
    if additions and all(result.match == "weak" for result in answer.memories):
        return f"Nothing in {question.project} fits the question well; see the results from elsewhere."
    if not answer.memories:
        return f"{answer.note or ''} Nothing better in {amount(spaces, 'other namespace')}.".strip()
    return answer.note


def _fits(ranked: RankedList) -> Mapping[UUID, float]:
    """Return how well each result fits, 0 to 1, comparable between scopes.

    It is the confidence of the result; in a search for exact words, the share of them that the result holds.
    """
    if ranked.search.question.literal:
        fits: Mapping[UUID, float] = ranked.retrieval.coverage()
    else:
        fits = ranked.confidence
    return {id_: fits.get(id_, 1.0) for id_ in ranked.scores}


def _needed(home: RankedList) -> float:
    """Return the fit from which a result from elsewhere is clearly better than the best of the project."""
    best = max(_fits(home).values(), default=0.0)
    if home.search.question.literal:
        return best + _MARGIN
    # the odds are p / (1 - p)
    return max(CLEARLY * best / (1.0 - best + CLEARLY * best), CLEAR)


def within_room(
    question: Question, results: Sequence[Recalled], count: int, query: str
) -> tuple[Sequence[Recalled], int, int | None]:
    """Return the results from elsewhere that have room on a page, and the limit and the tokens that are left.

    They take at most half of both, and the room that `count` results of the project leave. The limit is at least 1.
    """
    limit = question.limit
    tokens = question.max_tokens
    most = min(_AT_MOST, max(limit // 2, limit - count))
    budget = None if tokens is None else tokens // 2
    additions, _ = within_budget(results[:most], budget, query)
    if tokens is not None and additions:
        tokens = max(tokens - sum(map(result_tokens, additions)), 1)
    return additions, max(limit - len(additions), 1), tokens
