"""Words of a text in order, to find texts that differ in case, punctuation and white space only."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CHUNK = re.compile(r"\S+")
# Only the punctuation of prose, and only where it means nothing else: 5 is not -5, env not .env, 15 not 1.5, < not >.
_OPENS = "\"'`“”‘’„«»([{¿¡—…「『《（"
_CLOSES = "\"'`“”‘’„«»)]}.,;:!?—…。，、；：！？」』》）"
_DASHES = "-–"


def words(text: str) -> Iterator[str]:
    """Yield the words in lower case, without the punctuation around them."""
    for chunk in _CHUNK.finditer(text):
        word = chunk.group().lstrip(_OPENS).rstrip(_CLOSES)
        if word.strip(_DASHES):
            yield word.casefold()
