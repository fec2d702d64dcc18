"""Timeline: who stored, changed, forgot and recalled what, by day, page by page."""

from collections.abc import Mapping
from itertools import groupby
from typing import Any, get_args

from starlette.responses import Response

from folklore.contract.review import DONE, Action, ActivityRequest
from folklore.errors import InvalidInput
from folklore.server.console.render import day
from folklore.server.console.visit import Visit

_EVENTS = 50  # of a page
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
    days = [
        (name, list(group))
        for name, group in groupby(read.events, key=lambda event: day(event.at))
    ]
    return await visit.render(
        "timeline.html",
        days=days,
        read=read,
        is_latest=end is None,
        **shared(visit),
        kinds=["", *KINDS],
        projects=sorted({event.namespace for event in read.events}),
        authors=sorted({event.author for event in read.events}),
    )


def asked(visit: Visit, **cursor: str | None) -> ActivityRequest:
    """Return the request that the address describes, `after` or `before` a cursor. Raises InvalidInput."""
    kind = visit.query.get("kind", "")
    project = visit.query.get("project", "")
    if kind and kind not in KINDS:
        raise InvalidInput(
            "kind", f"must be one of {', '.join(KINDS)}, got {kind[:60]!r}."
        )
    return ActivityRequest(
        namespaces=(project,) if project else ("*",),
        author=visit.query.get("author") or None,
        actions=KINDS[kind] if kind else get_args(Action),
        limit=_EVENTS,
        **cursor,
    )


def shared(visit: Visit) -> dict[str, Any]:
    """Return what the template of an event needs: the filters of the address, and words for actions."""
    return {
        "choices": {
            name: visit.query.get(name) or None
            for name in ("project", "author", "kind")
        },
        "done": DONE,
    }
