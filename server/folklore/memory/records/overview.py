"""Overview: what happened lately in the namespaces that the caller may read, and what wants attention there."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta
from operator import attrgetter
from uuid import UUID

from folklore.contract.review import (
    DISTINCT,
    REVIEWED,
    Attention,
    AuthorChanges,
    DayCounts,
    Overview,
    OverviewRequest,
    ReviewRequest,
)
from folklore.db.stores.events.activity import (
    ActivityStatements,
    AttentionRules,
    DayWrites,
)
from folklore.db.stores.upkeep.jobs import Jobs
from folklore.memory.context import RequestContext
from folklore.memory.records.activity import WRITES
from folklore.memory.records.review import CONTRADICTS, SETTLED, comparing_model
from folklore.memory.records.similar import NEAREST

# Days of the changes by author.
_WEEK = 7
# New texts; the others change known ones.
_STORING = ("store", "import")
# A hundred and more look alike. The newest memories are compared with so many before each: 100,000 distances.
_MOST = 100
_NEWEST = 100
_COMPARED = 1_000
_COUNTS = attrgetter(
    "contradictions", "unused", "similar", "tied", "pending_embeddings"
)
_UNUSED = timedelta(days=ReviewRequest.model_fields["unused_days"].default)


async def read_overview(context: RequestContext, request: OverviewRequest) -> Overview:
    """Count stores, recalls, changes, and what wants attention. Five statements, and for the owner one on the jobs.

    Raises InvalidInput, NotFound.
    """
    listed = await context.memory.find_namespaces(request.namespaces)
    # Without empty ones, of which there may be thousands.
    namespaces = [namespace.id for namespace in listed if not namespace.empty]
    starts = _starts_of_days(context, max(request.days, _WEEK))
    # As the owner: the logs have no policies for readers. They are asked for namespaces that the caller may read.
    logs = ActivityStatements(context.memory.root.database)
    activity = await logs.written(namespaces=namespaces, actions=WRITES, starts=starts)
    recalled = dict(await logs.recalled(namespaces=namespaces, starts=starts))
    stored: Counter[int] = Counter()
    for item in activity:
        if item.action in _STORING:
            stored[item.day] += item.memories
    days = []
    for day, start in enumerate(starts):
        days.append(DayCounts(start.date(), stored[day], recalled.get(day, 0)))
    of_week = [item for item in activity if item.day >= len(starts) - _WEEK]
    return Overview(
        days=tuple(days[-request.days :]),
        changes=_changes(of_week),
        attention=await _attention(context, namespaces),
        failed_jobs=await _failed_jobs(context),
    )


def _starts_of_days(context: RequestContext, days: int) -> list[datetime]:
    """Return when each of so many days begins in the caller's time zone, today last."""
    today = context.now.astimezone(context.zone).date()
    starts = []
    for ago in reversed(range(days)):
        day = today - timedelta(days=ago)
        starts.append(datetime.combine(day, time(), context.zone))
    return starts


def _changes(activity: Iterable[DayWrites]) -> tuple[AuthorChanges, ...]:
    """Return the changes of a few days by author and action, most memories first."""
    counts: Counter[tuple[str, str]] = Counter()
    for item in activity:
        counts[item.author, item.action] += item.memories
    changes = []
    for (author, action), memories in counts.most_common():
        changes.append(AuthorChanges(author, action, memories))
    return tuple(changes)


async def _attention(
    context: RequestContext, namespaces: Sequence[UUID]
) -> tuple[Attention, ...]:
    """Return what wants attention in the namespaces that have any. Two statements."""
    statements = ActivityStatements(context.memory.database)
    model = await comparing_model(context)
    limit = context.now - _UNUSED
    rules = AttentionRules(
        CONTRADICTS, DISTINCT, REVIEWED, limit, limit.date().isoformat(), _MOST
    )
    counts = await statements.attention(
        Attention, namespaces, None if model is None else model.id, rules, context.now
    )
    similar: dict[str, int] = {}
    if model is not None:
        rows = await statements.newest_similar(
            namespaces=namespaces,
            model=model.id,
            settled=SETTLED,
            now=context.now,
            distance=1 - NEAREST,
            newest=_NEWEST,
            compared=_COMPARED,
        )
        similar = dict(rows)
    items = [replace(item, similar=similar.get(item.namespace, 0)) for item in counts]
    return tuple(item for item in items if any(_COUNTS(item)))


async def _failed_jobs(context: RequestContext) -> tuple[str, ...]:
    """Return the names of the jobs whose last run failed, to the owner alone."""
    if context.caller.access is not None:
        return ()
    states = await Jobs(context.memory.database).all()
    return tuple(name for name, state in states.items() if state.outcome == "failed")
