"""Groups of memories that say nearly the same: stars of a similarity graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Clustering:
    """What a cluster is: at least `smallest` memories, each with a cosine of `near` or more to its centre."""

    near: float = 0.75
    smallest: int = 3
    # More are not joined: the nearest to the centre, and the rest may have a centre of their own.
    largest: int = 12
    # So many of the nearest of each memory are kept, and so many rows are compared at a time.
    neighbours: int = 48
    block: int = 256


def nearest(vectors: NDArray[np.float32], clustering: Clustering) -> Iterator[list[tuple[tuple[int, float], ...]]]:
    """For each block of unit vectors (n, dimensions) the neighbours of each: (row, cosine), best first, ties by row.

    In blocks, so that the caller may let others work in between.
    """
    for start in range(0, len(vectors), clustering.block):
        cosines = vectors[start : start + clustering.block] @ vectors.T
        found = []
        for place, row in enumerate(cosines):
            row[start + place] = -1.0
            near = np.flatnonzero(row >= clustering.near)
            # Rounded, so that neither the machine's arithmetic nor the block decides on an order.
            best = sorted(((int(other), round(float(row[other]), 4)) for other in near), key=lambda n: (-n[1], n[0]))
            found.append(tuple(best[: clustering.neighbours]))
        yield found


def stars(neighbours: Sequence[Sequence[tuple[int, float]]], clustering: Clustering) -> list[tuple[int, ...]]:
    """Cover the graph by stars (Aslam, Pelekhov and Rus 2004): who has most free neighbours becomes a centre first.

    Each memory belongs to at most one cluster; a cluster begins with its centre, then the nearest. The same graph gives
    the same clusters: ties go to the earlier row.
    """
    order = sorted(range(len(neighbours)), key=lambda row: (-len(neighbours[row]), row))
    taken: set[int] = set()
    clusters = []
    for centre in order:
        if centre in taken:
            continue
        free = [other for other, _ in neighbours[centre] if other not in taken]
        members = (centre, *free[: clustering.largest - 1])
        if len(members) >= clustering.smallest:
            taken.update(members)
            clusters.append(members)
    return clusters
