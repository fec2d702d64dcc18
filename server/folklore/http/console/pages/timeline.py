"""Timeline: who stored, changed, forgot and recalled what, by day, page by page; and the rows of the live feed."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, get_args

from starlette.responses import Response

from folklore.errors import InvalidInput
from folklore.http.console.page_routes import get
from folklore.http.console.render import day
from folklore.http.console.visit import Visit
from folklore.memory.requests import ActivityRequest
from folklore.memory.results import DONE, Action, Event
from folklore.text.amounts import amount

# Events of a page, memories of an event.
_EVENTS, _MEMORIES = 50, 3
# What a person may ask for, by its name in the address.
KINDS: Mapping[str, tuple[Action, ...]] = {
    "stored": ("store", "import"),
    "changed": ("update", "merge", "retag", "supersede", "restore", "undo"),
    "forgotten": ("forget",),
    "recalled": ("recall",),
}


async def show(visit: Visit) -> Response:
    """Show a page of events, newest first."""
    end = visit.query.get("before") or None
    read = await visit.call(asked(visit, before=end))
    choices = {name: visit.query.get(name) or None for name in ("project", "author", "kind")}
    events = [row | {"moment": event.at} for row, event in zip(rows(read.events), read.events, strict=True)]
    days = [(name, list(group)) for name, group in groupby(events, key=lambda row: row["day"])]
    return await visit.render(
        "timeline.html",
        days=days,
        read=read,
        is_latest=end is None,
        choices=choices,
        kinds=["", *KINDS],
        projects=sorted({event.namespace for event in read.events}),
        authors=sorted({event.author for event in read.events}),
    )


def asked(visit: Visit, **cursor: str | None) -> ActivityRequest:
    """Return the request that the address describes, `after` or `before` a cursor. Raises InvalidInput."""
    kind, project = visit.query.get("kind", ""), visit.query.get("project", "")
    if kind and kind not in KINDS:
        raise InvalidInput("kind", f"must be one of {', '.join(KINDS)}, got {kind[:60]!r}.")
    return ActivityRequest(
        namespaces=(project,) if project else ("*",),
        author=visit.query.get("author") or None,
        actions=KINDS[kind] if kind else get_args(Action),
        limit=_EVENTS,
        **cursor,
    )


def rows(events: Iterable[Event]) -> Sequence[dict[str, Any]]:
    """Return events as the page and the live feed show them."""
    return [
        {
            "at": event.at.isoformat(),
            "day": day(event.at),
            "author": event.author,
            "agent": event.agent,
            "done": f"{DONE[event.action]} {amount(event.amount, 'memory')}",
            "project": event.namespace,
            "memories": [
                {"id": str(memory.id), "text": memory.summary or memory.content}
                for memory in event.memories[:_MEMORIES]
            ],
            "more": max(event.amount - min(len(event.memories), _MEMORIES), 0),
        }
        for event in events
    ]


ROUTES = [get("/timeline", show)]
