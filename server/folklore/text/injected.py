"""Notes as Folklore injects them into an assistant's session, and their removal from texts that come back."""

from __future__ import annotations

import re

OPENING, CLOSING = "<folklore-notes>", "</folklore-notes>"
_BLOCK = re.compile(rf"[ \t]*{OPENING}.*?(?:{CLOSING}|\Z)[ \t]*\n?", re.DOTALL)
_MARK = re.compile(r"</?folklore-notes>?", re.IGNORECASE)


def block(heading: str, notes: list[str]) -> str:
    """Return the text to inject: a heading and one line or more for each note, between marks."""
    return "\n".join([OPENING, heading, *notes, CLOSING])


def unmarked(text: str) -> str:
    """Return the text of a note without marks, which would end the block around it."""
    return _MARK.sub("", text)


def without_blocks(text: str) -> str:
    """Return a text without what was injected into it; a block that was cut off ends with the text."""
    return _BLOCK.sub("", text) if OPENING in text else text
