"""Change a memory and keep what it was: update, undo, history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

from folklore.db.stores.changes import Changing, Patch, State
from folklore.db.stores.drafts import stated
from folklore.db.stores.memories import Vectors
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import Conflict, InvalidInput, NotFound, Raced
from folklore.memory.context import MemoryContext
from folklore.memory.locate import place_of, unknown
from folklore.memory.permissions import must_write, require
from folklore.memory.records.store import embed
from folklore.memory.records.supersede import SUPERSEDES
from folklore.memory.secret_guard import guard_fields
from folklore.memory.validation import check_draft
from folklore.model import Caller, Draft, Memory, Relation, Revision, SecretPolicy
from folklore.text.clean import digest

# What may be changed, and which of it may be taken away.
FIELDS = (
    "content", "summary", "kind", "tags", "source", "session", "occurred_at", "importance", "confidence", "priority",
    "language", "expires_at", "paths", "commit", "metadata",
)  # fmt: skip
CLEARABLE = frozenset(FIELDS) - {"content", "kind", "language"}
# A change of these changes what a memory is found by.
_SEARCHED = frozenset({"content", "summary", "tags", "source", "language", "occurred_at"})
_TIMES = frozenset({"occurred_at", "expires_at"})
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Edit:
    """What shall be different: new values by field, and fields to empty."""

    fields: Mapping[str, Any]
    clear: Sequence[str] = ()
    if_revision: int | None = None


async def update(
    library: MemoryContext,
    id_: UUID,
    edit: Edit,
    *,
    caller: Caller,
    now: datetime,
    zone: tzinfo = UTC,
    namespaces: tuple[str, ...] = (),
) -> Memory:
    """Change fields of a memory; its id, relations and counts stay, and what it was becomes a revision.

    Nothing is written if nothing is different. Raises InvalidInput, NotFound, Conflict (changed since `if_revision`,
    forgotten, superseded, or its new text is another memory's), Refused.
    """
    must_write(caller)
    wanted = _checked(edit, library.secrets, now=now, zone=zone)
    notebook = await place_of(library, id_, namespaces=namespaces)
    require(caller, notebook.name, "writer")
    vectors = await embed(library, [wanted["content"]]) if "content" in wanted else None
    async with library.changes.of(notebook.id, caller=caller, now=now) as change:
        state = (await change.states([id_], whole=True)).get(id_)
        if state is None:
            raise unknown([id_])
        _in_force(state)
        _must_be_at(
            edit.if_revision,
            id_,
            state.revision,
            "Read it again with memory_get and repeat the change on what it says now.",
        )
        different = {name: value for name, value in wanted.items() if _differs(name, value, state.held[name])}
        if different:
            await change.record([id_], "update", [*different, *(["position"] if "session" in different else [])])
            await _write(change, state, different, vectors)
    return await _read(library, notebook, id_)


async def undo(
    library: MemoryContext,
    id_: UUID,
    *,
    caller: Caller,
    now: datetime,
    retention: timedelta,
    namespaces: tuple[str, ...] = (),
    revision: int | None = None,
) -> tuple[Memory, Revision]:
    """Take back the last change of a memory (update, forget, supersede, expire) that was not taken back yet.

    The undoing is kept as a revision too. What had expired has no end any more. Returns the memory as it is now and
    what was undone. Raises NotFound if nothing was changed, Conflict if its time is over, another memory has its text
    by now, or it is not at `revision`: who says where it is takes nothing more back by saying it twice.
    """
    must_write(caller)
    notebook = await place_of(library, id_, namespaces=namespaces)
    require(caller, notebook.name, "writer")
    changed = "It was changed since, or this undoing has happened already; `folklore history` tells."
    if revision is not None:
        _must_be_at(revision, id_, (await _read(library, notebook, id_)).revision, changed)
    for _ in range(_TRIES):  # the text is embedded before the transaction, which must then find the same last change
        last = await library.changes.last(notebook.id, id_)
        if last is None:
            raise await _nothing_to_undo(library, notebook, id_)
        if last.action == "forget" and last.changed_at < now - retention:
            raise Conflict(f"The memory {id_} was forgotten over {retention.days} days ago.", hint="Store it anew.")
        text = last.before.get("content")
        vectors = await embed(library, [str(text)]) if text is not None else None
        async with library.changes.of(notebook.id, caller=caller, now=now) as change:
            if await change.last(id_) != last:
                continue
            state = (await change.states([id_], whole=True))[id_]
            _must_be_at(revision, id_, state.revision, changed)
            before = await _restorable(change, last)
            await change.record([id_], "undo", list(before), undoes=last.revision)
            if "superseded_by" in before and state.superseded_by is not None:
                await change.unrelate([Relation(state.superseded_by, SUPERSEDES, id_)])
            await _write(change, state, before, vectors)
        library.stored()
        return await _read(library, notebook, id_), last
    raise Raced(f"The memory {id_} is being changed by somebody else.", hint="Try again.")


async def history(
    library: MemoryContext, id_: UUID, *, namespaces: tuple[str, ...] = ()
) -> tuple[Memory, tuple[Revision, ...]]:
    """A memory as it is, and its changes, the last one first. Raises NotFound."""
    notebook = await place_of(library, id_, namespaces=namespaces)
    return await _read(library, notebook, id_), tuple(await library.changes.history(notebook.id, id_))


async def _nothing_to_undo(library: MemoryContext, notebook: NamespaceInfo, id_: UUID) -> NotFound:
    if await library.changes.history(notebook.id, id_):
        return NotFound(
            f"Every change of the memory {id_} was undone already.",
            hint=f"`folklore history {id_}` shows them; to change it again, edit it.",
        )
    return NotFound(f"Nothing was changed about the memory {id_}.", hint="There is nothing to undo.")


async def _restorable(change: Changing, last: Revision) -> Mapping[str, Any]:
    """What an undo gives back of a change.

    Who was superseded by one that was erased was so by nobody that can be named. What expired lives on without end:
    with its old one nobody would see it, and the job `expiry` would forget it again.
    """
    before = last.before
    if last.action == "expire":
        before = {**before, "expires_at": None}
    by = before.get("superseded_by")
    if by is not None and UUID(str(by)) not in await change.states([UUID(str(by))]):
        before = {**before, "superseded_by": None}
    return before


async def _write(change: Changing, state: State, fields: Mapping[str, Any], vectors: Vectors | None) -> None:
    """Give the memory these columns, within the transaction, and find it by what it says then."""
    after = {**state.held, **fields}
    alive = after["forgotten_at"] is None and after["superseded_at"] is None
    text = digest(str(after["content"]))
    if alive and (holder := await change.living(text)) not in (None, state.id):
        raise Conflict(f"Its text is that of the memory {holder}.", hint="Change or forget that one instead.")
    if "language" in fields:
        await change.learn(str(fields["language"]))
    searched = not _SEARCHED.isdisjoint(fields)
    if searched:
        await change.unindex([state.id])
    await change.patch([Patch(state.id, fields, text if "content" in fields else None)])
    if searched:
        await change.reindex(state.id, meaning="content" in fields, vectors=vectors)


def _checked(edit: Edit, secrets: SecretPolicy, *, now: datetime, zone: tzinfo) -> dict[str, Any]:
    """The columns asked for, as JSON, checked like those of a new memory."""
    if surplus := [name for name in (*edit.fields, *edit.clear) if name not in FIELDS]:
        raise InvalidInput(surplus[0], "is no field that can be changed.", hint=f"There are {', '.join(FIELDS)}.")
    if kept := [name for name in edit.clear if name not in CLEARABLE]:
        raise InvalidInput("clear", f"{kept[0]} cannot be empty.", hint=f"Can be: {', '.join(sorted(CLEARABLE))}.")
    if both := [name for name in edit.clear if name in edit.fields]:
        raise InvalidInput("clear", f"{both[0]} is given a value too.", hint="Do one of the two.")
    changed, _ = guard_fields(edit.fields, secrets)
    given = {**edit.fields, **changed}
    if not given and not edit.clear:
        raise InvalidInput("id", "comes without a change.", hint="Give at least one field, such as content.")
    # The content stands in where none is given: a draft has one.
    draft = check_draft(Draft(**({"content": "unchanged"} | given)), field="", now=now, zone=zone)
    columns = stated(draft) | {"language": draft.language}
    empty = stated(Draft(content=""))
    return {name: columns[name] for name in given} | {name: empty[name] for name in edit.clear}


def _differs(name: str, new: object, old: object) -> bool:
    if name in _TIMES and isinstance(new, str) and isinstance(old, str):
        return datetime.fromisoformat(new) != datetime.fromisoformat(old)
    if isinstance(new, float) and isinstance(old, float):
        return round(new, 6) != round(old, 6)  # as exact as the database keeps them
    return new != old


def _must_be_at(expected: int | None, id_: UUID, revision: int, hint: str) -> None:
    if expected not in (None, revision):
        raise Conflict(f"The memory {id_} is at revision {revision} by now, not {expected}.", hint=hint)


def _in_force(state: State) -> None:
    if state.forgotten_at is not None:
        raise NotFound(f"The memory {state.id} was forgotten.", hint=f"`folklore undo {state.id}` brings it back.")
    if state.superseded_at is not None:
        by = "another" if state.superseded_by is None else str(state.superseded_by)
        raise Conflict(f"The memory {state.id} was superseded by {by}.", hint="Change that one.")


async def _read(library: MemoryContext, notebook: NamespaceInfo, id_: UUID) -> Memory:
    found = await library.memories.get([notebook.id], [id_])
    if not found:
        raise unknown([id_])
    [(_, memory)] = found
    return memory
