"""Memories whole: with what they have to do with others, and how often they were changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.errors import InvalidInput
from folklore.memory.context import MemoryContext
from folklore.memory.locate import unknown
from folklore.model import Memory, Relation

MAX_AT_ONCE = 100
# A hub may have thousands of relations; the strongest are shown.
_RELATIONS = 200


@dataclass(frozen=True, slots=True)
class Detail:
    """A memory, its relations in both directions, and how many revisions it has."""

    memory: Memory
    relations: tuple[Relation, ...]
    revisions: int


@dataclass(frozen=True, slots=True)
class Details:
    """In the order asked for, one that an import brought into several namespaces from each; `missing` are nowhere."""

    found: tuple[Detail, ...]
    missing: tuple[UUID, ...]


async def details(library: MemoryContext, ids: Sequence[UUID], *, forgotten: bool = False) -> Details:
    """These memories whole; four statements however many. With `forgotten` also those that were.

    Raises NotFound if none of them is there, InvalidInput for more than 100.
    """
    wanted = list(dict.fromkeys(ids))
    if not 1 <= len(wanted) <= MAX_AT_ONCE:
        raise InvalidInput("ids", f"takes 1 to {MAX_AT_ONCE} a call, not {len(wanted)}.")
    everywhere = [notebook.id for notebook in await library.notebooks([])]
    got = await library.memories.get(everywhere, wanted)
    memories = [(place, memory) for place, memory in got if forgotten or memory.forgotten_at is None]
    if not memories:
        raise unknown(wanted)
    here = list(dict.fromkeys(memory.id for _, memory in memories))
    relations = await library.changes.relations(everywhere, here, limit=_RELATIONS * len(here))
    counts = await library.changes.counted(everywhere, here)
    found = []
    for place, memory in memories:  # the relations of one that is in several namespaces stay within each
        own = [tie for where, tie in relations if where == place and memory.id in (tie.from_id, tie.to_id)]
        found.append(Detail(memory, tuple(own[:_RELATIONS]), counts.get((place, memory.id), 0)))
    return Details(tuple(found), tuple(id_ for id_ in wanted if id_ not in set(here)))
