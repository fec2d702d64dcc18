"""Vectors of texts, among them texts longer than a model reads: these are split, and the vectors averaged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from folklore.embedding.model_profiles import CHARACTERS_PER_TOKEN
from folklore.lazy import NDArray, numpy as np

Vectors: TypeAlias = "NDArray[np.float32]"


def normalized(vectors: Vectors) -> Vectors:
    """Scale rows (n, dimensions) to length 1, in place, and return them. Rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors


def character_limit(max_tokens: int | None, prefix: str) -> int | None:
    """Return the length of a text that a model reads whole in most cases; None if its limit is unknown."""
    if max_tokens is None:
        return None
    return max(int(max_tokens * CHARACTERS_PER_TOKEN) - len(prefix), 64)


def split_text(text: str, limit: int | None) -> list[str]:
    """Split a text into pieces of similar length, none longer than `limit`, at white space if possible."""
    if limit is None or len(text) <= limit:
        return [text]
    size = -(-len(text) // -(-len(text) // limit))
    pieces = []
    start = 0
    while len(text) - start > limit:
        end = text.rfind(" ", start + size // 2, start + size)
        if end == -1:
            end = start + size
        else:
            end = end + 1
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]


def batches(
    texts: Sequence[str], characters: int, most: int | None = None
) -> list[list[str]]:
    """Group texts in their order: at most so many characters and texts in a group, but at least one text."""
    groups: list[list[str]] = []
    room = 0
    for text in texts:
        if not groups or len(groups[-1]) == most or room < len(text):
            groups.append([])
            room = characters
        groups[-1].append(text)
        room -= len(text)
    return groups


def average_pieces(vectors: Vectors, texts: Sequence[Sequence[str]]) -> Vectors:
    """Return one unit vector for each text from the vectors of its pieces, weighted by the pieces' length."""
    if all(len(pieces) == 1 for pieces in texts):
        return vectors
    lengths = np.array(
        [max(len(piece), 1) for pieces in texts for piece in pieces], dtype=np.float32
    )
    starts = np.cumsum([0, *(len(pieces) for pieces in texts[:-1])])
    sums: Vectors = np.add.reduceat(vectors * lengths[:, None], starts, axis=0).astype(
        np.float32
    )
    return normalized(sums)
