"""Reads of whole memories by id."""

from __future__ import annotations

from folklore.errors import InvalidInput
from folklore.memory.context import RequestContext, unknown_memories
from folklore.memory.permissions import role_in
from folklore.memory.requests import GetRequest
from folklore.memory.results import GetResult, MemoryDetails
from folklore.model import Memory

MAX_AT_ONCE = 100
# A hub may have thousands of relations; the strongest are shown.
_RELATIONS = 200


async def get_memories(context: RequestContext, request: GetRequest) -> GetResult:
    """Read memories with relations and the number of revisions. Four statements, however many.

    Raises NotFound if none exists, InvalidInput for more than 100.
    """
    wanted = list(dict.fromkeys(request.ids))
    if not 1 <= len(wanted) <= MAX_AT_ONCE:
        raise InvalidInput("ids", f"must hold 1 to {MAX_AT_ONCE} ids, got {len(wanted)}.")
    memory = context.memory
    readable = [namespace.id for namespace in await memory.find_namespaces(())]
    memories = [
        (place, item)
        for place, item in await memory.memories.get(readable, wanted)
        if item.forgotten_at is None or (request.forgotten and may_read_forgotten(context, item))
    ]
    if not memories:
        raise unknown_memories(wanted)
    ids = list(dict.fromkeys(item.id for _, item in memories))
    relations = await memory.changes.relations(readable, ids, limit=_RELATIONS * len(ids))
    counts = await memory.changes.count_revisions(readable, ids)
    found = []
    for place, item in memories:  # relations of an id that is in several namespaces stay within each
        own = [
            relation
            for where, relation in relations
            if where == place and item.id in (relation.from_id, relation.to_id)
        ]
        found.append(MemoryDetails(item, tuple(own[:_RELATIONS]), counts.get((place, item.id), 0)))
    return GetResult(tuple(found), tuple(id_ for id_ in wanted if id_ not in set(ids)))


def may_read_forgotten(context: RequestContext, memory: Memory) -> bool:
    """Return True if the caller could restore the memory."""
    return context.caller.access is None or role_in(context.caller, memory.namespace) != "reader"
