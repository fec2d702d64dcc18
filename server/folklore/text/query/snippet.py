"""Snippets: the part of a long text that holds most of a question's words, with an ellipsis where it was cut."""

import re
from collections import Counter
from collections.abc import Sequence

from folklore.text.query.question import QuestionWords
from folklore.text.tokens import ELLIPSIS, last_space

# Begin of a sentence, a line or a list entry.
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
# Share of the room before the first matching word, if no sentence begins there.
_LEAD = 0.25


def snippet(
    text: str, words: QuestionWords, room: int, passage: tuple[int, int] | None = None
) -> str:
    """Return at most `room` characters of a text, around the words of the question that weigh most together.

    A text that fits is returned unchanged; one without any of the words is cut at its end. Of a text with a `passage`
    that is shown, the words in it count, or all of it if it fits.
    """
    if len(text) <= room:
        return text
    room = max(room - 2 * len(ELLIPSIS), 1)
    begin, end = passage or (0, len(text))
    if end - begin > room:
        first, last = _best_span(words.places(text[begin:end]), room)
        begin, end = begin + first, begin + last
    begin = _start(text, begin, end, room)
    end = min(begin + room, len(text))
    if end < len(text) and (space := last_space(text, begin, end)) is not None:
        end = space
    cut = text[begin:end].strip()
    return f"{ELLIPSIS if begin > 0 else ''}{cut}{ELLIPSIS if end < len(text) else ''}"


def line(text: str, words: QuestionWords, room: int) -> str:
    """Return the snippet of a text in one line."""
    return snippet(" ".join(text.split()), words, room)


def _best_span(
    places: Sequence[tuple[int, int, str, float]], room: int
) -> tuple[int, int]:
    """Return the begin of the first and the end of the last of the places that fit and have most weight.

    A word counts once in a span, and the first of equal spans is taken.
    """
    best, span, first, weight = 0.0, (0, 0), 0, 0.0
    inside: Counter[str] = Counter()
    for begin, end, word, value in places:
        weight += 0.0 if inside[word] else value
        inside[word] += 1
        while places[first][0] < end - room and places[first][0] < begin:
            _, _, dropped, loss = places[first]
            inside[dropped] -= 1
            weight -= 0.0 if inside[dropped] else loss
            first += 1
        if weight > best + 1e-9:
            best, span = weight, (places[first][0], end)
    return span


def _start(text: str, begin: int, end: int, room: int) -> int:
    """Return where a snippet begins: at the sentence of its first word if it fits, else some words before it."""
    earliest = max(end - room, 0)
    starts = [match.end() for match in _SENTENCE.finditer(text, earliest, begin)]
    if starts:
        return starts[-1] if end - starts[-1] <= room else begin
    if earliest == 0:
        return 0
    target = max(begin - int(room * _LEAD), earliest)
    space = text.find(" ", target, begin)
    return space + 1 if space >= 0 else target
