"""Token estimates, by the usual convention of four characters a token, and cutting to a token budget."""

import unicodedata

CHARACTERS_PER_TOKEN = 4
ELLIPSIS = "…"
_JOINED_TO_PREVIOUS = frozenset(
    "\u200c\u200d\ufe0e\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
)


def estimate(text: str) -> int:
    """Return ceil(characters / 4)."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def fit(text: str, budget: int) -> str:
    """Cut a text to a token budget at a word boundary and append an ellipsis.

    A text within the budget is returned unchanged; a budget of 0 or less gives "". A first word longer than half the
    budget is cut inside, never between a character and its accent.
    """
    if estimate(text) <= budget:
        return text
    if budget <= 0:
        return ""
    room = budget * CHARACTERS_PER_TOKEN - len(ELLIPSIS)
    return text[: _cut_position(text, room)].rstrip() + ELLIPSIS


def _cut_position(text: str, room: int) -> int:
    """Return the last end of a word in the second half of the room, else the last end of a character."""
    space = last_space(text, 0, room)
    if space is not None:
        return space
    for position in range(room, max(room - 16, 0), -1):
        if not _continues_character(text, position):
            return position
    return room


def last_space(text: str, begin: int, end: int) -> int | None:
    """Return the offset of the last white space in the second half of a range, its end included."""
    for offset in range(end, begin + (end - begin) // 2, -1):
        if text[offset].isspace():
            return offset
    return None


def _continues_character(text: str, position: int) -> bool:
    char = text[position]
    return (
        bool(unicodedata.combining(char))
        or char in _JOINED_TO_PREVIOUS
        or text[position - 1] == "\u200d"
    )
