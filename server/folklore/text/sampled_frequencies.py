"""Which words are usual where a question is asked, learned from a sample of its texts."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# What parts words; letters of any script and the underscore of identifiers stay. `str.translate` is many times faster
# than a regular expression, and thousands of words are parted at once.
_PARTING = str.maketrans(dict.fromkeys(string.punctuation.replace("_", "") + "‘’“”–—…", " "))


@dataclass(frozen=True, slots=True)
class UsualWords:
    """In how many of a sample of `total` texts each word occurs, in lower case, as it is spelled.

    Words of one text alone, which are most, are not kept: they are as rare as those of none.
    """

    documents: Mapping[str, int]
    total: int

    @classmethod
    def of(cls, texts: Iterable[str]) -> UsualWords:
        """Counted over these texts."""
        held = [set(_words(text)) for text in texts]
        documents: Counter[str] = Counter()
        for words in held:
            documents.update(words)
        return cls({word: count for word, count in documents.items() if count > 1}, len(held))

    def holding(self, piece: str) -> int | None:
        """How many texts of the sample hold the rarest word of a piece of a question, 0 if one does or none.

        None if the piece has no word.
        """
        return min((self.documents.get(word, 0) for word in _words(piece)), default=None)


def _words(text: str) -> list[str]:
    return text.lower().translate(_PARTING).split()
