"""Merge two namespaces: all memories of one move into the other, in one transaction."""

from __future__ import annotations

from folklore.db.stores.merging import Plan
from folklore.errors import Conflict, InvalidInput
from folklore.memory.context import RequestContext
from folklore.memory.namespaces import administered
from folklore.memory.requests import MergeNamespacesRequest
from folklore.memory.results import MergedNamespaces

_SHOWN = 5


async def merge_namespaces(context: RequestContext, request: MergeNamespacesRequest) -> MergedNamespaces:
    """Move all memories of a namespace into another with their histories, relations and usage; delete the empty one.

    Ids stay. A memory whose text the other namespace has is superseded by that one. A memory that both have under one
    id (an import copied it) stays behind. Raises NotFound, InvalidInput, Refused; Conflict if both have other texts
    under one id.
    """
    source = await administered(context, request.name, dry_run=request.dry_run)
    target = await administered(context, request.into, dry_run=request.dry_run)
    if source.id == target.id:
        raise InvalidInput("into", "is the namespace itself.", hint="Name another one.")
    memory = context.memory.root
    async with memory.merging.of(source, target, caller=context.caller, now=context.now) as merging:
        plan = await merging.plan()
        _check(plan, source.name, target.name)
        if not request.dry_run:
            await merging.move(plan)
    if not request.dry_run:
        context.memory.changed()
        memory.changes.count_stored(len(plan.moved))
    return MergedNamespaces(source.name, target.name, len(plan.moved), len(plan.duplicates), len(plan.known))


def _check(plan: Plan, source: str, target: str) -> None:
    if plan.differing:
        shown = ", ".join(map(str, plan.differing[:_SHOWN]))
        more = f" and {len(plan.differing) - _SHOWN:,} more" if len(plan.differing) > _SHOWN else ""
        raise Conflict(
            f"{source} and {target} have different memories under the same id: {shown}{more}.",
            hint=f"Erase them in one of the two (`folklore forget --erase -n {source} ID`), and run it again.",
        )
