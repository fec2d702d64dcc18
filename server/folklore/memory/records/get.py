"""Reads of whole memories by id."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from uuid import UUID

from folklore.contract.memories import (
    GetRequest,
    GetResult,
    MemoryDetails,
    ResolvedId,
    ResolveRequest,
)
from folklore.errors import InvalidInput
from folklore.memory.context import RequestContext, unknown_memories
from folklore.model import Memory
from folklore.permissions import role_in

# A hub may have thousands of relations; the strongest are shown.
_RELATIONS = 200
_ENDING = re.compile(r"[0-9a-f]{4,32}")
_CANDIDATES = 6
# Ids read for each ending: more than are shown, since the caller may not see all.
_READ = 50


async def get_memories(context: RequestContext, request: GetRequest) -> GetResult:
    """Read memories with relations and the number of revisions. Four statements, however many.

    Raises NotFound if none exists.
    """
    requested = list(dict.fromkeys(request.ids))
    memory = context.memory
    readable = [namespace.id for namespace in await memory.find_namespaces(())]
    visible = await visible_memories(
        context, readable, requested, forgotten=request.forgotten
    )
    if not visible:
        raise unknown_memories(requested)
    ids = list(dict.fromkeys(id_ for _, id_ in visible))
    relations = await memory.changes.relations(
        readable, ids, limit=_RELATIONS * len(ids)
    )
    counts = await memory.changes.count_revisions(readable, ids)
    details = []
    for (
        (namespace, id_),
        item,
    ) in visible.items():  # an id in several namespaces has other relations in each
        own = [
            one
            for where, one in relations
            if where == namespace and id_ in (one.from_id, one.to_id)
        ]
        details.append(
            MemoryDetails(
                item, tuple(own[:_RELATIONS]), counts.get((namespace, id_), 0)
            )
        )
    return GetResult(tuple(details), tuple(id_ for id_ in requested if id_ not in ids))


async def resolve_ids(
    context: RequestContext, request: ResolveRequest
) -> tuple[ResolvedId, ...]:
    """Find the memories whose ids end in these characters, as far as the caller could read them. Three statements.

    The index on the last four characters bounds the work to one of 65,536 memories for each ending.

    Raises InvalidInput.
    """
    if not all(_ENDING.fullmatch(ending) for ending in request.endings):
        raise InvalidInput(
            "endings",
            "must be 4 to 32 hexadecimal digits in lower case, without dashes.",
        )
    memory = context.memory
    readable = [namespace.id for namespace in await memory.find_namespaces(())]
    # As the owner within readable namespaces: row-level security would keep an expression out of the index conditions.
    limit = _READ * len(request.endings)
    matches = await memory.root.memories.ending(readable, request.endings, limit=limit)
    every_id = chain.from_iterable(matches.values())
    read = await visible_memories(context, readable, every_id)
    visible = {id_: memory for (_, id_), memory in read.items()}
    resolved = []
    for ending, ids in matches.items():
        candidates = [visible[id_] for id_ in ids if id_ in visible]
        resolved.append(ResolvedId(ending, tuple(candidates[:_CANDIDATES])))
    return tuple(resolved)


async def visible_memories(
    context: RequestContext,
    namespaces: Sequence[UUID],
    ids: Iterable[UUID],
    *,
    forgotten: bool = True,
) -> dict[tuple[UUID, UUID], Memory]:
    """Read the memories that the caller may see, by the id of their namespace and their own. One statement.

    With `forgotten`, those too that the caller could restore.
    """
    read = await context.memory.memories.get(namespaces, list(dict.fromkeys(ids)))
    visible = {}
    for namespace, memory in read:
        is_shown = memory.forgotten_at is None
        if forgotten:
            is_shown = is_visible(context, memory)
        if is_shown:
            visible[namespace, memory.id] = memory
    return visible


def is_visible(context: RequestContext, memory: Memory) -> bool:
    """Return True for a memory that is not forgotten, or that the caller could restore."""
    caller = context.caller
    if memory.forgotten_at is None or caller.access is None:
        return True
    return role_in(caller, memory.namespace) != "reader"


async def read_memories(
    context: RequestContext, namespace: UUID, ids: Sequence[UUID]
) -> dict[UUID, Memory]:
    """Read memories of one namespace by id, forgotten ones too. Raises NotFound."""
    rows = await context.memory.memories.get([namespace], ids)
    read = {memory.id: memory for _, memory in rows}
    missing = [id_ for id_ in ids if id_ not in read]
    if missing:
        raise unknown_memories(missing)
    return read
