"""What is put around a text when it is repeated: a bullet, a number, quotation marks."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BULLET = re.compile(r"(?:[-*+•–]|\d{1,3}[.)])\s+")
_QUOTED_LINE = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_PAIRS = (("```", "```"), ("**", "**"), ('"', '"'), ("'", "'"), ("`", "`"), ("“", "”"), ("„", "“"), ("«", "»"))
# Nobody quotes a quotation of a quotation more often.
_DEPTH = 6


def unwrapped(text: str) -> Iterator[str]:
    """The text without what stands around it, one layer after the other; nothing if there is nothing around it.

    Only signs that say nothing are taken: no word, and no sign within.
    """
    inner = text.strip()
    for _ in range(_DEPTH):
        peeled = _peeled(inner)
        if not peeled or peeled == inner:
            return
        inner = peeled
        yield inner


def _peeled(text: str) -> str:
    if all(line.lstrip().startswith(">") for line in text.splitlines()):
        return _QUOTED_LINE.sub("", text).strip()
    if bullet := _BULLET.match(text):
        return text[bullet.end() :].strip()
    for opening, closing in _PAIRS:
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and inner and closing not in inner:
            return inner.strip()
    return text
