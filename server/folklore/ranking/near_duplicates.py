"""Near-duplicates, texts of the same words in the same order: the best one represents the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar
from uuid import UUID

from folklore.text.words import words

Id = TypeVar("Id", UUID, str, int)

# Few texts begin with the same eight words, and only those are read to their end.
_OPENING = 8


def split_near_duplicates(order: Sequence[Id], text_of: Callable[[Id], str], most: int) -> tuple[list[Id], list[Id]]:
    """Split ids, best first, into `most` representatives and the near-duplicates before the last of them.

    Vectors take no part: an average of word vectors does not distinguish before from after, nor on from off, and a
    decision must not hide its reversal.
    """
    firsts: dict[tuple[str, ...], Id] = {}
    wordings: set[tuple[str, ...]] = set()
    representatives: list[Id] = []
    near_duplicates: list[Id] = []
    for id_ in order:
        if len(representatives) == most:
            break
        first = firsts.setdefault(tuple(islice(words(text_of(id_)), _OPENING)), id_)
        if first != id_:
            wordings.add(tuple(words(text_of(first))))
            wording = tuple(words(text_of(id_)))
            if wording in wordings:
                near_duplicates.append(id_)
                continue
            wordings.add(wording)
        representatives.append(id_)
    return representatives, near_duplicates
