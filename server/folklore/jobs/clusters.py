"""Clusters of memories that say nearly the same: stars of a similarity graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from folklore.lazy import NDArray, numpy as np

# A neighbour: its row and its cosine.
Neighbour = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Clustering:
    """Rules of a cluster: at least `smallest` memories, each with a cosine of `near` or more to its centre."""

    near: float = 0.75
    smallest: int = 3
    # A cluster holds at most so many, the nearest to its centre; the rest may form another one.
    largest: int = 12
    # Neighbours kept of each memory, and rows compared at a time.
    neighbours: int = 48
    block: int = 256


def nearest(vectors: NDArray[np.float32], clustering: Clustering) -> Iterator[list[tuple[Neighbour, ...]]]:
    """Yield, for each block of the unit vectors (n, dimensions), the neighbours of every row, best first, ties by row.

    The caller may pause between two blocks.
    """
    for start in range(0, len(vectors), clustering.block):
        cosines = vectors[start : start + clustering.block] @ vectors.T
        found = []
        for place, row in enumerate(cosines):
            row[start + place] = -1.0
            near = np.flatnonzero(row >= clustering.near)
            # Rounded, so that the order depends neither on the machine's arithmetic nor on the block.
            best = sorted(((int(other), round(float(row[other]), 4)) for other in near), key=lambda n: (-n[1], n[0]))
            found.append(tuple(best[: clustering.neighbours]))
        yield found


def stars(neighbours: Sequence[Sequence[Neighbour]], clustering: Clustering) -> list[tuple[int, ...]]:
    """Cover the graph by stars (Aslam, Pelekhov and Rus 2004): rows with the most neighbours become centres first.

    Each row belongs to at most one cluster; a cluster lists its centre, then the nearest. Ties go to the earlier row,
    so the same graph gives the same clusters.
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
