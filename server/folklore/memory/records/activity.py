"""Activity: writes and recalls as events, page by page, as a feed or as a log, and the uses of one memory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import get_args
from uuid import UUID

from folklore.contract.filters import FiltersRequest
from folklore.contract.review import (
    Action,
    Activity,
    ActivityRequest,
    Event,
    LogRequest,
    Use,
    UsesRequest,
)
from folklore.db.rows import made
from folklore.db.stores.events.activity import (
    ActivityEvent,
    ActivityStatements,
    EventKey,
)
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import InvalidInput
from folklore.memory.context import (
    MemoryContext,
    RequestContext,
    names_by_id,
    namespace_of,
    unknown_memories,
)
from folklore.memory.context.filters import resolve_filters
from folklore.memory.context.pagination import (
    Feed,
    event_cursor,
    event_key_of,
    feed_cursor,
    feed_of,
)
from folklore.memory.records.get import visible_memories
from folklore.model import Filters, Memory

# Writes of the text or the fields of memories. Erased memories leave no trace here.
WRITES = [action for action in get_args(Action) if action != "recall"]
# Writes of which a log with kinds or tags has the matching ones, and memories of one write that are read.
_MOST = 1_000
_READ = 20
# An event may be seen so long after the time that it bears: a store waits for its embeddings, a recall is recorded
# after its answer. An import bears the time of its beginning; what it commits later than this is on the pages alone.
_LATE = timedelta(minutes=10)
# Events that a cursor remembers: 3 kB. With more of them in that time, the time is shorter.
_REMEMBERED = 500
_LEAST = timedelta(microseconds=1)
# Events that one look for new ones reads.
_WATCHED = 1_000
# All events are before the one and after the other.
_END = EventKey(datetime(9999, 1, 1, tzinfo=UTC), UUID(int=0), UUID(int=0))
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
# Recalls are not indexed by author: those of one author are looked for in this time.
_RECALLED = timedelta(days=30)


async def read_activity(context: RequestContext, request: ActivityRequest) -> Activity:
    """Return writes and recalls in the namespaces that the caller may read. Three statements.

    A feed gives each event once, whenever it was committed. Raises InvalidInput, NotFound.
    """
    if request.after is not None and request.before is not None:
        raise InvalidInput(
            "before", "cannot be given with after.", hint="Give one of them."
        )
    author = resolve_filters(FiltersRequest(author=request.author), context).author
    names = _with_memories(await context.memory.find_namespaces(request.namespaces))
    # As the owner: the logs have no policies for readers. They are asked for namespaces that the caller may read.
    statements = ActivityStatements(context.memory.root.database)
    log = _Log(statements, list(names), request.actions or get_args(Action), author)
    question = (request.namespaces, author, request.actions)
    if request.after is not None:
        read, feed, more = await log.later(
            feed_of(request.after, question), request.limit, context.now
        )
    else:
        end = None if request.before is None else event_key_of(request.before, question)
        read, feed, more = await log.earlier(end, request.limit, context.now)
    further = read and request.after is None
    return Activity(
        events=tuple(await _visible_events(context, names, read)),
        after=None if feed is None else feed_cursor(feed, question),
        before=event_cursor(read[-1].key, question) if further else None,
        more=more,
    )


async def read_log(context: RequestContext, request: LogRequest) -> tuple[Event, ...]:
    """Return the latest writes of memories that the caller may read, newest first. Three statements.

    With `kinds` or `tags`, among the latest 1,000 writes. Raises InvalidInput, NotFound.
    """
    filters = resolve_filters(
        FiltersRequest(
            kinds=request.kinds,
            tags=request.tags,
            author=request.author,
            time=request.time,
        ),
        context,
    )
    memory = context.memory
    names = names_by_id(await memory.find_namespaces(request.namespaces))
    filtered = bool(filters.kinds or filters.tags)
    events = await ActivityStatements(memory.root.database).changes(
        namespaces=list(names),
        actions=WRITES,
        fetch=_MOST if filtered else request.limit,
        principal=context.caller.author if request.mine else filters.author,
        since=filters.since,
        until=filters.until,
    )
    logged = await _visible_events(
        context, names, events, partial(_matches, filters), mine=request.mine
    )
    return tuple(event for event in logged if event.memories or not filtered)[
        : request.limit
    ]


def _matches(filters: Filters, memory: Memory) -> bool:
    """Return True for a memory of one of the kinds, and with one of the tags or one below it."""
    tagged = any(
        tag == of or tag.startswith(f"{of}/")
        for tag in memory.tags
        for of in filters.tags
    )
    return (not filters.kinds or memory.kind in filters.kinds) and (
        not filters.tags or tagged
    )


async def _visible_events(
    context: RequestContext,
    names: Mapping[UUID, str],
    events: Sequence[ActivityEvent],
    matches: Callable[[Memory], bool] = lambda _: True,
    *,
    mine: bool = False,
) -> list[Event]:
    """Return events with those of their first memories that the caller may see and that match. One statement.

    Of events without such a memory imports alone are left. Those of the caller's own writes have all ids.
    """
    ids = (id_ for event in events for id_ in event.memories[:_READ])
    visible = await visible_memories(context, list(names), ids)
    items = []
    for event in events:
        memories = (
            visible.get((event.namespace, id_)) for id_ in event.memories[:_READ]
        )
        matching = tuple(filter(matches, filter(None, memories)))
        if matching or event.action == "import":
            values = (
                event.id,
                event.at,
                event.author,
                event.action,
                event.amount,
                names[event.namespace],
            )
            items.append(
                Event(*values, matching, event.agent, event.memories if mine else ())
            )
    return items


async def new_events(
    memory: MemoryContext, feed: Feed | None, now: datetime
) -> tuple[frozenset[str], Feed]:
    """Return the namespaces with events that a feed has not given, and the feed after them. Two statements.

    For the server itself: it checks no permission, and reads no memory. Raises Unavailable.
    """
    names = _with_memories(await memory.root.find_namespaces(()))
    log = _Log(
        ActivityStatements(memory.root.database), list(names), get_args(Action), None
    )
    events, later, _ = await log.later(
        feed or Feed(now - _LATE, frozenset()), _WATCHED, now
    )
    assert later is not None
    return frozenset(names[event.namespace] for event in events), later


async def read_uses(context: RequestContext, request: UsesRequest) -> tuple[Use, ...]:
    """Return the latest uses of a memory. Three statements. Raises InvalidInput, NotFound."""
    namespace = await namespace_of(context, request.id, namespaces=request.namespaces)
    if not await visible_memories(context, [namespace.id], [request.id]):
        raise unknown_memories([request.id])
    is_owner = context.caller.access is None
    rows = await context.memory.root.database.rows(
        "activity/uses",
        namespace=namespace.id,
        memory=request.id,
        caller=None if is_owner else context.caller.author,
        fetch=request.limit,
    )
    return tuple([made(Use, row) for row in rows])


def _with_memories(namespaces: Sequence[NamespaceInfo]) -> Mapping[UUID, str]:
    """Return the names by id without empty namespaces, of which there may be thousands."""
    return names_by_id([namespace for namespace in namespaces if not namespace.empty])


# Events that were read, the feed of later ones, and True if others follow in the same direction.
_Read = tuple[Sequence[ActivityEvent], Feed | None, bool]


@dataclass(frozen=True, slots=True)
class _Log:
    """The events of some namespaces, actions and one author or all."""

    statements: ActivityStatements
    namespaces: Sequence[UUID]
    actions: Sequence[str]
    author: str | None

    def _question(self, fetch: int) -> dict[str, object]:
        return {
            "namespaces": self.namespaces,
            "actions": self.actions,
            "author": self.author,
            "fetch": fetch,
        }

    async def earlier(self, end: EventKey | None, limit: int, now: datetime) -> _Read:
        """Return the events before one, newest first; with the latest, the feed that begins after them."""
        at, id_, namespace = end or _END
        rows = await self.statements.events(
            **self._question(limit + 1),
            before_at=at,
            before_id=id_,
            before_namespace=namespace,
            recalled_since=_BEGINNING if self.author is None else now - _RECALLED,
        )
        events = rows[:limit]
        more = len(rows) > limit
        if end is not None:
            return events, None, more
        since = now - _LATE
        if more:
            since = max(since, events[-1].at + _LEAST)
        return events, Feed.of(since, [event.key for event in events]), more

    async def later(self, feed: Feed, limit: int, now: datetime) -> _Read:
        """Return the events that a feed has not given, oldest first."""
        rows = await self.statements.events_since(
            **self._question(len(feed.marks) + limit + 1), since=feed.since
        )
        new: list[ActivityEvent] = []
        read = []
        for event in rows:
            if feed.holds(event.key):
                read.append(event.key)
            else:
                new.append(event)
        events = new[:limit]
        following = new[limit:]

        read += [event.key for event in events]
        read.sort()
        since = max(feed.since, now - _LATE)
        if len(read) > _REMEMBERED:
            since = max(since, read[-_REMEMBERED - 1].at + _LEAST)
        if following:
            since = min(since, following[0].at)
        return events, Feed.of(since, read), bool(following)
