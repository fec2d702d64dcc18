"""Memories near to new ones: near-duplicates, and those that may be on the same subject (subjects.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from folklore.db.stores.embeddings import Neighbour, Subjects
from folklore.errors import FolkloreError
from folklore.log import get_logger
from folklore.memory.context import RequestContext
from folklore.model import Similar

log = get_logger(__name__)

# Least cosine of two similar texts. A cosine does not distinguish agreement from contradiction.
NEAREST = 0.92
# The newest memories of the namespace that a batch is compared with: 1.5 million distances at 256 dimensions take about
# 0.3 s of one core for a batch of 500, 1 ms for one memory. Older ones are compared where they share a rare word.
NEWEST = 3_000
# Similar memories of one, and those that one answer shows.
_MOST_OF_ONE = 3
_MOST_SHOWN = 20
_UNKNOWN = "Everything is stored, but similar memories could not be looked up:"
_NO_MODEL = f"{_UNKNOWN} the embedding model is unavailable."
_LATER = "Similar memories are not in this answer: the embeddings are made after it."


async def find_neighbours(
    context: RequestContext,
    namespace: UUID,
    new: Sequence[UUID],
    model: UUID | None,
    subjects: Subjects,
    *,
    later: bool = False,
) -> tuple[list[Neighbour], list[str]]:
    """Return what is near to new memories, and a note if that is unknown; `subjects` are those asked for.

    One statement, after the commit: an error here is logged and noted, and the memories are stored all the same.
    Without `model` the new memories have no embeddings yet; `later` they will. Of the first memories nothing is noted.
    """
    memory = context.memory
    if not new or (model is None and memory.embedder is None):
        return [], []
    try:
        if model is not None:
            neighbours = await memory.embeddings.neighbours(
                namespace,
                new,
                model,
                newest=NEWEST,
                now=context.now,
                similar=NEAREST,
                subjects=subjects,
            )
            return neighbours, []
        # The first memories of a namespace have none that they could be similar to.
        if not await memory.memories.has_others(namespace, new):
            return [], []
    except FolkloreError as error:
        log.warning("similar_memories_unknown", count=len(new), reason=error.message)
        return [], [f"{_UNKNOWN} {error.message}"]
    return [], [_LATER if later else _NO_MODEL]


def near_duplicates(neighbours: Iterable[Neighbour]) -> dict[UUID, list[Similar]]:
    """Return at most three similar memories of each, the nearest first, as the neighbours are ordered."""
    similar: dict[UUID, list[Similar]] = {}
    for near in neighbours:
        others = similar.get(near.memory_id, [])
        if near.cosine < NEAREST or len(others) == _MOST_OF_ONE:
            continue
        cosine = round(near.cosine, 3)
        others.append(
            Similar(near.id, cosine, near.content, near.author, near.changed_by)
        )
        similar[near.memory_id] = others
    return similar


def shown(
    similar: Mapping[UUID, Sequence[Similar]],
) -> tuple[dict[UUID, tuple[Similar, ...]], list[str]]:
    """Return the similar memories that one answer shows, and a note that counts the others.

    Of a large batch the nearest one of each memory comes first.
    """
    pairs = []
    for id_, others in similar.items():
        for rank, near in enumerate(others):
            pairs.append((rank, id_, near))
    pairs.sort(key=lambda pair: pair[0])
    nearest: dict[UUID, tuple[Similar, ...]] = {}
    for _, id_, near in pairs[:_MOST_SHOWN]:
        nearest[id_] = (*nearest.get(id_, ()), near)
    more = len(pairs) - _MOST_SHOWN
    if more <= 0:
        return nearest, []
    return nearest, [f"{more:,} more similar memories are not shown."]
