"""Several questions in one recall: their answers are joined, and a memory that answers several is there once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from uuid import UUID

from folklore.contract.recall import RecallRequest
from folklore.errors import InvalidInput
from folklore.memory.context.budget import within_budget
from folklore.memory.context.pagination import given_before, without_clock
from folklore.memory.recall.elsewhere import within_room
from folklore.memory.recall.page import continued, in_order
from folklore.memory.recall.values import Question
from folklore.model import Answer, Degraded, JsonObject, Recalled, Replaced, Variant
from folklore.ranking.diversity import newest_first
from folklore.text.arguments import is_nothing

_Key = tuple[str, UUID]


def queries_of(request: RecallRequest) -> tuple[str, ...]:
    """Return the questions of a request, one or several. Raises InvalidInput."""
    if request.query is not None and not request.queries:
        return (request.query,)
    if request.query is not None and not is_nothing(request.query):
        raise InvalidInput(
            "queries", "excludes query.", hint="Give exactly one of the two."
        )
    if not request.queries:
        raise InvalidInput(
            "query", "is missing.", hint="Give query, or up to 8 questions as queries."
        )
    for index, query in enumerate(request.queries):
        if query.strip() in ("", "*"):
            hint = "Ask a question; the query * by itself lists what is trending."
            raise InvalidInput(f"queries[{index}]", "is no question.", hint=hint)
    if request.ranking.embedding is not None:
        raise InvalidInput(
            "ranking.embedding",
            "belongs to one query.",
            hint="Leave it out, or ask one question.",
        )
    return request.queries


def key_of(questions: Sequence[Question]) -> object:
    """Return what identifies these questions in a cursor."""
    first = questions[0]
    texts = tuple(question.query for question in questions)
    return (
        texts,
        first.project or first.namespaces,
        without_clock(first.filters),
        first.ranking,
    )


def each_of(questions: Sequence[Question]) -> list[Question]:
    """Return the questions as they are asked: order, length and pages are those of the whole answer."""
    before = given_before(questions[0].cursor, key_of(questions))
    return [
        replace(item, sort="score", max_tokens=None, cursor=None, before=before)
        for item in questions
    ]


def joined(questions: Sequence[Question], answers: Sequence[Answer]) -> Answer:
    """Join the answers to questions: the best result of each, then the second of each, and so on."""
    results, more = _results(questions, answers)
    notes: list[str] = []
    degraded: list[Degraded] = []
    found_by = Counter[str]()
    for index, answer in enumerate(answers):
        if answer.note:
            notes.append(f"queries[{index}]: {answer.note}")
        degraded += answer.degraded
        found_by += Counter(answer.found_by)

    cursor = None
    if more:
        key = key_of(questions)
        before = given_before(questions[0].cursor, key)
        cursor, note = continued(results, before, key)
        if note:
            notes.append(note)
    return Answer(
        memories=tuple(results),
        searched=answers[0].searched,
        degraded=tuple(dict.fromkeys(degraded)),
        truncated=more,
        cursor=cursor,
        note=" ".join(notes) or None,
        explain=_explained(dict(enumerate(answers))),
        found_by=found_by,
    )


def _results(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> tuple[list[Recalled], bool]:
    """Return the results that fit the whole answer, those by expansion, then those from elsewhere.

    Also True if there are more.
    """
    question = questions[0]
    words = " ".join(item.query for item in questions)
    own = _united(answers, lambda item: item.expanded is None and not item.elsewhere)
    expanded = _united(answers, lambda item: item.expanded is not None)
    elsewhere = _united(answers, lambda item: item.elsewhere)

    shown_elsewhere, limit, max_tokens = within_room(
        question, list(elsewhere.values()), len(own), words
    )
    results = in_order(list(own.values())[:limit], question.sort)
    results += [item for key, item in expanded.items() if key not in own]
    results, is_cut = within_budget(results, max_tokens, words)
    is_any_truncated = any(answer.truncated for answer in answers)
    more = is_cut or is_any_truncated or len(own) > limit
    return [*results, *shown_elsewhere], more


def _united(
    answers: Sequence[Answer], belongs: Callable[[Recalled], bool]
) -> dict[_Key, Recalled]:
    """Return the results that belong, each memory once, with the numbers of the questions that found it.

    First come those that are first for a question, then the second ones. A result that another question shows as a
    variant of a newer one counts as that one.
    """
    lists = [list(filter(belongs, answer.memories)) for answer in answers]
    newest_of: dict[_Key, _Key] = {}
    for result in chain.from_iterable(lists):
        for variant in result.variants:
            newest_of[variant.namespace, variant.id] = _key(result)

    found: dict[_Key, dict[int, Recalled]] = {}
    for results_of_rank in zip_longest(*lists):
        for number, result in enumerate(results_of_rank):
            if result is not None:
                key = _key(result)
                by_question = found.setdefault(newest_of.get(key, key), {})
                by_question.setdefault(number, result)
    united = {key: _unite(key, by_question) for key, by_question in found.items()}
    return {key: united[key] for key in _newer_first(united)}


def _newer_first(results: Mapping[_Key, Recalled]) -> list[_Key]:
    """Return the keys of results with what replaces another result before it: questions may bring the two apart."""
    newer_than: dict[_Key, list[_Key]] = {}
    for key, result in results.items():
        namespace, _ = key
        for older in result.replaces:
            newer_than.setdefault((namespace, older.id), []).append(key)
    return newest_first(list(results), newer_than)


def _key(result: Recalled) -> _Key:
    return result.memory.namespace, result.memory.id


def _unite(key: _Key, by_question: Mapping[int, Recalled]) -> Recalled:
    """Return one result for a memory: its greatest score, and what belongs to any of the questions."""
    results = list(by_question.values())
    # Without those that are variants of it.
    same = [result for result in results if _key(result) == key] or results
    variants: dict[UUID, Variant] = {}
    replaces: dict[UUID, Replaced] = {}
    contradicts: dict[UUID, None] = {}
    for result in same:
        variants |= {item.id: item for item in result.variants}
        replaces |= {item.id: item for item in result.replaces}
        contradicts |= dict.fromkeys(result.contradicts)
    best = max(same, key=lambda result: result.score or 0.0)
    return replace(
        best,
        queries=tuple(sorted(by_question)),
        variants=tuple(variants.values()),
        replaces=tuple(replaces.values()),
        contradicts=tuple(contradicts),
        explain=_explained(by_question),
    )


def _explained(by_question: Mapping[int, Answer | Recalled]) -> JsonObject | None:
    """Return explanations by the number of their question, None without any."""
    explained = {}
    for number in sorted(by_question):
        item = by_question[number]
        if item.explain is not None:
            explained[str(number)] = item.explain
    return explained or None
