"""What says the same counts as one: before copies compete with one another, not only when slots are given out.

Of a text noted several times each branch brings another copy first, so that none has the ranks of both; copies fill the
lists that evidence is measured against, and only one of them stands where the conversation was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.ranking.fusion import best_first
from folklore.ranking.pool import Fused, Listed, fuse
from folklore.ranking.weights import Ranking
from folklore.text.particulars import Particulars

Id = TypeVar("Id", UUID, str, int)

# Texts that differ by a few function words have cosines about 1 - 1 / length (benchmarks/RESULTS.md).
_SHORT, _LONG = 0.9, 0.98


def copies(
    ids: Sequence[Id], similarity: NDArray[np.float32], text_of: Callable[[Id], tuple[str, int]]
) -> dict[Id, Id]:
    """Whose copy each of `ids` is, best first: of the first before it that says the same and is no copy itself.

    `similarity` (n, n) are the cosines, `text_of` an id's text and its length in lexemes: a few other words turn a
    short text's vector further than a long one's. Other numbers or names are never the same. Those that are nobody's
    copy are left out, mostly all of them.
    """
    found: dict[Id, Id] = {}
    near = np.triu(similarity >= _SHORT, 1)
    if not near.any():
        return found
    # Each text is read once: of notes that differ by a number alone, every pair is near.
    read = {place: text_of(ids[place]) for place in np.flatnonzero(near.any(0) | near.any(1)).tolist()}
    said = {place: Particulars(text) for place, (text, _) in read.items()}
    groups = np.zeros(len(ids), dtype=np.intp)
    known: dict[frozenset[str], int] = {}
    for place, particulars in said.items():
        groups[place] = known.setdefault(particulars.numbers, len(known))
    near &= groups[:, None] == groups
    for place, other in np.argwhere(near).tolist():  # by place, then by the other
        first, second = ids[place], ids[other]
        if first in found or second in found:
            continue
        least = min(max(1.0 - 1.0 / max(min(read[place][1], read[other][1]), 1), _SHORT), _LONG)
        if similarity[place, other] >= least and said[place].same(said[other]):
            found[second] = first
    return found


def fused_as_one(
    lists: Sequence[Listed[Id]], apart: Fused[Id], of: Mapping[Id, Id], ranking: Ranking, fetched: int
) -> Fused[Id]:
    """Fuse anew: whom a copy is of stands where the best of them stood. The copies come behind all others, in the order
    they had in `apart`, with nothing of their own."""
    fused = fuse([_without_copies(listed, of) for listed in lists], ranking, fetched)
    evidence = {branch: {**apart.evidence.get(branch, {}), **values} for branch, values in fused.evidence.items()}
    nothing = dict.fromkeys(of, 0.0)
    own, lent = {**fused.own, **nothing}, {**fused.lent, **nothing}
    rrf = {**fused.rrf, **{copy: apart.rrf[copy] for copy in of}}
    return Fused(best_first({id_: (own[id_], rrf[id_]) for id_ in own}), rrf, evidence, own, lent)


def as_one(beside: Iterable[tuple[Id, Id, float]], of: Mapping[Id, Id]) -> Iterator[tuple[Id, Id, float]]:
    """Who may lend to whom, (lender, gainer, strength): beside a copy is beside whom it is of, once."""
    strongest: dict[tuple[Id, Id], float] = {}
    for lender, gainer, strength in beside:
        pair = of.get(lender, lender), of.get(gainer, gainer)
        if pair[0] != pair[1]:
            strongest[pair] = max(strength, strongest.get(pair, 0.0))
    return ((lender, gainer, strength) for (lender, gainer), strength in strongest.items())


def _without_copies(listed: Listed[Id], of: Mapping[Id, Id]) -> Listed[Id]:
    """Whom a copy is of stands in the place of the best of them. The list is then short of different texts, and its
    evidence is measured as that of one which ended before."""
    places: dict[Id, int] = {}
    for place, id_ in enumerate(listed.ids):
        places.setdefault(of.get(id_, id_), place)
    chosen = list(places.values())
    return replace(
        listed,
        ids=list(places),
        scores=[listed.scores[place] for place in chosen],
        similarities=[listed.similarities[place] for place in chosen] if listed.similarities else (),
    )
