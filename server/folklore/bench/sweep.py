"""Plain reciprocal rank fusion with constant weights, tried over a grid: what any default has to be held against.

Pure over the branches' lists. After the fusion comes what comes in the product: the pool is cut, those near the top
lend to their session neighbours, the best are the answer. MMR is left out, which costs such a ranking nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from folklore.ranking.fusion import best_first, reciprocal_rank_fusion
from folklore.ranking.neighbours import spread

Id = TypeVar("Id", UUID, str, int)
Place = tuple[str, str, int]  # namespace, session, position

KS = (0.0, 1.0, 3.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
DENSE_SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
# As in a recall: so many beyond those wanted may lend.
_MORE_LENDERS = 5


@dataclass(frozen=True, slots=True)
class Constant:
    """One setting: k, and the dense branch's share of the weight; the keyword branch has the rest."""

    k: float
    dense: float

    def __str__(self) -> str:
        return f"k {self.k:g}, dense {self.dense:g} : keyword {round(1 - self.dense, 3):g}"


GRID = tuple(Constant(k, dense) for k in KS for dense in DENSE_SHARES)


@dataclass(frozen=True, slots=True)
class Lists(Generic[Id]):
    """What each branch brought for a question, best first."""

    dense: Sequence[Id]
    keyword: Sequence[Id]


@dataclass(frozen=True, slots=True)
class Sessions(Generic[Id]):
    """Where memories stand in their sessions; those outside a session are not in it.

    `room` is how much of what its neighbours say each may gain, 0 to 1; all of it where nothing is said.
    """

    place: Mapping[Id, Place]
    at: Mapping[Place, Id]
    room: Mapping[Id, float]

    @classmethod
    def of(cls, place: Mapping[Id, Place], room: Mapping[Id, float] | None = None) -> Sessions[Id]:
        """From each memory's place."""
        return cls(place, {where: id_ for id_, where in place.items()}, room or {})

    def beside(self, id_: Id, reach: int) -> Iterator[tuple[Id, int]]:
        """The neighbours of a memory, up to `reach` places away, with how far."""
        if id_ not in self.place:
            return
        namespace, session, position = self.place[id_]
        for gap in range(1, reach + 1):
            for other in (position - gap, position + gap):
                if (namespace, session, other) in self.at:
                    yield self.at[(namespace, session, other)], gap


def ranked(
    lists: Lists[Id],
    setting: Constant,
    sessions: Sessions[Id],
    neighbours: Sequence[float],
    *,
    fetched: int,
    limit: int,
) -> list[Id]:
    """The best `limit` by plain RRF, lent to by session neighbours; equal ones by id."""
    rrf = reciprocal_rank_fusion([(setting.dense, lists.dense), (1 - setting.dense, lists.keyword)], setting.k)
    order = best_first({id_: (score, 0.0) for id_, score in rrf.items()})
    seeds = order[: fetched + 1]
    present = dict.fromkeys(seeds)
    for lender in seeds[: limit + _MORE_LENDERS]:
        present.update(dict.fromkeys(id_ for id_, _ in sessions.beside(lender, len(neighbours))))
    own = {id_: rrf[id_] for id_ in present if id_ in rrf}
    pairs = (
        (lender, gainer, neighbours[gap - 1] * sessions.room.get(gainer, 1.0))
        for lender in own
        for gainer, gap in sessions.beside(lender, len(neighbours))
        if gainer in present
    )
    gained = spread(own, pairs)
    relevance = {id_: own.get(id_, 0.0) + gained.get(id_, 0.0) for id_ in {**own, **gained}}
    return best_first({id_: (score, rrf.get(id_, 0.0)) for id_, score in relevance.items()})[:limit]
