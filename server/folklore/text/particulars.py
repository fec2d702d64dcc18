"""What one text may say otherwise than another that has nearly all its words: numbers and names."""

from __future__ import annotations

import re

_WORD = re.compile(r"\w+")
# Of a long text the beginning is read.
_READ = 4_000
# A capital here may be there for its place alone: at the beginning of a text, a sentence, a line, a quotation.
_OPENS = frozenset(".!?:;\"'“‘([-–—*#>|\n")


def same_particulars(one: str, other: str) -> bool:
    """Whether each number and each name of one text stands in the other too, whatever its case.

    A number is a word with a digit, a name a word with a capital that does not stand first in its sentence.
    """
    one, other = one[:_READ], other[:_READ]
    return _particulars(one) <= _words(other) and _particulars(other) <= _words(one)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def _particulars(text: str) -> set[str]:
    found = set()
    for match in _WORD.finditer(text):
        word = match.group()
        if any(letter.isdigit() for letter in word) or (
            len(word) > 1 and word[0].isupper() and not _opens(text, match.start())
        ):
            found.add(word.casefold())
    return found


def _opens(text: str, start: int) -> bool:
    before = text[max(start - 3, 0) : start].rstrip(" \t")
    return not before or before[-1] in _OPENS
