"""Several questions in one recall: their answers are joined, and a memory that answers several is there once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from folklore.errors import InvalidInput
from folklore.memory.pagination import MAX_PAGED, given_before, given_cursor, without_clock
from folklore.memory.recall.page import NO_FURTHER_PAGES, in_order, within_budget
from folklore.memory.recall.values import Question
from folklore.memory.requests import RecallRequest
from folklore.model import Answer, JsonObject, Recalled

MAX_QUERIES = 8


def queries_of(request: RecallRequest) -> tuple[str, ...]:
    """Return the questions of a request, one or several. Raises InvalidInput."""
    if request.query is not None:
        if request.queries:
            raise InvalidInput("queries", "excludes query.", hint="Give exactly one of the two.")
        return (request.query,)
    if not 1 <= len(request.queries) <= MAX_QUERIES:
        if not request.queries:
            raise InvalidInput("query", "is missing.", hint=f"Give query, or up to {MAX_QUERIES} questions as queries.")
        raise InvalidInput("queries", f"must hold at most {MAX_QUERIES} questions, got {len(request.queries)}.")
    for place, query in enumerate(request.queries):
        if query.strip() in ("", "*"):
            hint = "Ask a question; the query * by itself lists what is trending."
            raise InvalidInput(f"queries[{place}]", "is no question.", hint=hint)
    if request.ranking.embedding is not None:
        raise InvalidInput("ranking.embedding", "belongs to one query.", hint="Leave it out, or ask one question.")
    return request.queries


def key_of(questions: Sequence[Question]) -> object:
    """Return what identifies these questions in a cursor."""
    first = questions[0]
    texts = tuple(question.query for question in questions)
    return texts, first.namespaces, without_clock(first.filters), first.ranking


def each_of(questions: Sequence[Question]) -> list[Question]:
    """Return the questions as they are asked: order, length and pages are those of the whole answer."""
    before = given_before(questions[0].cursor, key_of(questions))
    return [replace(item, sort="score", max_tokens=None, cursor=None, before=before) for item in questions]


def joined(questions: Sequence[Question], answers: Sequence[Answer]) -> Answer:
    """Join the answers to questions: the best result of each, then the second of each, and so on."""
    first, before = questions[0], each_of(questions)[0].before
    ranked = _numbered(answers, expanded=False)
    expanded = {key: item for key, item in _numbered(answers, expanded=True).items() if key not in ranked}
    results = in_order(list(ranked.values())[: first.limit], first.sort)
    kept, cut = within_budget([*results, *expanded.values()], first.max_tokens)
    more = cut or len(ranked) > first.limit or any(answer.truncated for answer in answers)
    cursor, notes = None, [f"queries[{place}]: {item.note}" for place, item in enumerate(answers) if item.note]
    if more and len(before) + len(kept) <= MAX_PAGED:
        cursor = given_cursor([item.memory.id for item in kept], before, key_of(questions))
    elif more:
        notes.append(NO_FURTHER_PAGES)
    return Answer(
        memories=tuple(kept),
        searched=answers[0].searched,
        degraded=tuple(dict.fromkeys(item for answer in answers for item in answer.degraded)),
        truncated=more,
        cursor=cursor,
        note=" ".join(notes) or None,
        explain=_by_question({place: item.explain for place, item in enumerate(answers)}),
        found_by=sum((Counter(answer.found_by) for answer in answers), Counter()),
    )


def _numbered(answers: Sequence[Answer], *, expanded: bool) -> dict[tuple[str, UUID], Recalled]:
    """Return the results by rank, each with the numbers of the questions that found it and its greatest score."""
    lists = [[item for item in answer.memories if (item.expanded is not None) is expanded] for answer in answers]
    found: dict[tuple[str, UUID], dict[int, Recalled]] = {}
    for rank in range(max(map(len, lists))):
        for number, results in enumerate(lists):
            if rank < len(results):
                memory = results[rank].memory
                found.setdefault((memory.namespace, memory.id), {})[number] = results[rank]
    return {key: _one(by_question) for key, by_question in found.items()}


def _one(by_question: Mapping[int, Recalled]) -> Recalled:
    """Return one result for a memory, as the question shows it to which it fits best."""
    best = max(by_question.values(), key=lambda item: item.score or 0.0)
    explain = _by_question({number: item.explain for number, item in by_question.items()})
    return replace(best, queries=tuple(sorted(by_question)), explain=explain)


def _by_question(explained: Mapping[int, JsonObject | None]) -> JsonObject | None:
    """Return explanations by the number of their question, None without any."""
    return {str(number): item for number, item in sorted(explained.items()) if item is not None} or None
