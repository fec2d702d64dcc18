"""Notes as Folklore injects them into an assistant's session, their removal from texts, and quotations of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from folklore.text.question import QuestionWords, plain

OPENING, CLOSING = "<folklore-notes>", "</folklore-notes>"
_BLOCK = re.compile(rf"[ \t]*{OPENING}.*?(?:{CLOSING}[ \t]*\n?|\Z)", re.DOTALL)
_MARK = re.compile(r"<(/?folklore-notes)", re.IGNORECASE)
# Words in sequence, or the share of all of a note's words by weight, that make a quotation of it.
_SEQUENCE, _SHARE = 5, 2 / 3


def block(heading: str, notes: Sequence[str]) -> str:
    """Return the text to inject: a heading and the notes, between marks by which it is found again."""
    return "\n".join([OPENING, heading, *notes, CLOSING])


def unmarked(text: str) -> str:
    """Return a text without marks, which would end the block around it."""
    return _MARK.sub(r"\1", text)


def without_blocks(text: str) -> str:
    """Return a text without what was injected into it. A block without its end reaches to the end of the text."""
    return _BLOCK.sub("", text) if OPENING in text else text


def quotes(text: str, note: str) -> bool:
    """Return whether a text in plain form holds five words of a note in sequence, or most of all its words."""
    words = plain(note).split()
    if any(f" {' '.join(words[at : at + _SEQUENCE])} " in text for at in range(max(len(words) - _SEQUENCE, 0) + 1)):
        return bool(words)
    asked = QuestionWords.of(note.split()).words
    held = sum(word.weight for word in asked if word.start in text)
    return held >= _SHARE * sum(word.weight for word in asked) > 0
