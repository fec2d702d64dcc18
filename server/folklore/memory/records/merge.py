"""Merge memories into one, and undo it in one step."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any
from uuid import UUID

from folklore.contract.memories import UpdateRequest
from folklore.db.rows import columns_of
from folklore.db.stores.changes import NamespaceTransaction, Patch, State, Superseded
from folklore.db.stores.events.audit import Write
from folklore.db.stores.memories import Vectors
from folklore.db.stores.merging import MERGED
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import ConcurrentChange, Conflict, InvalidInput
from folklore.memory.context import RequestContext, locate
from folklore.memory.records.cues import embed_cues, learned_cues, united_cues
from folklore.memory.records.embedding import embed
from folklore.memory.records.fields import (
    differing,
    require_in_force,
    require_revision,
    restorable,
    revised,
    signed,
    text_in_use,
    write_fields,
)
from folklore.memory.records.get import read_memories
from folklore.memory.records.supersede import (
    Replacement,
    is_done,
    refusal,
    write_replacements,
)
from folklore.model import Draft, Memory, Revision
from folklore.permissions import require
from folklore.text import tags as tag_rules

# The action of the target's revision.
MERGE: Write = "merge"
# What belongs to a text, and comes with it.
_OF_TEXT = ("content", "summary", "language", "occurred_at", "expires_at")
# What comes from all.
_UNITED = ("tags", "cues", "learned_cues", "pinned")
_TRIES = 5


async def merge(
    context: RequestContext, request: UpdateRequest, values: Mapping[str, Any]
) -> NamespaceInfo:
    """Merge memories into the memory `request.id`, in one transaction, and return its namespace.

    The target gets the text of the newest, the tags and the best cues of all, unless `values` has others, and copies of
    their relations; it is pinned if one is. The others are superseded by it. What was merged into it before is left as it is.
    Raises InvalidInput, NotFound, Refused, Conflict.
    """
    others = list(dict.fromkeys(request.merge))
    if request.id in others:
        raise InvalidInput(
            "merge",
            "names the memory itself.",
            hint="Leave it out: id is the one that remains.",
        )
    namespace = await _namespace(context, request, others)
    # the text is embedded before the transaction, which must find the same states
    for _ in range(_TRIES):
        read = await read_memories(context, namespace.id, [request.id, *others])
        sources = [read[id_] for id_ in others if read[id_].superseded_by != request.id]
        target = read[request.id]
        fields = _united(target, sources, values)
        content = fields.get("content", target.content)
        vectors = None
        if content != target.content:
            vectors = await embed(context.memory, [content])
        async with context.memory.changes.of(
            namespace.id, caller=context.caller, now=context.now
        ) as change:
            states = await change.states([request.id, *others], whole=True)
            if _changed_since(read, states):
                continue
            ids = [item.id for item in sources]
            await _write(change, request, states, ids, fields, vectors)
        context.memory.changed()
        await embed_cues(context.memory, namespace.id, [request.id])
        return namespace
    raise ConcurrentChange(
        f"The memory {request.id} is being changed by another caller.",
        hint="Try again.",
    )


def _changed_since(read: Mapping[UUID, Memory], states: Mapping[UUID, State]) -> bool:
    """Return whether any of these memories is gone, or at another revision than when it was read."""
    revisions = {id_: state.revision for id_, state in states.items()}
    return any(revisions.get(id_) != memory.revision for id_, memory in read.items())


async def merge_again(
    change: NamespaceTransaction,
    state: State,
    undone: Revision,
    merged_at: datetime,
    vectors: Vectors | None,
) -> None:
    """Take back the undo of a merge. Raises Conflict if one of the merged memories changed since."""
    others = await change.merged_at(at=merged_at)
    states = {state.id: state, **await change.states(others)}
    fields = await restorable(change, undone)
    request = UpdateRequest(id=state.id)
    undoes = {state.id: undone.revision}
    await _write(change, request, states, others, fields, vectors, undoes)


async def unmerge(change: NamespaceTransaction, target: UUID, last: Revision) -> None:
    """Restore the memories that were merged into another one by a change, whose fields were restored before.

    Raises Conflict if another memory has the text of one.
    """
    merged = await change.superseded_at(by=target, at=last.changed_at, reason=MERGED)
    await restore_merged(change, merged)
    await change.unrelate_since(target, last)


async def restore_merged(
    change: NamespaceTransaction, merged: Sequence[Superseded]
) -> None:
    """Put superseded memories in force again. Raises Conflict if another memory has the text of one."""
    if merged:
        holder = await change.in_force(digests=[item.digest for item in merged])
        if holder is not None:
            raise text_in_use(holder)
    ids = [item.id for item in merged]
    fields = ["superseded_at", "superseded_by"]
    undoes = {item.id: item.revision for item in merged}
    await change.record(ids, "undo", fields, undoes=undoes)
    await change.update(changes=[Patch(id_, dict.fromkeys(fields)) for id_ in ids])


async def _namespace(
    context: RequestContext, request: UpdateRequest, others: Sequence[UUID]
) -> NamespaceInfo:
    located = await locate(
        context.memory, [request.id, *others], namespaces=request.namespaces
    )
    target = located[request.id]
    require(context.caller, target.name, "writer")
    for id_, namespace in located.items():
        if namespace.id != target.id:
            hint = "Memories are merged within one namespace; `folklore namespaces merge` joins two namespaces."
            raise Conflict(
                f"merge: the memory {id_} is in {namespace.name}, not in {target.name}.",
                hint=hint,
            )
    return target


def _united(
    target: Memory, others: Sequence[Memory], values: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return what these memories have in common, unless given: all tags, the best cues, the text of the newest.

    It is pinned if one is.
    """
    if not others:
        return values
    memories = [target, *others]
    newest = max(memories, key=attrgetter("age"))
    tags = chain.from_iterable(memory.tags for memory in memories)
    draft = Draft(
        newest.content,
        newest.summary,
        tags=tag_rules.normalise(tags, field="tags"),
        cues=united_cues(memories, str(values.get("content", newest.content))),
        learned_cues=learned_cues(memories),
        language=newest.language,
        occurred_at=newest.when,
        expires_at=newest.expires_at,
        pinned=any(memory.pinned for memory in memories),
    )
    columns = columns_of(draft)
    keeps_text = newest is target or "content" in values
    names = _UNITED if keeps_text else (*_UNITED, *_OF_TEXT)
    united = {name: columns[name] for name in columns if name in names}
    return {**united, **values}


async def _write(
    change: NamespaceTransaction,
    request: UpdateRequest,
    states: Mapping[UUID, State],
    sources: Sequence[UUID],
    fields: Mapping[str, Any],
    vectors: Vectors | None,
    undoes: Mapping[UUID, int] | None = None,
) -> None:
    target = states[request.id]
    require_in_force(target)
    require_revision(target.id, target.revision, request.if_revision)
    replacements = []
    for index, id_ in enumerate(sources):
        replacement = Replacement(id_, target.id, f"merge[{index}]", MERGED)
        error = refusal(replacement, states)
        if error is not None and not is_done(replacement, states):
            raise error
        replacements.append(replacement)
    changed = differing(fields, target)
    if undoes is None:  # a redo has who changed the text among its fields
        changed = signed(changed, target, change)
    if not replacements and not changed:
        return
    action: Write = MERGE if replacements else "update"
    if undoes is not None:
        action = "undo"
    await change.record([target.id], action, revised(changed), undoes=undoes)
    await write_replacements(change, replacements)
    await change.copy_relations(sources, target.id)
    await write_fields(change, target, changed, vectors)
