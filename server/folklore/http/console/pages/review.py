"""Review: memories of a project that want a decision, with a preview, a confirmation and an undo of each decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast, get_args
from uuid import UUID

from starlette.responses import Response

from folklore.errors import FolkloreError, InvalidInput, NotFound
from folklore.http.console.page_routes import get, post
from folklore.http.console.visit import Visit
from folklore.memory.permissions import role_in
from folklore.memory.records.decisions import DECISIONS, Decided, Decision, decide
from folklore.memory.requests import GetRequest, OverviewRequest, Returns, ReviewRequest, StatusRequest
from folklore.memory.results import RelateResult, ReviewItem, ReviewReason
from folklore.model import Memory
from folklore.text.difference import Part, changed_lines

_LIMIT = 50
_CHOSEN = 100
TITLES = {"contradiction": "Contradictions", "similar": "Near-duplicates", "unused": "Unused for 180 days"}


@dataclass(frozen=True, slots=True)
class Shown:
    """Item of a review, as a form names it, and how its second text differs from its first."""

    item: ReviewItem
    name: str
    lines: Sequence[tuple[str, Sequence[Part]]] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Item with its decision as it was written and the memory that it changed, or with the error."""

    shown: Shown
    decided: Decided | None = None
    error: FolkloreError | None = None
    changed: Memory | None = None


async def show(visit: Visit) -> Response:
    """Show what wants a decision in a project, or the projects with the numbers of it."""
    project = visit.query.get("project", "")
    if not project:
        overview = await visit.call(OverviewRequest())
        status = await visit.call(StatusRequest(check_model=False))
        counted = {item.namespace: item for item in overview.attention}
        return visit.render("review_projects.html", projects=status.namespaces, counted=counted)
    reason = _reason(visit.query.get("reason", "similar"))
    found = await visit.call(
        ReviewRequest(reason=reason, namespace=project, limit=_LIMIT, after=_after(visit.query.get("after")))
    )
    return visit.render(
        "review.html",
        project=project,
        reason=reason,
        titles=TITLES,
        items=[_shown(item) for item in found.items],
        after=found.after,
        decisions=DECISIONS[reason],
        may_write=role_in(visit.caller, project) in ("writer", "admin"),
    )


async def preview(visit: Visit) -> Response:
    """Show what a decision would do to the chosen items."""
    reason, decision, names = _chosen(visit)
    items = [await _read(visit, reason, name) for name in names]
    return visit.render(
        "review_preview.html",
        project=visit.form.get("project", ""),
        reason=reason,
        decision=decision,
        text=DECISIONS[reason][decision],
        items=items,
    )


async def apply(visit: Visit) -> Response:
    """Write a decision for each chosen item that has not changed since it was shown."""
    reason, decision, names = _chosen(visit)
    outcomes = [await _applied(visit, reason, decision, name) for name in names]
    return visit.render(
        "review_done.html",
        project=visit.form.get("project", ""),
        reason=reason,
        text=DECISIONS[reason][decision],
        outcomes=outcomes,
    )


async def _applied(visit: Visit, reason: ReviewReason, decision: Decision, name: str) -> Outcome:
    shown = await _read(visit, reason, name)
    if shown.name != name:
        return Outcome(shown, error=InvalidInput("item", "changed since it was shown.", hint="Look at it again."))
    decided = decide(shown.item, decision, datetime.now(UTC).date())
    try:
        result = await visit.call(cast("Returns[object]", decided.request))
        if isinstance(result, RelateResult) and result.failed:
            raise InvalidInput("item", result.failed[0].reason)
    except FolkloreError as error:
        return Outcome(shown, error=error)
    [changed] = (await visit.call(GetRequest(ids=(decided.changed.id,), forgotten=True))).found
    return Outcome(shown, decided, changed=changed.memory)


async def _read(visit: Visit, reason: ReviewReason, name: str) -> Shown:
    """Return an item of a form as it is now: its name differs if a memory of it has changed. Raises NotFound."""
    try:
        ids = [UUID(part.partition(":")[0]) for part in name.split("|")]
    except ValueError:
        raise InvalidInput("item", "does not name memories.", hint="Reload the page.") from None
    found = {
        item.memory.id: item.memory for item in (await visit.call(GetRequest(ids=tuple(ids), forgotten=True))).found
    }
    if missing := [id_ for id_ in ids if id_ not in found]:
        raise NotFound(f"There is no memory {missing[0]}.", hint="Reload the page.")
    return _shown(ReviewItem(reason, tuple(found[id_] for id_ in ids)))


def _shown(item: ReviewItem) -> Shown:
    name = "|".join(f"{memory.id}:{memory.revision}" for memory in item.memories)
    texts = [memory.content for memory in item.memories]
    return Shown(item, name, list(changed_lines(*texts)) if len(texts) == 2 else ())


def _chosen(visit: Visit) -> tuple[ReviewReason, Decision, list[str]]:
    """Return the reason, the decision and the chosen items of a form. Raises InvalidInput."""
    reason, names = _reason(visit.form.get("reason", "")), visit.form.getlist("item")
    if not 1 <= len(names) <= _CHOSEN:
        raise InvalidInput("item", f"must be 1 to {_CHOSEN} chosen ones, got {len(names)}.", hint="Check the boxes.")
    decision = visit.form.get("decision", "")
    if decision not in DECISIONS[reason]:
        raise InvalidInput("decision", f"must be one of {', '.join(DECISIONS[reason])}.")
    return reason, cast("Decision", decision), list(dict.fromkeys(names))


def _reason(text: str) -> ReviewReason:
    if text not in get_args(ReviewReason):
        raise InvalidInput("reason", f"must be one of {', '.join(get_args(ReviewReason))}.")
    return cast("ReviewReason", text)


def _after(text: str | None) -> UUID | None:
    try:
        return None if not text else UUID(text)
    except ValueError:
        raise InvalidInput("after", "must be the id of a memory.") from None


ROUTES = [get("/review", show), post("/review/preview", preview), post("/review/apply", apply)]
