"""Update a memory, or undo its last change. Every change writes a revision with the former values."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from folklore.background import characters_in, on_texts
from folklore.contract.memories import (
    CHANGEABLE,
    History,
    HistoryRequest,
    Undone,
    UndoRequest,
    UpdateRequest,
)
from folklore.contract.undoing import Effect, changes_in_force, last_undo
from folklore.db.rows import columns_of
from folklore.db.stores.changes import NamespaceTransaction, State
from folklore.db.stores.memories import Vectors
from folklore.db.stores.namespaces import NamespaceInfo, stored_language
from folklore.errors import ConcurrentChange, Conflict, InvalidInput, NotFound
from folklore.memory.context import RequestContext, namespace_of, unknown_memories
from folklore.memory.context.secret_guard import guard_fields
from folklore.memory.context.validation import check_draft
from folklore.memory.records.cues import embed_cues
from folklore.memory.records.embedding import embed
from folklore.memory.records.fields import (
    differing,
    require_in_force,
    require_revision,
    restorable,
    revised,
    signed,
    write_fields,
)
from folklore.memory.records.forget import forget_again
from folklore.memory.records.get import is_visible, read_memories
from folklore.memory.records.merge import MERGE, merge, merge_again, unmerge
from folklore.memory.records.supersede import SUPERSEDES
from folklore.model import FIELDS, Draft, Memory, Relation, Revision
from folklore.text.languages import detect
from folklore.text.tags import refuse_null_words

CLEARABLE = [
    name for name in CHANGEABLE if FIELDS[name].clearable and FIELDS[name].stated
]
# Columns of which the vector of cues depends.
_WITH_CUES = ("cues", "content")
_TRIES = 5
_CHANGED = (
    "It was changed since, or this undo was done already; `folklore history` shows it."
)


async def update(context: RequestContext, request: UpdateRequest) -> Memory:
    """Change fields of a memory; its id, relations and counts stay. Nothing is written if nothing differs.

    `merge` names memories that are merged into it.

    Raises InvalidInput, NotFound, Refused; Conflict if the memory changed since `if_revision`, was superseded, or if
    another memory has the new text.
    """
    size = characters_in(dict(request.changes).values())
    values = await on_texts(partial(_checked, context, request), size)
    if request.merge:
        namespace = await merge(context, request, values)
        return await _read(context, namespace, request.id)

    namespace = await namespace_of(
        context, request.id, namespaces=request.namespaces, role="writer"
    )
    vectors = None
    if "content" in values:
        vectors = await embed(context.memory, [values["content"]])
    async with context.memory.changes.of(
        namespace.id, caller=context.caller, now=context.now
    ) as change:
        states = await change.states([request.id], whole=True)
        if request.id not in states:
            raise unknown_memories([request.id])
        state = states[request.id]
        require_in_force(state)
        require_revision(state.id, state.revision, request.if_revision)
        changed = differing(values, state)
        changed |= _detected(changed, state)
        if changed:
            changed = signed(changed, state, change)
            await change.record([request.id], "update", revised(changed))
            await write_fields(change, state, changed, vectors)
    if not changed.keys().isdisjoint(_WITH_CUES):
        await embed_cues(context.memory, namespace.id, [request.id])
    return await _read(context, namespace, request.id)


async def undo(context: RequestContext, request: UndoRequest) -> Undone:
    """Take back the last change of a memory (update, merge, forget, supersede …) that is in force.

    With `redo`, take back its last undo, so that what that took back is in force again; any other change since forbids
    that. Both are revisions with the action `undo`. A memory that was forgotten supersedes again what its forgetting
    restored, if that did not change since. What expired never expires again. Raises NotFound if there is no such
    change or undo; Conflict if the retention time is over, another memory has the text now, or the memory is not at
    `revision`.
    """
    namespace = await namespace_of(
        context, request.id, namespaces=request.namespaces, role="writer"
    )
    if request.revision is not None:
        present = await _read(context, namespace, request.id)
        require_revision(request.id, present.revision, request.revision, hint=_CHANGED)
    # the text is embedded before the transaction, which must find the same history
    for _ in range(_TRIES):
        history = await context.memory.changes.history(
            namespace=namespace.id, id=request.id
        )
        effect = _to_take_back(context, request, history)
        last = effect.revision
        vectors = None
        text = last.before.get("content")
        if text is not None:
            vectors = await embed(context.memory, [str(text)])
        async with context.memory.changes.of(
            namespace.id, caller=context.caller, now=context.now
        ) as change:
            if await change.history(id=request.id) != history:
                continue
            states = await change.states([request.id], whole=True)
            state = states[request.id]
            require_revision(
                request.id, state.revision, request.revision, hint=_CHANGED
            )
            if effect.is_undo:
                await _bring_back(change, state, effect, vectors)
                superseded: tuple[UUID, ...] = ()
            else:
                await _take_back(change, state, last, effect.cause.action, vectors)
                superseded = await _supersede_again(change, state, effect)
        context.memory.changed()
        if not last.before.keys().isdisjoint(_WITH_CUES):
            await embed_cues(context.memory, namespace.id, [request.id])
        memory = await _read(context, namespace, request.id)
        return Undone(memory, effect.cause, superseded)
    raise ConcurrentChange(
        f"The memory {request.id} is being changed by another caller.",
        hint="Try again.",
    )


def _to_take_back(
    context: RequestContext, request: UndoRequest, history: Sequence[Revision]
) -> Effect:
    """Return the change or the undo to take back. Raises NotFound, and Conflict if the retention time is over."""
    if request.redo:
        effect = last_undo(history)
    else:
        effect = next(iter(changes_in_force(history)), None)
    if effect is None:
        raise _nothing_to_undo(request, history)
    was_forgotten = effect.cause.action == "forget" and not effect.is_undo
    if was_forgotten and effect.revision.changed_at < context.now - context.retention:
        days = context.retention.days
        raise Conflict(
            f"The memory {request.id} was forgotten over {days} days ago.",
            hint="Store it again.",
        )
    return effect


async def read_history(context: RequestContext, request: HistoryRequest) -> History:
    """Read a memory and its changes, the last one first. Raises NotFound."""
    namespace = await namespace_of(context, request.id, namespaces=request.namespaces)
    memory = await _read(context, namespace, request.id)
    if not is_visible(context, memory):
        raise unknown_memories([request.id])
    changes = await context.memory.changes.history(
        namespace=namespace.id, id=request.id
    )
    return History(memory, tuple(changes))


async def _bring_back(
    change: NamespaceTransaction,
    state: State,
    effect: Effect,
    vectors: Vectors | None,
) -> None:
    """Take back an undo. What another memory has to do with it is done again: a forget restores, a merge supersedes."""
    undo = effect.revision
    action = effect.cause.action
    if action == "forget":
        await forget_again(change, state.id, undo)
    elif action == MERGE:
        await merge_again(change, state, undo, effect.cause.changed_at, vectors)
    else:
        await _take_back(change, state, undo, "undo", vectors)


async def _take_back(
    change: NamespaceTransaction,
    state: State,
    last: Revision,
    action: str,
    vectors: Vectors | None = None,
) -> None:
    """Write back the values before the revision `last`, which had the effect of `action`."""
    former = await _restorable(change, last, action)
    undoes = {state.id: last.revision}
    await change.record([state.id], "undo", list(former), undoes=undoes)
    if "superseded_by" in former:
        successor = state.superseded_by
        if successor is not None:
            await change.unrelate([Relation(successor, SUPERSEDES, state.id)])
        former_successor = former["superseded_by"]
        if former_successor is not None:
            id_ = UUID(str(former_successor))
            await change.relate([Relation(id_, SUPERSEDES, state.id)])
    await write_fields(change, state, former, vectors)
    if action == MERGE:
        await unmerge(change, state.id, last)


async def _supersede_again(
    change: NamespaceTransaction, state: State, effect: Effect
) -> tuple[UUID, ...]:
    """Hide again what a memory superseded before it was forgotten, if it did not change since. Return the ids."""
    if effect.cause.action != "forget" or state.superseded_at is not None:
        return ()
    restored = await change.restored(successor=state.id, at=effect.revision.changed_at)
    states = await change.states([item.memory_id for item in restored], whole=True)
    for item in restored:
        await _take_back(change, states[item.memory_id], item, item.action)
    return tuple(item.memory_id for item in restored)


def _nothing_to_undo(request: UndoRequest, history: Sequence[Revision]) -> NotFound:
    id_ = request.id
    if request.redo:
        return NotFound(
            f"The memory {id_} has no undo that could be redone.",
            hint="A change after the undo ends that.",
        )
    if any(change.action != "move" for change in history):
        hint = f"`folklore history {id_}` shows them, and `folklore redo {id_}` repeats the last one."
        return NotFound(
            f"Every change of the memory {id_} was undone already.", hint=hint
        )
    return NotFound(
        f"The memory {id_} was never changed.", hint="There is nothing to undo."
    )


async def _restorable(
    change: NamespaceTransaction, last: Revision, action: str
) -> Mapping[str, Any]:
    """Return the columns that an undo of the revision `last` restores, which had the effect of `action`.

    A successor that was erased cannot be named. What expired gets no expiry: with its old one it would expire again.
    """
    values = await restorable(change, last)
    if action == "expire":
        values = {**values, "expires_at": None}
    if values.get("superseded_by") is not None:
        successor = UUID(str(values["superseded_by"]))
        if successor not in await change.states([successor]):
            values = {**values, "superseded_by": None}
    return values


def _detected(changed: Mapping[str, Any], state: State) -> dict[str, str]:
    """Return the language of a new text if it is clear, differs from that of the memory, and none is stated."""
    if "content" not in changed or "language" in changed:
        return {}
    present = str(state.held["language"])
    language = stored_language(detect(changed["content"]), present)
    if language in (None, present):
        return {}
    return {"language": str(language)}


def _checked(context: RequestContext, request: UpdateRequest) -> dict[str, Any]:
    """Return the new columns, as JSON, checked like those of a new memory."""
    values = {name: value for name, value in request.changes if value is not None}
    _check_clear(request.clear, values)
    redacted, _ = guard_fields(values, context.memory.secrets)
    values |= redacted
    if not values.keys().isdisjoint(("paths", "commit")):
        values.setdefault("blobs", ())  # of other paths, or of another commit
    if not values and not request.clear and not request.merge:
        raise InvalidInput(
            "id",
            "comes without a change.",
            hint="Give at least one field, such as content.",
        )
    # a draft needs content; it is not written unless given
    draft = Draft(**{"content": "unchanged", **values})
    checked = check_draft(draft, prefix="", now=context.now, zone=context.zone)
    refuse_null_words(checked.tags, "tags")
    columns = columns_of(checked)
    empty = columns_of(Draft(content=""))
    changed = {name: columns[name] for name in values}
    cleared = {name: empty[name] for name in request.clear}
    return changed | cleared


def _check_clear(clear: Sequence[str], values: Mapping[str, Any]) -> None:
    for name in clear:
        if name not in CHANGEABLE:
            raise InvalidInput(
                "clear",
                f"{name[:60]!r} is not a field.",
                hint=f"Fields are {', '.join(CLEARABLE)}.",
            )
        if name not in CLEARABLE:
            raise InvalidInput(
                "clear",
                f"{name} cannot be empty.",
                hint=f"Can be empty: {', '.join(CLEARABLE)}.",
            )
        if name in values:
            raise InvalidInput(
                "clear", f"{name} has a new value too.", hint="Give one of the two."
            )


async def _read(context: RequestContext, namespace: NamespaceInfo, id_: UUID) -> Memory:
    return (await read_memories(context, namespace.id, [id_]))[id_]
