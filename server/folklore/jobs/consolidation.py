"""Consolidation: sum up clusters of similar memories in reflections, and withdraw those whose members changed.

A reflection is composed of its members' words; no model writes it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from folklore import memory
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.db.stores.reflections import (
    ExistingReflection,
    Reflection,
    Reflections,
    Sources,
)
from folklore.jobs.job import AUTHOR, JobRun
from folklore.lazy import NDArray, numpy as np
from folklore.model import DEFAULT_LANGUAGE

# The newest memories of a namespace that are compared with each other: 20,000 take 20 MB and some seconds.
_MOST_COMPARED = 20_000
_BATCH = 20

Item = TypeVar("Item")
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


_RULES = Clustering()


@dataclass(frozen=True, slots=True)
class Cluster:
    """Similar memories, with the digests of their texts."""

    ids: tuple[UUID, ...]
    digests: tuple[bytes, ...]

    @property
    def key(self) -> str:
        """The key of the cluster's reflection: the same members with the same texts have the same key."""
        parts = sorted(
            id_.bytes + text for id_, text in zip(self.ids, self.digests, strict=True)
        )
        return f"reflection:{hashlib.sha256(b''.join(parts)).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes to a namespace: clusters to make reflections of, reflections to withdraw, and the number kept."""

    considered: int
    make: tuple[Cluster, ...]
    withdraw: tuple[UUID, ...]
    unchanged: int


async def consolidate(run: JobRun) -> None:
    """Consolidate each namespace in which anything has changed since the last run."""
    embedder = run.context.embedder
    if embedder is None:  # no embeddings, no clusters
        return
    model = await embedder.model()
    reflections = Reflections(run.database)
    for namespace in await run.namespaces():
        fingerprint = f"{model.id} {await reflections.fingerprint(namespace=namespace.id, model=model.id)}"
        if run.notes.get(str(namespace.id)) == fingerprint:
            run.count(unchanged=1)
            continue
        sources = await reflections.sources(namespace.id, model.id, _MOST_COMPARED)
        plan = await plan_changes(
            sources, await reflections.existing(namespace=namespace.id), pause=run.pause
        )
        run.count(considered=plan.considered, kept=plan.unchanged)
        if run.dry_run:
            run.count(to_make=len(plan.make), to_withdraw=len(plan.withdraw))
            continue
        count, withdrawn = await apply_plan(run, namespace, plan)
        run.count(made=count, withdrawn=withdrawn)
        # otherwise a member changed meanwhile, and the next run tries again
        if count == len(plan.make):
            run.notes[str(namespace.id)] = fingerprint


async def plan_changes(
    sources: Sources,
    existing: Sequence[ExistingReflection],
    *,
    pause: Callable[[], Awaitable[None]],
) -> Plan:
    """Compare the clusters of the sources with the existing reflections."""
    clusters = await _clusters(sources, pause)
    settled = set()
    withdraw = []
    unchanged = 0
    for one in existing:
        # A reflection that a person forgot is not made again; one of which a member changed is.
        if one.forgotten or one.whole:
            settled.add(one.key)
        if one.forgotten:
            continue
        if one.whole and one.key in clusters:
            unchanged += 1
        else:
            withdraw.append(one.id)
    make = tuple(cluster for key, cluster in clusters.items() if key not in settled)
    return Plan(
        considered=len(sources.ids),
        make=make,
        withdraw=tuple(withdraw),
        unchanged=unchanged,
    )


async def _clusters(
    sources: Sources, pause: Callable[[], Awaitable[None]]
) -> dict[str, Cluster]:
    """Return the clusters by key. A thread computes them, block by block."""
    blocks = nearest(sources.vectors, _RULES)
    neighbours: list[tuple[Neighbour, ...]] = []
    while (block := await asyncio.to_thread(next, blocks, None)) is not None:
        neighbours += block
        await pause()
    clusters = (
        Cluster(
            tuple(sources.ids[row] for row in rows),
            tuple(sources.digests[row] for row in rows),
        )
        for rows in stars(neighbours, _RULES)
    )
    return {cluster.key: cluster for cluster in clusters}


async def apply_plan(
    run: JobRun, namespace: NamespaceInfo, plan: Plan
) -> tuple[int, int]:
    """Withdraw and store reflections, each batch in its transaction; return how many were stored and withdrawn."""
    reflections = Reflections(run.database)
    count = withdrawn = 0
    for ids in _batches(plan.withdraw):
        withdrawn += await reflections.withdraw(namespace.id, ids)
        await run.pause()
    for clusters in _batches(plan.make):
        batch = await _compose(run, namespace, clusters)
        if batch:
            vectors = await memory.embed(
                run.context, [one.prepared.draft.content for one in batch]
            )
            language = next(iter(namespace.languages), DEFAULT_LANGUAGE)
            count += await reflections.store(
                namespace.id,
                batch,
                vectors,
                caller=AUTHOR,
                language=language,
                now=run.now(),
            )
        await run.pause()
    return count, withdrawn


async def _compose(
    run: JobRun, namespace: NamespaceInfo, clusters: Sequence[Cluster]
) -> list[Reflection]:
    """Compose the reflections of clusters whose members all still exist."""
    ids = [id_ for cluster in clusters for id_ in cluster.ids]
    rows = await Reflections(run.database).members(namespace=namespace.id, ids=ids)
    members = {member.id: member for member in rows}
    made = []
    for cluster in clusters:
        if members.keys() >= set(cluster.ids):
            sources = [members[id_] for id_ in cluster.ids]
            prepared = await memory.compose_reflection(
                run.context, namespace, sources, cluster.key, run.now()
            )
            made.append(Reflection(prepared, cluster.ids, cluster.digests))
    return made


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def nearest(
    vectors: NDArray[np.float32], clustering: Clustering
) -> Iterator[list[tuple[Neighbour, ...]]]:
    """Yield, for each block of the unit vectors (n, dimensions), the neighbours of every row, best first, ties by row.

    The caller may pause between two blocks.
    """
    for start in range(0, len(vectors), clustering.block):
        cosines = vectors[start : start + clustering.block] @ vectors.T
        nearest = []
        for index, row in enumerate(cosines):
            row[start + index] = -1.0
            near = np.flatnonzero(row >= clustering.near)
            # Rounded, so that the order depends neither on the machine's arithmetic nor on the block.
            best = sorted(
                ((int(other), round(float(row[other]), 4)) for other in near),
                key=lambda n: (-n[1], n[0]),
            )
            nearest.append(tuple(best[: clustering.neighbours]))
        yield nearest


def stars(
    neighbours: Sequence[Sequence[Neighbour]], clustering: Clustering
) -> list[tuple[int, ...]]:
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
