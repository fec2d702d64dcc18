"""Review: memories of a project that want a decision; each is decided in the list, and undone there."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast, get_args
from uuid import UUID

from starlette.responses import JSONResponse, Response

from folklore.contract.decisions import DECISIONS, Decided, Decision, decide
from folklore.contract.health import StatusRequest
from folklore.contract.hooks import StatementsRequest
from folklore.contract.ids import id_of
from folklore.contract.memories import (
    GetRequest,
    RelateResult,
    StoreRequest,
    UndoRequest,
)
from folklore.contract.requests import Returns
from folklore.contract.review import (
    OverviewRequest,
    ReviewItem,
    ReviewReason,
    ReviewRequest,
)
from folklore.errors import FolkloreError, InvalidInput, NotFound
from folklore.model import Draft, Memory
from folklore.permissions import role_in
from folklore.server.console.visit import Visit, is_from_script, number_of
from folklore.text.difference import Part, changed_lines

# Items of a page, those that are read for it, chosen ones of a form, and characters of a text that are compared.
_PAGE = 10
_LIMIT = 100
_SELECTION = 100
_COMPARED = 4_000
TITLES = {
    "contradiction": "Contradictions",
    "similar": "Near-duplicates",
    "unused": "Unused for 180 days",
    "cues": "Used, without cues",
}
# The button of each decision, and its key.
BUTTONS: Mapping[Decision, tuple[str, str]] = {
    "keep": ("Keep", "y"), "pin": ("Pin", "p"), "forget": ("Forget", "f"), "merge": ("Merge", "m"),
    "supersede": ("Supersede the older", "s"), "forget_older": ("Forget the older", "1"),
    "forget_newer": ("Forget the newer", "2"), "contradicts": ("Contradiction", "c"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FormItem:
    """Item of a review, as a form names it, with its decision as it was written and the changed memory, or an error."""

    item: ReviewItem
    name: str
    decision: Decision | None = None
    changed: Memory | None = None
    error: FolkloreError | None = None

    @property
    def is_cut(self) -> bool:
        """True if only the beginnings of the texts are compared."""
        return any(len(memory.content) > _COMPARED for memory in self.item.memories)

    def lines(self) -> Iterator[tuple[str, Sequence[Part]]]:
        """Yield how the second text differs from the first, when the template reads it."""
        texts = [memory.content[:_COMPARED] for memory in self.item.memories]
        if len(texts) == 2:
            return changed_lines(*texts)
        return iter(())


async def show(visit: Visit) -> Response:
    """Show what wants a decision in a project, or the projects with the numbers of it."""
    project = visit.query.get("project", "")
    if not project:
        return await _projects(visit)

    reason = _reason(visit.query.get("reason", "similar"))
    skip = number_of(visit.query.get("skip") or "0", "skip")
    cursor = visit.query.get("after")
    after = id_of(cursor, "after", "Reload the page.") if cursor else None
    result = await visit.call(
        ReviewRequest(reason=reason, namespace=project, limit=_LIMIT, after=after)
    )
    end = skip + _PAGE
    more: dict[str, Any] | None = None
    if len(result.items) > end:
        more = {"after": cursor, "skip": end}
    elif result.after is not None:
        more = {"after": result.after}
    values = {
        **_of_page(visit, project, reason),
        "items": [_form_item(item) for item in result.items[skip:end]],
        "more": more,
        "assertions": await visit.call(StatementsRequest(namespace=project)),
    }
    return await visit.render("review.html", **values)


async def _projects(visit: Visit) -> Response:
    """Show the projects with the numbers of what wants a decision in each."""
    overview = await visit.call(OverviewRequest())
    status = await visit.call(StatusRequest(check_model=False))
    assertions = await visit.call(StatementsRequest(everywhere=True))
    said = Counter(assertion.project for assertion in assertions)
    names = [namespace.name for namespace in status.namespaces]
    return await visit.render(
        "review_projects.html",
        projects=dict.fromkeys([*names, *said]),
        attention={item.namespace: item for item in overview.attention},
        said=said,
    )


async def store_or_drop(visit: Visit) -> Response:
    """Store a sentence that the visitor said in a session, or drop it."""
    project = visit.form.get("project", "")
    sentence = visit.form.get("sentence", "")
    notice = "dropped"
    if "store" in visit.form:
        notice = "stored"
        await visit.call(
            StoreRequest(memories=(Draft(sentence),), namespace=project, single=True)
        )
    await visit.call(StatementsRequest(namespace=project, drop=(sentence,)))
    return visit.redirect("review", notice=notice, project=project, reason="similar")


def _of_page(visit: Visit, project: str, reason: ReviewReason) -> dict[str, Any]:
    return {
        "project": project,
        "reason": reason,
        "titles": TITLES,
        "decisions": DECISIONS[reason],
        "buttons": BUTTONS,
        "may_write": role_in(visit.caller, project) in ("writer", "admin"),
        "more": None,
        "assertions": (),
        "done": "",
    }


async def preview(visit: Visit) -> Response:
    """Show what a decision would do to the chosen items."""
    reason, decision, names = _chosen(visit)
    items = [await _read(visit, reason, name) for name in names]
    return await visit.render(
        "review_preview.html",
        project=visit.form.get("project", ""),
        reason=reason,
        decision=decision,
        text=DECISIONS[reason][decision],
        items=items,
    )


async def apply(visit: Visit) -> Response:
    """Write a decision for one item, or for each chosen one, that has not changed since it was shown."""
    reason, decision, names = _chosen(visit)
    items = [await _applied(visit, reason, decision, name) for name in names]
    return await _answer(visit, reason, items)


async def undo(visit: Visit) -> Response:
    """Take back a decision, if the memory that it changed has not changed since, and show the item again."""
    reason = _reason(visit.form.get("reason", ""))
    # Of a button: the decision, the revision that it made, and the name of the item.
    decision, _, rest = visit.form.get("undo", "").partition(" ")
    revision, _, rest = rest.partition(" ")
    name = rest.partition(" ")[0]

    item = await _read(visit, reason, name)
    request = _decided(item.item, _decision(reason, decision)).undo
    if isinstance(request, UndoRequest):
        request = request.model_copy(update={"revision": number_of(revision, "undo")})
    await visit.call(cast("Returns[object]", request))

    if not is_from_script(visit.request):
        project = visit.form.get("project")
        return visit.redirect("review", notice="undone", project=project, reason=reason)
    return await _answer(visit, reason, [await _read(visit, reason, name)])


async def _answer(
    visit: Visit, reason: ReviewReason, items: Sequence[FormItem]
) -> Response:
    """Return a page of decided items, or to the script the HTML of one."""
    values = _of_page(visit, visit.form.get("project", ""), reason)
    values["items"] = items
    if is_from_script(visit.request):
        html = await visit.fragment("review_item.html", **values, shown=items[0])
        return JSONResponse({"html": html})
    done = sum(item.changed is not None for item in items)
    values["done"] = f"{done} of {len(items)} done."
    return await visit.render("review.html", **values)


def _decided(item: ReviewItem, decision: Decision) -> Decided:
    return decide(item, decision, datetime.now(UTC).date())


async def _applied(
    visit: Visit, reason: ReviewReason, decision: Decision, name: str
) -> FormItem:
    item = await _read(visit, reason, name)
    if item.name != name:
        changed_meanwhile = InvalidInput(
            "item", "changed since it was shown.", hint="Look at it again."
        )
        return replace(item, error=changed_meanwhile)
    decided = _decided(item.item, decision)
    try:
        result = await visit.call(cast("Returns[object]", decided.request))
        if isinstance(result, RelateResult) and result.failed:
            raise InvalidInput("item", result.failed[0].reason)
    except FolkloreError as error:
        return replace(item, error=error)
    request = GetRequest(ids=(decided.changed.id,), forgotten=True)
    [changed] = (await visit.call(request)).found
    return replace(item, decision=decision, changed=changed.memory)


async def _read(visit: Visit, reason: ReviewReason, name: str) -> FormItem:
    """Return an item of a form as it is now: its name differs if a memory of it has changed. Raises NotFound."""
    try:
        ids = [UUID(part.partition(":")[0]) for part in name.split("|")]
    except ValueError:
        raise InvalidInput(
            "item", "does not name memories.", hint="Reload the page."
        ) from None
    details = (await visit.call(GetRequest(ids=tuple(ids), forgotten=True))).found
    by_id = {item.memory.id: item.memory for item in details}
    for id_ in ids:
        if id_ not in by_id:
            raise NotFound(f"There is no memory {id_}.", hint="Reload the page.")
    return _form_item(ReviewItem(reason, tuple(by_id[id_] for id_ in ids)))


def _form_item(item: ReviewItem) -> FormItem:
    states = [f"{memory.id}:{memory.revision}" for memory in item.memories]
    return FormItem(item, "|".join(states))


def _chosen(visit: Visit) -> tuple[ReviewReason, Decision, list[str]]:
    """Return the reason, the decision and the items of a form: the one of a button, or the chosen ones.

    Raises InvalidInput.
    """
    reason = _reason(visit.form.get("reason", ""))
    if button := visit.form.get("decide"):
        decision, _, name = button.partition(" ")
        return reason, _decision(reason, decision), [name]

    names = visit.form.getlist("item")
    if not 1 <= len(names) <= _SELECTION:
        raise InvalidInput(
            "item",
            f"must be 1 to {_SELECTION} chosen ones, got {len(names)}.",
            hint="Check the boxes.",
        )
    decision = _decision(reason, visit.form.get("decision", ""))
    return reason, decision, list(dict.fromkeys(names))


def _decision(reason: ReviewReason, text: str) -> Decision:
    if text not in DECISIONS[reason]:
        raise InvalidInput(
            "decision", f"must be one of {', '.join(DECISIONS[reason])}."
        )
    return cast("Decision", text)


def _reason(text: str) -> ReviewReason:
    if text not in get_args(ReviewReason):
        raise InvalidInput(
            "reason", f"must be one of {', '.join(get_args(ReviewReason))}."
        )
    return cast("ReviewReason", text)
