"""Log of the memories: who stored, changed and forgot what, for all who may read them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from folklore.db.stores.events.activity import ActivityEvent, ActivityStatements
from folklore.db.stores.events.audit import Write
from folklore.memory.context import RequestContext, names_by_id
from folklore.memory.filters import resolve_filters
from folklore.memory.records.get import may_read_forgotten
from folklore.memory.requests import FiltersRequest, LogRequest
from folklore.memory.results import Event
from folklore.model import Filters, Memory

_MOST = 1_000
# Writes of the text or the fields of memories. Erased memories leave no trace here.
ACTIONS: tuple[Write, ...] = (
    "store", "import", "update", "merge", "retag", "supersede", "forget", "restore", "undo",
)  # fmt: skip
# Memories of one write that are read.
_READ = 20


async def read_log(context: RequestContext, request: LogRequest) -> tuple[Event, ...]:
    """Return the latest writes of memories that the caller may read, newest first. Three statements.

    With `kinds` or `tags`, among the latest 1,000 writes. Raises InvalidInput, NotFound.
    """
    filters = resolve_filters(
        FiltersRequest(kinds=request.kinds, tags=request.tags, author=request.author, time=request.time), context
    )
    memory = context.memory
    names = names_by_id(await memory.find_namespaces(request.namespaces))
    entries = await ActivityStatements(memory.root.database).changes(
        namespaces=list(names),
        actions=ACTIONS,
        fetch=_MOST if filters.kinds or filters.tags else request.limit,
        principal=context.caller.author if request.mine else filters.author,
        since=filters.since,
        until=filters.until,
    )
    matches = _filter(filters)
    read = await visible_memories(context, list(names), (id_ for entry in entries for id_ in entry.memories[:_READ]))
    visible = {place: item for place, item in read.items() if matches(item)}
    logged = (
        event_of(entry, names[entry.namespace], visible, entry.memories if request.mine else ()) for entry in entries
    )
    imports = not (filters.kinds or filters.tags)
    return tuple(item for item in logged if item.memories or (imports and item.action == "import"))[: request.limit]


async def visible_memories(
    context: RequestContext, namespaces: Sequence[UUID], ids: Iterable[UUID]
) -> dict[tuple[UUID, UUID], Memory]:
    """Read the memories that the caller may see, by the id of their namespace and their own. One statement."""
    read = await context.memory.memories.get(namespaces, list(dict.fromkeys(ids)))
    return {
        (place, item.id): item for place, item in read if item.forgotten_at is None or may_read_forgotten(context, item)
    }


def _filter(filters: Filters) -> Callable[[Memory], bool]:
    """Return the condition on the memories of a write: one of the kinds, and one of the tags or below it."""

    def matches(memory: Memory) -> bool:
        tagged = any(tag == of or tag.startswith(f"{of}/") for tag in memory.tags for of in filters.tags)
        return (not filters.kinds or memory.kind in filters.kinds) and (not filters.tags or tagged)

    return matches


def event_of(
    event: ActivityEvent, namespace: str, visible: Mapping[tuple[UUID, UUID], Memory], ids: tuple[UUID, ...] = ()
) -> Event:
    """Return an event with those of its first memories that the caller may see."""
    memories = (visible.get((event.namespace, id_)) for id_ in event.memories[:_READ])
    return Event(
        event.id, event.at, event.author, event.action, event.amount, namespace, tuple(filter(None, memories)),
        event.agent, ids,
    )  # fmt: skip
