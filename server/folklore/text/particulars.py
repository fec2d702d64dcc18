"""What one text may say otherwise than another that has nearly all its words: numbers and names."""

from __future__ import annotations

import re
from functools import cached_property

_WORD = re.compile(r"\w+")
# Of a long text the beginning is read.
_READ = 4_000
# A capital here may be there for its place alone: at the beginning of a text, a sentence, a line, a quotation.
_OPENS = frozenset(".!?:;\"'“‘([-–—*#>|\n")


class Particulars:
    """The words, numbers and names of a text, whatever their case.

    A number is a word with a digit, a name a word with a capital that does not stand first in its sentence. One text is
    compared with many, so it is read once.
    """

    def __init__(self, text: str) -> None:
        self._text = text[:_READ]
        words = _WORD.findall(self._text.casefold())
        self._words = frozenset(words)
        self.numbers = frozenset(word for word in words if not word.isalpha() and any(map(str.isdigit, word)))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(
            word.casefold()
            for match in _WORD.finditer(self._text)
            if len(word := match.group()) > 1 and word[0].isupper() and not _opens(self._text, match.start())
        )

    def same(self, other: Particulars) -> bool:
        """Whether each number and each name of one text stands in the other too."""
        return self.numbers == other.numbers and self._names <= other._words and other._names <= self._words


def _opens(text: str, start: int) -> bool:
    before = text[max(start - 3, 0) : start].rstrip(" \t")
    return not before or before[-1] in _OPENS
