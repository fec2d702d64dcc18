"""A text that is longer than a model reads is cut into pieces, whose vectors are averaged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from folklore.embedding.protocol import unit

# English prose has four characters a token, code and other languages fewer.
_CHARACTERS_PER_TOKEN = 3.2


def longest(max_tokens: int | None, prefix: str) -> int | None:
    """Of how many characters a model that reads so many tokens surely takes the greater part."""
    return None if max_tokens is None else max(int(max_tokens * _CHARACTERS_PER_TOKEN) - len(prefix), 64)


def pieces(text: str, length: int | None) -> list[str]:
    """The text in pieces of about equal length, none longer than `length`, cut at white space where there is some."""
    if length is None or len(text) <= length:
        return [text]
    wanted = -(-len(text) // -(-len(text) // length))
    found, start = [], 0
    while len(text) - start > length:
        end = text.rfind(" ", start + wanted // 2, start + wanted)
        end = start + wanted if end == -1 else end + 1
        found.append(text[start:end])
        start = end
    return [*found, text[start:]]


def joined(vectors: NDArray[np.float32], texts: Sequence[Sequence[str]]) -> NDArray[np.float32]:
    """One unit vector a text from those of its pieces (in order), each counting by its length."""
    if all(len(parts) == 1 for parts in texts):
        return vectors
    lengths = np.array([max(len(part), 1) for parts in texts for part in parts], dtype=np.float32)
    starts = np.cumsum([0, *(len(parts) for parts in texts[:-1])])
    sums: NDArray[np.float32] = np.add.reduceat(vectors * lengths[:, None], starts, axis=0).astype(np.float32)
    return unit(sums)
