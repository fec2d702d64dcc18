"""Snippets: the part of a long text that holds most of a question's words, with an ellipsis where it was cut."""

import re
from collections import Counter
from collections.abc import Sequence

from folklore.text.query.question import Occurrence, QuestionWords
from folklore.text.tokens import ELLIPSIS, last_space

# Begin of a sentence, a line or a list entry.
_SENTENCE = re.compile(r"(?<=[.!?\u3002\uff01\uff1f])\s+|\n+")
# End of a sentence or a line at which `whole_sentences` cuts: an abbreviation goes on in small letters.
_BOUNDARY = re.compile(
    r"(?<=[.!?])\s+(?=[^a-z\s])|(?<=[\u3002\uff01\uff1f])\s*|(?<!\s)\s*\n\s*"
)
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
        first, last = _best_span(words.occurrences(text[begin:end]), room)
        end = begin + last
        begin += first

    begin = _start(text, begin, end, room)
    end = min(begin + room, len(text))
    if end < len(text):
        space = last_space(text, begin, end)
        if space is not None:
            end = space
    before = ELLIPSIS if begin > 0 else ""
    after = ELLIPSIS if end < len(text) else ""
    return f"{before}{text[begin:end].strip()}{after}"


def line(text: str, words: QuestionWords, room: int) -> str:
    """Return the snippet of a text in one line."""
    return snippet(" ".join(text.split()), words, room)


def whole_sentences(
    text: str, words: QuestionWords, room: int, passage: tuple[int, int] | None = None
) -> str:
    """Return at most `room` characters of a text in one line, as whole sentences where they fit.

    Of a longer text these are the sentences in sequence that hold most of the question's words, of one with a `passage`
    those in it; a sentence that is longer by itself is cut around the words.
    """
    whole = " ".join(text.split())
    if len(whole) <= room:
        return whole
    begin, end = passage or (0, len(text))
    part = text[begin:end]
    room -= 2 * (len(ELLIPSIS) + 1)
    first, last = _best_sentences(part, words, room)
    chosen = " ".join(part[first:last].split())
    if len(chosen) > room:
        return snippet(chosen, words, room)
    before = f"{ELLIPSIS} " if text[: begin + first].strip() else ""
    after = f" {ELLIPSIS}" if text[begin + last :].strip() else ""
    return f"{before}{chosen}{after}"


def _best_sentences(text: str, words: QuestionWords, room: int) -> tuple[int, int]:
    """Return the range of the sentences in sequence that fit and hold the words of most weight.

    The first of equal ones is taken. A first sentence that does not fit is taken alone.
    """
    sentences = _sentences(text)
    weights = _weights_by_sentence(sentences, words.occurrences(text))
    best = -1.0
    span = sentences[0]
    # At most 500 of any number of sentences: as many as there are occurrences.
    with_words = [index for index, of_sentence in enumerate(weights) if of_sentence]
    for first in with_words or [0]:
        begin = sentences[first][0]
        together: dict[str, float] = {}
        for last in range(first, len(sentences)):
            end = sentences[last][1]
            if last > first and end - begin > room:
                break
            together |= weights[last]
            weight = sum(together.values())
            is_better = weight > best + 1e-9
            # More sentences than hold the words are welcome where they follow.
            goes_on = begin == span[0] and weight > best - 1e-9
            if is_better or goes_on:
                best = weight
                span = (begin, end)
    return span


def _weights_by_sentence(
    sentences: Sequence[tuple[int, int]], occurrences: Sequence[Occurrence]
) -> list[dict[str, float]]:
    """Return for each sentence the words of the question that begin in it, with their weights."""
    weights: list[dict[str, float]] = [{} for _ in sentences]
    index = 0
    for occurrence in occurrences:
        while index + 1 < len(sentences) and occurrence.begin >= sentences[index][1]:
            index += 1
        weights[index][occurrence.word] = occurrence.weight
    return weights


def _sentences(text: str) -> list[tuple[int, int]]:
    """Return the ranges of the sentences and lines of a text, at least one."""
    ranges: list[tuple[int, int]] = []
    begin = 0
    for boundary in _BOUNDARY.finditer(text):
        if boundary.start() > begin:
            ranges.append((begin, boundary.start()))
        begin = boundary.end()
    if begin < len(text) or not ranges:
        ranges.append((begin, len(text)))
    return ranges


def _best_span(occurrences: Sequence[Occurrence], room: int) -> tuple[int, int]:
    """Return the begin of the first and the end of the last of the occurrences that fit and have most weight.

    A word counts once in a span, and the first of equal spans is taken.
    """
    best = 0.0
    span = (0, 0)
    first = 0
    weight = 0.0
    counts: Counter[str] = Counter()
    for added in occurrences:
        if not counts[added.word]:
            weight += added.weight
        counts[added.word] += 1

        while occurrences[first].begin < min(added.end - room, added.begin):
            removed = occurrences[first]
            counts[removed.word] -= 1
            if not counts[removed.word]:
                weight -= removed.weight
            first += 1

        if weight > best + 1e-9:
            best = weight
            span = (occurrences[first].begin, added.end)
    return span


def _start(text: str, begin: int, end: int, room: int) -> int:
    """Return where a snippet begins: at the sentence of its first word if it fits, else some words before it."""
    earliest = max(end - room, 0)
    sentences = [match.end() for match in _SENTENCE.finditer(text, earliest, begin)]
    if sentences:
        fits = end - sentences[-1] <= room
        return sentences[-1] if fits else begin
    if earliest == 0:
        return 0
    some_words_before = max(begin - int(room * _LEAD), earliest)
    space = text.find(" ", some_words_before, begin)
    if space < 0:
        return some_words_before
    return space + 1
