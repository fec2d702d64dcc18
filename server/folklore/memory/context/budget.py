"""Token budget of an answer: how many results fit, and how much of their texts."""

from collections.abc import Sequence
from dataclasses import replace

from folklore.model import Recalled
from folklore.text import tokens
from folklore.text.query.question import QuestionWords
from folklore.text.query.snippet import snippet

# Tokens of a result besides its text: id, namespace, kind, time.
_ENVELOPE = 42
# The names and the time of who changed a text last, in JSON.
_CHANGED = '"changed_by":"","changed_at":"2026-11-28T12:00:00Z",'
# Tokens to which a long text is shortened before a result is left out.
_SHORTEST_TEXT = 40
# Share of a budget for the results; the rest is for the cursor, the note and the names of namespaces.
_OF_RESULTS = 0.95


def within_budget(
    results: Sequence[Recalled], max_tokens: int | None, query: str = ""
) -> tuple[list[Recalled], bool]:
    """Return the leading results that fit, and True if any was left out.

    A text longer than its share of the budget is replaced by its summary, its passage, or what matches the query. The
    first result always fits.
    """
    if max_tokens is None:
        return list(results), False
    room = int(max_tokens * _OF_RESULTS)
    remaining = room
    count = 0
    for result in results:
        remaining -= _envelope(result) + min(
            _cost(result.memory.content), _SHORTEST_TEXT
        )
        if remaining < 0 and count:
            break
        count += 1
    texts = [_cost(result.memory.content) for result in results[:count]]
    share = _share(texts, room - sum(map(_envelope, results[:count])))
    words = QuestionWords.of(query.split()) if max(texts, default=0) > share else None
    fitting = [
        result if words is None or cost <= share else _shortened(result, words, share)
        for result, cost in zip(results, texts, strict=False)
    ]
    return fitting, count < len(results)


def _share(costs: Sequence[int], room: int) -> int:
    """Return the greatest cost that each text may have: short ones leave theirs to the others, and one has 20."""
    remaining = max(room, _SHORTEST_TEXT // 2)
    for index, cost in enumerate(ordered := sorted(costs)):
        if cost * (len(ordered) - index) > remaining:
            return max(remaining // (len(ordered) - index), 1)
        remaining -= cost
    return max(costs, default=0)


def _cost(text: str) -> int:
    """Return the tokens of a text in JSON, which escapes lines and quotation marks."""
    return -(
        -(len(text) + text.count("\n") + text.count('"')) // tokens.CHARACTERS_PER_TOKEN
    )


def _envelope(result: Recalled) -> int:
    """Return the tokens of a concise result besides its text."""
    memory = result.memory
    fields = [memory.namespace, memory.author, *memory.tags, memory.source or ""]
    if memory.changed_by is not None:
        fields += [_CHANGED, memory.changed_by]
    variants = sum(_ENVELOPE * 2 + len(variant.differs) for variant in result.variants)
    return _ENVELOPE + (sum(map(len, fields)) + variants) // tokens.CHARACTERS_PER_TOKEN


def _shortened(result: Recalled, words: QuestionWords, share: int) -> Recalled:
    """Return a result with its summary, its passage, or what matches the question, in this many tokens."""
    memory = result.memory
    room = share * tokens.CHARACTERS_PER_TOKEN
    text, passage = (
        (memory.content, result.passage)
        if memory.summary is None
        else (memory.summary, None)
    )
    excerpt = snippet(text, words, room, passage)
    while _cost(excerpt) > share and len(excerpt) > 1:
        room -= (_cost(excerpt) - share) * tokens.CHARACTERS_PER_TOKEN
        excerpt = snippet(text, words, max(room, 1), passage)
    return replace(result, memory=replace(memory, content=excerpt))


def result_tokens(result: Recalled) -> int:
    """Return the number of tokens that a result takes, estimated."""
    return _envelope(result) + _cost(result.memory.content)
