"""Reads of whole memories by id."""

import re

from folklore.errors import InvalidInput
from folklore.memory.context import RequestContext, unknown_memories
from folklore.memory.permissions import role_in
from folklore.memory.requests import GetRequest, ResolveRequest
from folklore.memory.results import GetResult, MemoryDetails, ResolvedId
from folklore.model import Memory

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
    read = await memory.memories.get(readable, requested)
    visible = [
        (place, item)
        for place, item in read
        if item.forgotten_at is None or (request.forgotten and may_read_forgotten(context, item))
    ]
    if not visible:
        raise unknown_memories(requested)
    ids = list(dict.fromkeys(item.id for _, item in visible))
    relations = await memory.changes.relations(readable, ids, limit=_RELATIONS * len(ids))
    counts = await memory.changes.count_revisions(readable, ids)
    details = []
    for place, item in visible:  # an id in several namespaces has other relations in each
        own = [one for where, one in relations if where == place and item.id in (one.from_id, one.to_id)]
        details.append(MemoryDetails(item, tuple(own[:_RELATIONS]), counts.get((place, item.id), 0)))
    return GetResult(tuple(details), tuple(id_ for id_ in requested if id_ not in ids))


async def resolve_ids(context: RequestContext, request: ResolveRequest) -> tuple[ResolvedId, ...]:
    """Find the memories whose ids end in these characters, as far as the caller could read them. Three statements.

    The index on the last four characters bounds the work to one of 65,536 memories for each ending.

    Raises InvalidInput.
    """
    if not all(_ENDING.fullmatch(ending) for ending in request.endings):
        raise InvalidInput("endings", "must be 4 to 32 hexadecimal digits in lower case, without dashes.")
    memory = context.memory
    readable = [namespace.id for namespace in await memory.find_namespaces(())]
    # As the owner within readable namespaces: row-level security would keep an expression out of the index conditions.
    limit = _READ * len(request.endings)
    matches = await memory.root.memories.ending(readable, request.endings, limit=limit)
    read = await memory.memories.get(readable, sorted({id_ for ids in matches.values() for id_ in ids}))
    visible = {item.id: item for _, item in read if item.forgotten_at is None or may_read_forgotten(context, item)}
    return tuple(
        ResolvedId(ending, tuple(visible[id_] for id_ in ids if id_ in visible)[:_CANDIDATES])
        for ending, ids in matches.items()
    )


def may_read_forgotten(context: RequestContext, memory: Memory) -> bool:
    """Return True if the caller could restore the memory."""
    return context.caller.access is None or role_in(context.caller, memory.namespace) != "reader"
