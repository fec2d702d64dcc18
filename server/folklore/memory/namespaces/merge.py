"""Merge two namespaces: all memories of one move into the other, in one transaction."""

from folklore.contract.namespaces import MergedNamespaces, MergeNamespacesRequest
from folklore.db.stores.merging import Merging, Plan, reason_of
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import Conflict, InvalidInput, NotFound
from folklore.memory.context import RequestContext
from folklore.memory.namespaces.administration import administered, restorable
from folklore.memory.records.merge import restore_merged
from folklore.permissions import require_owner
from folklore.phases import phase

_MOST_IDS = 5


async def merge_namespaces(
    context: RequestContext, request: MergeNamespacesRequest
) -> MergedNamespaces:
    """Move all memories of a namespace into another with their histories, relations and usage; delete the empty one.

    Ids stay. A memory whose text the other namespace has is superseded by that one. A memory that both have under one
    id (an import copied it) stays behind. `undo` moves them back, while the namespace can be restored. Raises NotFound,
    InvalidInput, Refused; Conflict if both have other texts under one id.
    """
    if request.undo:
        return await _take_back(context, request)
    source = await administered(context, request.name, dry_run=request.dry_run)
    target = await administered(context, request.into, dry_run=request.dry_run)
    if source.id == target.id:
        raise InvalidInput("into", "is the namespace itself.", hint="Name another one.")
    memory = context.memory.root
    async with Merging(memory.database).of(
        source, target, caller=context.caller, now=context.now
    ) as merging:
        plan = await merging.plan()
        _check(plan, source.name, target.name)
        if not request.dry_run:
            with phase(f"Moving {len(plan.moved):,} memories") as advance:
                await merging.move(plan, advance)
            await merging.delete_source()
    if not request.dry_run:
        context.memory.changed()
        memory.changes.statistics.stored(len(plan.moved))
    return MergedNamespaces(
        source.name, target.name, len(plan.moved), len(plan.duplicates), len(plan.known)
    )


async def _take_back(
    context: RequestContext, request: MergeNamespacesRequest
) -> MergedNamespaces:
    """Restore a namespace that was merged, and move its memories back, as they are now.

    Relations to memories that stay, and successors among them, are lost.
    """
    require_owner(context.caller)
    if request.dry_run:
        raise InvalidInput("dry_run", "does not go with undo.", hint="Leave it out.")
    source = await administered(context, request.into)
    deleted = await restorable(context, request.name)
    assert deleted.deleted_at is not None
    if await context.memory.namespaces.find([deleted.name]):
        raise Conflict(
            f"Another namespace has the name {deleted.name!r} now.",
            hint="Rename that one first.",
        )
    target = NamespaceInfo(deleted.id, deleted.name, (), empty=False)
    async with Merging(context.memory.database).of(
        source, target, caller=context.caller, now=context.now, restore=True
    ) as merging:
        ids = await merging.moved(reason=reason_of(target.name), at=deleted.deleted_at)
        if not ids:
            hint = f"`folklore namespaces restore {target.name}` restores what was deleted otherwise."
            raise NotFound(
                f"{target.name} was not merged into {source.name}.", hint=hint
            )
        plan = await merging.plan(ids)
        with phase(f"Moving {len(plan.moved):,} memories back") as advance:
            await merging.move(plan, advance)
        superseded = await merging.superseded(
            namespace=deleted.id, at=deleted.deleted_at
        )
        await restore_merged(merging.target, superseded)
    context.memory.changed()
    return MergedNamespaces(
        source.name, target.name, len(plan.moved), len(plan.duplicates), len(plan.known)
    )


def _check(plan: Plan, source: str, target: str) -> None:
    if plan.differing:
        ids = ", ".join(map(str, plan.differing[:_MOST_IDS]))
        if len(plan.differing) > _MOST_IDS:
            more = f" and {len(plan.differing) - _MOST_IDS:,} more"
        else:
            more = ""
        hint = f"Erase them in one of the two (`folklore forget --erase -n {source} ID`), and run it again."
        raise Conflict(
            f"{source} and {target} have different memories under the same id: {ids}{more}.",
            hint=hint,
        )
