"""Rename a tag on all memories of a namespace, or take that back."""

from collections.abc import Iterable, Iterator, Sequence
from uuid import UUID

from folklore.contract.memories import RenamedTag, RenameTagRequest
from folklore.db.stores.changes import NamespaceTransaction
from folklore.errors import InvalidInput, NotFound
from folklore.memory.context import RequestContext
from folklore.memory.context.secret_guard import guard_fields
from folklore.permissions import require, require_writable
from folklore.text import tags as tag_rules

# Memories that one statement changes, so that it ends before its timeout.
_BATCH = 1_000


async def rename_tag(context: RequestContext, request: RenameTagRequest) -> RenamedTag:
    """Rename a tag and the tags below it on all memories of a namespace that are not forgotten, in one transaction.

    A memory that has the new name already keeps it once. With `undo`, memories that the last renaming of these names
    changed get their former tags, unless they were changed since. Raises InvalidInput, NotFound, Refused.
    """
    if not request.dry_run:
        require_writable(context.caller)
    guard_fields({"to": request.to}, context.memory.secrets)
    [old] = tag_rules.normalise([request.tag], field="tag")
    [new] = tag_rules.normalise([request.to], field="to")
    tag_rules.refuse_null_words([new], "to")
    if old == new:
        raise InvalidInput("to", "is the tag itself.", hint="Give another name.")
    name = request.namespace
    if name is None:
        name = context.namespace()
    namespace = await context.memory.find_namespace(name)
    require(context.caller, namespace.name, "writer", dry_run=request.dry_run)
    work = _take_back if request.undo else _rename
    async with context.memory.changes.of(
        namespace.id, caller=context.caller, now=context.now
    ) as change:
        result = await work(change, namespace.name, old, new, dry_run=request.dry_run)
    context.memory.changed()
    return result


def _reason(old: str, new: str) -> str:
    """Return the reason in the revisions, by which an undo finds them."""
    return f"{old} → {new}"


async def _rename(
    change: NamespaceTransaction, namespace: str, old: str, new: str, *, dry_run: bool
) -> RenamedTag:
    ids, below = await change.tagged(old)
    if not ids:
        raise NotFound(
            f"No memory of {namespace} has the tag {old}.",
            hint="`folklore list` shows tags.",
        )
    renamed = {
        tag: tag_rules.normalise([new + tag.removeprefix(old)], field="to")[0]
        for tag in below
    }
    for batch in () if dry_run else _batches(ids):
        await change.record(
            batch, "retag", ["tags"], reasons=dict.fromkeys(batch, _reason(old, new))
        )
        await change.retag(batch, renamed)
    return RenamedTag(namespace, renamed, len(ids))


async def _take_back(
    change: NamespaceTransaction, namespace: str, old: str, new: str, *, dry_run: bool
) -> RenamedTag:
    changes = await change.retagged(reason=_reason(old, new))
    if not changes:
        hint = "`folklore audit --action retag` shows when tags were renamed."
        raise NotFound(
            f"In {namespace}, {old} was not renamed to {new}, or that was undone.",
            hint=hint,
        )
    revisions = {item.id: item.revision for item in changes if item.unchanged}
    for batch in () if dry_run else _batches(revisions):
        undoes = {id_: revisions[id_] for id_ in batch}
        await change.record(batch, "undo", ["tags"], undoes=undoes)
        await change.restore_tags(undoes)
    return RenamedTag(
        namespace, {new: old}, len(revisions), kept=len(changes) - len(revisions)
    )


def _batches(ids: Iterable[UUID]) -> Iterator[Sequence[UUID]]:
    every = list(ids)
    return (every[start : start + _BATCH] for start in range(0, len(every), _BATCH))
