"""Memories on the subject of others: older ones that a new one may replace, and newer ones that replace them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.stores.embeddings import Neighbour, Subjects
from folklore.memory.context import RequestContext
from folklore.memory.records.similar import NEWEST
from folklore.model import Memory, OnSubject
from folklore.ranking.subjects import (
    COMPARED,
    SAME,
    is_replaced,
    likeness,
    subject_words,
)

# Nearest memories that are compared by words.
_NEAREST = 10
# Memories on its subject that a new one names.
_MOST_NAMED = 2
# Steps from an older memory to the newest on its subject.
_MOST_STEPS = 4
# Seconds by which a memory must be newer: of those of one day, as of an import, the times say little.
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored memory as it is compared: its text, cues and time for order."""

    id: UUID
    content: str
    cues: tuple[str, ...]
    when: datetime

    @property
    def words(self) -> frozenset[str]:
        """The words of its subject."""
        return subject_words(self.content, self.cues)

    @classmethod
    def of(cls, memory: Memory | Neighbour) -> "Stored":
        """Return a memory as it is compared."""
        if isinstance(memory, Memory):
            when = memory.order_time
        else:
            when = memory.when
        return cls(memory.id, memory.content, memory.cues, when)


def subjects_of(memories: Iterable[UUID]) -> Subjects:
    """Return what is asked of the database to know what is on the subjects of memories."""
    return Subjects(list(memories), _NEAREST, COMPARED)


def older_on_subject(
    memories: Sequence[Stored], neighbours: Iterable[Neighbour]
) -> dict[UUID, tuple[OnSubject, ...]]:
    """Return for each memory at most two older ones on its subject, the likeliest first; not those of one call.

    `neighbours` are the answer to `subjects_of`.
    """
    stored_together = {memory.id for memory in memories}
    found: dict[UUID, tuple[OnSubject, ...]] = {}
    near = _likely(memories, neighbours)
    for memory in memories:
        olders = [
            OnSubject(other.id, other.when, other.content, value)
            for other, value in near.get(memory.id, ())
            if other.id not in stored_together and other.when <= memory.when
        ]
        if olders:
            olders.sort(key=lambda older: -older.likeness)
            found[memory.id] = tuple(olders[:_MOST_NAMED])
    return found


async def newer_memories(
    context: RequestContext, namespace: UUID, memories: Sequence[Memory]
) -> dict[UUID, Memory]:
    """Return the newest memory on the subject of each, by its id, if there is one that is newer by a day.

    Nobody asks here, so that the cues of the older memory say what its subject is; one without cues has none. A newer
    one may have a newer one too. At most one statement each time, and one that reads what was found.
    """
    cued = [Stored.of(memory) for memory in memories if memory.cues]
    if not cued or context.memory.embedder is None:
        return {}
    model = await context.memory.embedder.model()

    newer: dict[UUID, Stored] = {}
    asked = cued
    for _ in range(_MOST_STEPS):
        near = await _near(context, namespace, asked, model.id)
        found = _likeliest_newer(asked, near)
        newer |= found
        others = {other.id: other for other in found.values()}
        asked = [other for other in others.values() if other.id not in newer]
        if not asked:
            break
    if not newer:
        return {}

    newest = {memory.id: _last(newer, memory.id) for memory in cued}
    ids = list(dict.fromkeys(newest.values()))
    read = {m.id: m for _, m in await context.memory.memories.get([namespace], ids)}
    return {
        older: read[id_]
        for older, id_ in newest.items()
        if id_ != older and id_ in read
    }


def _likeliest_newer(
    memories: Sequence[Stored], near: Mapping[UUID, list[tuple[Stored, float]]]
) -> dict[UUID, Stored]:
    """Return of the newer memories on the subject of each the one that is most like it, by its id.

    Not the newest: beside the one that replaces it, later ones touch on its subject.
    """
    found: dict[UUID, Stored] = {}
    for memory in memories:
        newers = [
            (alike, other.when, other.id, other)
            for other, alike in near.get(memory.id, ())
            if (other.when - memory.when).total_seconds() > _DAY
            and is_replaced(
                memory.content, memory.cues, other.content, other.cues, alike
            )
        ]
        if newers:
            found[memory.id] = max(newers, key=lambda newer: newer[:3])[3]
    return found


def _last(newer: Mapping[UUID, Stored], id_: UUID) -> UUID:
    """Return the end of a chain of newer memories, each newer than the one before."""
    while (following := newer.get(id_)) is not None:
        id_ = following.id
    return id_


async def _near(
    context: RequestContext, namespace: UUID, memories: Sequence[Stored], model: UUID
) -> Mapping[UUID, list[tuple[Stored, float]]]:
    """Return the memories on the subject of each, with their likeness. One statement."""
    ids = [memory.id for memory in memories]
    neighbours = await context.memory.embeddings.neighbours(
        namespace,
        ids,
        model,
        newest=NEWEST,
        now=context.now,
        subjects=subjects_of(ids),
    )
    return _likely(memories, neighbours)


def _likely(
    memories: Sequence[Stored], neighbours: Iterable[Neighbour]
) -> Mapping[UUID, list[tuple[Stored, float]]]:
    """Return the neighbours on the subject of each memory, with their likeness; not those that a relation settles."""
    by_id = {memory.id: memory for memory in memories}
    near: dict[UUID, list[tuple[Stored, float]]] = {}
    for neighbour in neighbours:
        memory = by_id.get(neighbour.memory_id)
        if memory is None or neighbour.settled or not neighbour.recent:
            continue
        other = Stored.of(neighbour)
        value = likeness(neighbour.cosine, memory.words, other.words)
        if value >= SAME:
            near.setdefault(memory.id, []).append((other, value))
    return near
