"""Several questions in one recall: their answers are joined, and a memory that answers several is there once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from folklore.contract.recall import RecallRequest
from folklore.errors import InvalidInput
from folklore.memory.context.budget import within_budget
from folklore.memory.context.pagination import given_before, without_clock
from folklore.memory.recall.elsewhere import within_room
from folklore.memory.recall.page import continued, in_order
from folklore.memory.recall.values import Question
from folklore.model import Answer, JsonObject, Recalled
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
    for place, query in enumerate(request.queries):
        if query.strip() in ("", "*"):
            hint = "Ask a question; the query * by itself lists what is trending."
            raise InvalidInput(f"queries[{place}]", "is no question.", hint=hint)
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
    notes = [
        f"queries[{place}]: {item.note}"
        for place, item in enumerate(answers)
        if item.note
    ]
    cursor = None
    if more:
        key = key_of(questions)
        cursor, end = continued(results, given_before(questions[0].cursor, key), key)
        notes += [end] if end else []
    return Answer(
        memories=tuple(results),
        searched=answers[0].searched,
        degraded=tuple(
            dict.fromkeys(item for answer in answers for item in answer.degraded)
        ),
        truncated=more,
        cursor=cursor,
        note=" ".join(notes) or None,
        explain=_by_question(
            {place: item.explain for place, item in enumerate(answers)}
        ),
        found_by=sum((Counter(answer.found_by) for answer in answers), Counter()),
    )


def _results(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> tuple[list[Recalled], bool]:
    """Return the results that fit the whole answer, those by expansion, then those from elsewhere.

    Also True if there are more.
    """
    question = questions[0]
    words = " ".join(item.query for item in questions)
    numbered = _numbered(
        answers, lambda item: item.expanded is None and not item.elsewhere
    )
    expanded = _numbered(answers, lambda item: item.expanded is not None)
    others = list(_numbered(answers, lambda item: item.elsewhere).values())
    elsewhere, limit, max_tokens = within_room(question, others, len(numbered), words)
    results = in_order(list(numbered.values())[:limit], question.sort)
    additions = [item for key, item in expanded.items() if key not in numbered]
    results, cut = within_budget([*results, *additions], max_tokens, words)
    more = cut or len(numbered) > limit or any(answer.truncated for answer in answers)
    return [*results, *elsewhere], more


def _numbered(
    answers: Sequence[Answer], belongs: Callable[[Recalled], bool]
) -> dict[_Key, Recalled]:
    """Return the results by rank, each with the numbers of the questions that found it or a variant of it."""
    lists = [list(filter(belongs, answer.memories)) for answer in answers]
    everything = [item for results in lists for item in results]
    shown = {
        (other.namespace, other.id): _key(item)
        for item in everything
        for other in item.variants
    }
    found: dict[_Key, dict[int, Recalled]] = {}
    for rank in range(max(map(len, lists))):
        for number, results in enumerate(lists):
            if rank < len(results):
                key = _key(results[rank])
                found.setdefault(shown.get(key, key), {}).setdefault(
                    number, results[rank]
                )
    results_by_key = {key: _one(key, by_question) for key, by_question in found.items()}
    return {key: results_by_key[key] for key in _newer_first(results_by_key)}


def _newer_first(results: Mapping[_Key, Recalled]) -> list[_Key]:
    """Return the keys of results with what replaces another result before it: questions may bring the two apart."""
    newer: dict[_Key, list[_Key]] = {}
    for (namespace, id_), result in results.items():
        for older in result.replaces:
            newer.setdefault((namespace, older.id), []).append((namespace, id_))
    return newest_first(list(results), newer)


def _key(result: Recalled) -> _Key:
    return result.memory.namespace, result.memory.id


def _one(key: _Key, by_question: Mapping[int, Recalled]) -> Recalled:
    """Return one result for a memory: its greatest score, and what belongs to any of the questions."""
    same = [item for item in by_question.values() if _key(item) == key] or list(
        by_question.values()
    )
    best = max(same, key=lambda item: item.score or 0.0)
    return replace(
        best,
        queries=tuple(sorted(by_question)),
        variants=tuple(
            {item.id: item for result in same for item in result.variants}.values()
        ),
        replaces=tuple(
            {item.id: item for result in same for item in result.replaces}.values()
        ),
        contradicts=tuple(
            dict.fromkeys(id_ for result in same for id_ in result.contradicts)
        ),
        explain=_by_question(
            {number: item.explain for number, item in by_question.items()}
        ),
    )


def _by_question(explained: Mapping[int, JsonObject | None]) -> JsonObject | None:
    """Return explanations by the number of their question, None without any."""
    return {
        str(number): item
        for number, item in sorted(explained.items())
        if item is not None
    } or None
