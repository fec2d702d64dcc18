"""Highlights: the parts of a text that match the words of a question."""

import re
from collections.abc import Sequence

from folklore.text.difference import Part
from folklore.text.query.question import QuestionWords

_OPERATORS = ("AND", "OR", "NOT")
_COMMON_WEIGHT = 1.0  # of words of up to three letters: "the", "for"


def words_of(query: str) -> QuestionWords:
    """Return the words of a query without its operators and without the words that it excludes."""
    tokens = []
    for token in query.split():
        if not token.startswith("-") and token not in _OPERATORS:
            tokens.append(token.strip("\"'()*"))
    return QuestionWords.of(tokens)


def highlight_pattern(query: str) -> re.Pattern[str] | None:
    """Return the pattern of a query's words and their inflected forms; None if none would be highlighted."""
    return words_of(query).pattern(_COMMON_WEIGHT)


def highlighted(text: str, pattern: re.Pattern[str] | None) -> Sequence[Part]:
    """Return a text in parts, each with True if it matches the pattern."""
    if pattern is None:
        return [(text, False)]
    parts: list[Part] = []
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            parts.append((text[end : match.start()], False))
        parts.append((match[0], True))
        end = match.end()
    if end < len(text) or not parts:
        parts.append((text[end:], False))
    return parts
