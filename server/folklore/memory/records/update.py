"""Update a memory, or undo its last change. Every change writes a revision with the former values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from folklore.db.rows import columns_of
from folklore.db.stores.changes import NamespaceTransaction, Patch, State
from folklore.db.stores.memories import Vectors
from folklore.db.stores.namespaces import NamespaceInfo, stored_language
from folklore.errors import ConcurrentChange, Conflict, InvalidInput, NotFound
from folklore.memory.context import RequestContext, namespace_of, unknown_memories
from folklore.memory.records.get import may_read_forgotten
from folklore.memory.records.store import embed
from folklore.memory.records.supersede import SUPERSEDES
from folklore.memory.requests import CHANGEABLE, HistoryRequest, UndoRequest, UpdateRequest
from folklore.memory.results import History, Undone
from folklore.memory.secret_guard import guard_fields
from folklore.memory.validation import check_draft
from folklore.model import FIELDS, Draft, Memory, Relation, Revision
from folklore.text.clean import digest
from folklore.text.languages import detect

CLEARABLE = [name for name in CHANGEABLE if FIELDS[name].clearable]
_INDEXED = frozenset(name for name, field in FIELDS.items() if field.indexed)
_TRIES = 5


async def update(context: RequestContext, request: UpdateRequest) -> Memory:
    """Change fields of a memory; its id, relations and counts stay. Nothing is written if nothing differs.

    Raises InvalidInput, NotFound, Refused; Conflict if the memory changed since `if_revision`, was superseded, or if
    another memory has the new text.
    """
    values = _checked(context, request)
    namespace = await namespace_of(context, request.id, namespaces=request.namespaces, role="writer")
    vectors = await embed(context.memory, [values["content"]]) if "content" in values else None
    async with context.memory.changes.of(namespace.id, caller=context.caller, now=context.now) as change:
        state = (await change.states([request.id], whole=True)).get(request.id)
        if state is None:
            raise unknown_memories([request.id])
        _require_in_force(state)
        if request.if_revision not in (None, state.revision):
            raise Conflict(
                f"The memory {request.id} is at revision {state.revision}, not {request.if_revision}.",
                hint="Read it again with memory_get and repeat the change.",
            )
        changed = {name: value for name, value in values.items() if _differs(name, value, state.held[name])}
        changed |= _detected(changed, state)
        if changed:
            # A memory that moves to another session gets another position.
            await change.record([request.id], "update", [*changed, *(["position"] if "session" in changed else [])])
            await _write(change, state, changed, vectors)
    return await _read(context, namespace, request.id)


async def undo(context: RequestContext, request: UndoRequest) -> Undone:
    """Take back the last change of a memory (update, forget, supersede, expire) that was not taken back.

    The undo is a revision too. What expired never expires again. Raises NotFound if there is no change; Conflict if the
    retention time is over, another memory has the text now, or the memory is not at `revision`.
    """
    namespace = await namespace_of(context, request.id, namespaces=request.namespaces, role="writer")
    if request.revision is not None:
        _require_revision(request, (await _read(context, namespace, request.id)).revision)
    changes = context.memory.changes
    for _ in range(_TRIES):  # the text is embedded before the transaction, which must find the same last change
        last = await changes.last_revision(namespace.id, request.id)
        if last is None:
            raise await _nothing_to_undo(context, namespace, request.id)
        if last.action == "forget" and last.changed_at < context.now - context.retention:
            days = context.retention.days
            raise Conflict(f"The memory {request.id} was forgotten over {days} days ago.", hint="Store it again.")
        text = last.before.get("content")
        vectors = await embed(context.memory, [str(text)]) if text is not None else None
        async with changes.of(namespace.id, caller=context.caller, now=context.now) as change:
            if await change.last_revision(request.id) != last:
                continue
            await _take_back(change, request, last, vectors)
        context.memory.changed()
        return Undone(await _read(context, namespace, request.id), last)
    raise ConcurrentChange(f"The memory {request.id} is being changed by another caller.", hint="Try again.")


async def read_history(context: RequestContext, request: HistoryRequest) -> History:
    """Read a memory and its changes, the last one first. Raises NotFound."""
    namespace = await namespace_of(context, request.id, namespaces=request.namespaces)
    memory = await _read(context, namespace, request.id)
    if memory.forgotten_at is not None and not may_read_forgotten(context, memory):
        raise unknown_memories([request.id])
    return History(memory, tuple(await context.memory.changes.history(namespace.id, request.id)))


async def _take_back(
    change: NamespaceTransaction, request: UndoRequest, last: Revision, vectors: Vectors | None
) -> None:
    state = (await change.states([request.id], whole=True))[request.id]
    _require_revision(request, state.revision)
    before = await _restorable(change, last)
    await change.record([request.id], "undo", list(before), undoes=last.revision)
    if "superseded_by" in before and state.superseded_by is not None:
        await change.unrelate([Relation(state.superseded_by, SUPERSEDES, request.id)])
    await _write(change, state, before, vectors)


def _require_revision(request: UndoRequest, revision: int) -> None:
    if request.revision not in (None, revision):
        raise Conflict(
            f"The memory {request.id} is at revision {revision}, not {request.revision}.",
            hint="It was changed since, or this undo was done already; `folklore history` shows it.",
        )


async def _nothing_to_undo(context: RequestContext, namespace: NamespaceInfo, id_: UUID) -> NotFound:
    if await context.memory.changes.history(namespace.id, id_):
        return NotFound(
            f"Every change of the memory {id_} was undone already.",
            hint=f"`folklore history {id_}` shows them; to change it again, edit it.",
        )
    return NotFound(f"The memory {id_} was never changed.", hint="There is nothing to undo.")


async def _restorable(change: NamespaceTransaction, last: Revision) -> Mapping[str, Any]:
    """Return the columns that an undo restores.

    A successor that was erased cannot be named. What expired gets no expiry: with its old one it would expire again.
    """
    before = last.before
    if last.action == "expire":
        before = {**before, "expires_at": None}
    by = before.get("superseded_by")
    if by is not None and UUID(str(by)) not in await change.states([UUID(str(by))]):
        before = {**before, "superseded_by": None}
    return before


async def _write(
    change: NamespaceTransaction, state: State, fields: Mapping[str, Any], vectors: Vectors | None
) -> None:
    """Write columns of a memory, and its postings and vectors if they changed, within the transaction."""
    after = {**state.held, **fields}
    alive = after["forgotten_at"] is None and after["superseded_at"] is None
    text = digest(str(after["content"]))
    if alive and (holder := await change.in_force(text)) not in (None, state.id):
        raise Conflict(f"The memory {holder} has this text.", hint="Change or forget that one instead.")
    if "language" in fields:
        await change.add_language(str(fields["language"]))
    indexed = not _INDEXED.isdisjoint(fields)
    if indexed:
        await change.unindex([state.id])
    await change.patch([Patch(state.id, fields, text if "content" in fields else None)])
    if indexed:
        await change.reindex(state.id, content_changed="content" in fields, vectors=vectors)


def _detected(changed: Mapping[str, Any], state: State) -> dict[str, str]:
    """Return the language of a new text if it is clear, differs from that of the memory, and none is stated."""
    if "content" not in changed or "language" in changed:
        return {}
    held = str(state.held["language"])
    language = stored_language(detect(changed["content"]), held)
    return {} if language in (None, held) else {"language": str(language)}


def _checked(context: RequestContext, request: UpdateRequest) -> dict[str, Any]:
    """Return the new columns, as JSON, checked like those of a new memory."""
    given = {name: value for name, value in request.changes if value is not None}
    _check_clear(request.clear, given)
    redacted, _ = guard_fields(given, context.memory.secrets)
    given |= redacted
    if not given and not request.clear:
        raise InvalidInput("id", "comes without a change.", hint="Give at least one field, such as content.")
    draft = Draft(**{"content": "unchanged", **given})  # a draft needs content; it is not written unless given
    columns = columns_of(check_draft(draft, prefix="", now=context.now, zone=context.zone))
    empty = columns_of(Draft(content=""))
    return {name: columns[name] for name in given} | {name: empty[name] for name in request.clear}


def _check_clear(clear: Sequence[str], given: Mapping[str, Any]) -> None:
    for name in clear:
        if name not in CHANGEABLE:
            raise InvalidInput("clear", f"{name[:60]!r} is not a field.", hint=f"Fields are {', '.join(CLEARABLE)}.")
        if name not in CLEARABLE:
            raise InvalidInput("clear", f"{name} cannot be empty.", hint=f"Can be empty: {', '.join(CLEARABLE)}.")
        if name in given:
            raise InvalidInput("clear", f"{name} has a new value too.", hint="Give one of the two.")


def _differs(name: str, new: object, old: object) -> bool:
    if FIELDS[name].type == "time" and isinstance(new, str) and isinstance(old, str):
        return datetime.fromisoformat(new) != datetime.fromisoformat(old)
    if isinstance(new, float) and isinstance(old, float):
        return round(new, 6) != round(old, 6)  # as exact as the database stores them
    return new != old


def _require_in_force(state: State) -> None:
    if state.forgotten_at is not None:
        raise NotFound(f"The memory {state.id} was forgotten.", hint=f"`folklore undo {state.id}` restores it.")
    if state.superseded_at is not None:
        by = "another" if state.superseded_by is None else str(state.superseded_by)
        raise Conflict(f"The memory {state.id} was superseded by {by}.", hint="Change that one.")


async def _read(context: RequestContext, namespace: NamespaceInfo, id_: UUID) -> Memory:
    found = await context.memory.memories.get([namespace.id], [id_])
    if not found:
        raise unknown_memories([id_])
    [(_, memory)] = found
    return memory
