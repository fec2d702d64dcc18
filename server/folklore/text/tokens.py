"""How many tokens a text costs a model, by the usual convention of four characters each."""

from __future__ import annotations

import unicodedata

CHARACTERS_PER_TOKEN = 4
ELLIPSIS = "…"
_JOINED_TO_PREVIOUS = frozenset("\u200c\u200d\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")


def estimate(text: str) -> int:
    """Estimate the tokens of a text: characters divided by four, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def fit(text: str, budget: int) -> str:
    """Cut a text to a token budget at a word boundary, marking the cut with an ellipsis.

    A text within the budget comes back unchanged; a budget of nothing gives nothing. A first word longer than half
    the budget is cut inside, never between a character and its accent.
    """
    if estimate(text) <= budget:
        return text
    if budget <= 0:
        return ""
    room = budget * CHARACTERS_PER_TOKEN - len(ELLIPSIS)
    return text[: _word_boundary(text, room)].rstrip() + ELLIPSIS


def _word_boundary(text: str, room: int) -> int:
    """Find the last place in the latter half of the room where a word ends, else where a character does."""
    for place in range(room, room // 2, -1):
        if text[place].isspace():
            return place
    for place in range(room, max(room - 16, 0), -1):
        if not _continues(text, place):
            return place
    return room


def _continues(text: str, place: int) -> bool:
    char = text[place]
    return bool(unicodedata.combining(char)) or char in _JOINED_TO_PREVIOUS or text[place - 1] == "\u200d"
