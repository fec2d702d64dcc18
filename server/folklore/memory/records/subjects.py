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
    likeness_of,
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
class ComparedMemory:
    """A stored memory as it is compared with others: its text, cues and time for order."""

    id: UUID
    content: str
    cues: tuple[str, ...]
    when: datetime

    @property
    def words(self) -> frozenset[str]:
        """The words of its subject."""
        return subject_words(self.content, self.cues)

    def is_replaced_by(self, newer: "ComparedMemory", likeness: float) -> bool:
        """Return whether another one, of this likeness, is newer by a day and on its subject."""
        if (newer.when - self.when).total_seconds() <= _DAY:
            return False
        return is_replaced(self.content, self.cues, newer.content, newer.cues, likeness)


# The memories on the subject of each, with their likeness.
_OnSubject = Mapping[UUID, Sequence[tuple[ComparedMemory, float]]]


def subjects_of(memories: Iterable[UUID]) -> Subjects:
    """Return what is asked of the database to know what is on the subjects of memories."""
    return Subjects(list(memories), _NEAREST, COMPARED)


def older_on_subject(
    memories: Sequence[ComparedMemory], neighbours: Iterable[Neighbour]
) -> dict[UUID, tuple[OnSubject, ...]]:
    """Return for each memory at most two older ones on its subject, the likeliest first; not those of one call.

    `neighbours` are the answer to `subjects_of`.
    """
    stored_together = {memory.id for memory in memories}
    on_subject = _on_subject(memories, neighbours)
    older_by_id: dict[UUID, tuple[OnSubject, ...]] = {}
    for memory in memories:
        olders = []
        for other, likeness in on_subject.get(memory.id, ()):
            if other.id not in stored_together and other.when <= memory.when:
                older = OnSubject(other.id, other.when, other.content, likeness)
                olders.append(older)
        if olders:
            olders.sort(key=lambda older: -older.likeness)
            older_by_id[memory.id] = tuple(olders[:_MOST_NAMED])
    return older_by_id


async def newer_memories(
    context: RequestContext, namespace: UUID, memories: Sequence[Memory]
) -> dict[UUID, Memory]:
    """Return the newest memory on the subject of each, by its id, if there is one that is newer by a day.

    Nobody asks here, so that the cues of the older memory say what its subject is; one without cues has none. A newer
    one may have a newer one too. At most one statement each time, and one that reads what was found.
    """
    compared = []
    for memory in memories:
        if memory.cues:
            compared.append(
                ComparedMemory(
                    memory.id, memory.content, memory.cues, memory.order_time
                )
            )
    if not compared:
        return {}
    newer_by_id = await _chains_of_newer(context, namespace, compared)
    if not newer_by_id:
        return {}

    newest_ids = {}
    for older in compared:
        newest_id = _end_of_chain(newer_by_id, older.id)
        if newest_id != older.id:
            newest_ids[older.id] = newest_id
    ids = list(dict.fromkeys(newest_ids.values()))
    rows = await context.memory.memories.get([namespace], ids)
    newest_by_id = {memory.id: memory for _, memory in rows}
    newest = {}
    for older_id, newest_id in newest_ids.items():
        if newest_id in newest_by_id:
            newest[older_id] = newest_by_id[newest_id]
    return newest


async def _chains_of_newer(
    context: RequestContext, namespace: UUID, memories: Sequence[ComparedMemory]
) -> dict[UUID, ComparedMemory]:
    """Return the newer memory on the subject of each, of these the newer ones too, and so on, by the id of the older."""
    if context.memory.embedder is None:
        return {}
    model = await context.memory.embedder.model()
    newer_by_id: dict[UUID, ComparedMemory] = {}
    olders = memories
    for _ in range(_MOST_STEPS):
        ids = [memory.id for memory in olders]
        neighbours = await context.memory.embeddings.neighbours(
            namespace,
            ids,
            model.id,
            newest=NEWEST,
            now=context.now,
            subjects=subjects_of(ids),
        )
        newer = _likeliest_newer(olders, _on_subject(olders, neighbours))
        newer_by_id |= newer
        distinct = {memory.id: memory for memory in newer.values()}
        olders = [
            memory for memory in distinct.values() if memory.id not in newer_by_id
        ]
        if not olders:
            break
    return newer_by_id


def _likeliest_newer(
    memories: Sequence[ComparedMemory], on_subject: _OnSubject
) -> dict[UUID, ComparedMemory]:
    """Return of the newer memories on the subject of each the one that is most like it, by the id of the older.

    Not the newest: beside the one that replaces it, later ones touch on its subject.
    """
    newer_by_id: dict[UUID, ComparedMemory] = {}
    for memory in memories:
        candidates = []
        for other, likeness in on_subject.get(memory.id, ()):
            if memory.is_replaced_by(other, likeness):
                candidates.append((likeness, other.when, other.id, other))
        if candidates:
            *_, likeliest = max(candidates, key=lambda candidate: candidate[:3])
            newer_by_id[memory.id] = likeliest
    return newer_by_id


def _end_of_chain(newer_by_id: Mapping[UUID, ComparedMemory], id_: UUID) -> UUID:
    """Return the id of the newest memory of a chain, in which each is newer than the one before."""
    while id_ in newer_by_id:
        id_ = newer_by_id[id_].id
    return id_


def _on_subject(
    memories: Sequence[ComparedMemory], neighbours: Iterable[Neighbour]
) -> _OnSubject:
    """Return the neighbours on the subject of each memory, with their likeness; not those that a relation settles."""
    by_id = {memory.id: memory for memory in memories}
    on_subject: dict[UUID, list[tuple[ComparedMemory, float]]] = {}
    for item in neighbours:
        memory = by_id.get(item.memory_id)
        if memory is None or item.settled or not item.recent:
            continue
        other = ComparedMemory(item.id, item.content, item.cues, item.when)
        likeness = likeness_of(item.cosine, memory.words, other.words)
        if likeness >= SAME:
            on_subject.setdefault(memory.id, []).append((other, likeness))
    return on_subject
