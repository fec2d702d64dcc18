"""Namespaces as people keep them: made, renamed, described, deleted, brought back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import Conflict, InvalidInput, NotFound
from folklore.memory.context import MemoryContext
from folklore.memory.ids import new_id
from folklore.memory.permissions import must_own, must_write, require
from folklore.memory.records.forget import forget_samples
from folklore.memory.secret_guard import guard_fields
from folklore.model import DEFAULT_LANGUAGE, Caller
from folklore.text import names
from folklore.text.clean import clean
from folklore.text.languages import language as language_of

MAX_DESCRIPTION = 2_000


@dataclass(frozen=True, slots=True)
class Erased:
    """What is gone for good, or would be: so many namespaces of one name, with so many memories in them.

    `left` are those of that name that had been deleted before and stay what they are. `ids` are those of what is gone.
    """

    name: str
    namespaces: int
    memories: int
    left: int
    ids: tuple[UUID, ...] = ()


async def create(
    library: MemoryContext,
    name: str,
    *,
    caller: Caller,
    now: datetime,
    language: str | None = None,
    description: str | None = None,
) -> str:
    """Make an empty namespace; returns its name as it is spelled. Raises InvalidInput, Conflict if it is there."""
    must_own(caller)
    guard_fields({"namespace": name, "description": description}, library.secrets)
    spelled = names.normalise(name)
    made = await library.namespaces.create(
        new_id(),
        spelled,
        language=DEFAULT_LANGUAGE if language is None else language_of(language, field="language"),
        description=_description(description),
        caller=caller,
        now=now,
    )
    if not made:
        raise Conflict(f"There is a namespace {spelled!r} already.")
    return spelled


async def rename(library: MemoryContext, name: str, to: str, *, caller: Caller, now: datetime) -> str:
    """Call it something else; what is in it stays. Raises NotFound, InvalidInput, Conflict if the name is taken."""
    guard_fields({"to": to}, library.secrets)
    notebook = await _the(library, name, caller)
    spelled = names.normalise(to, field="to")
    if not await library.root.namespaces.rename(notebook.id, spelled, caller=caller, now=now):
        raise Conflict(f"There is a namespace {spelled!r} already.", hint="Give it another name.")
    library.stored()
    return spelled


async def describe(
    library: MemoryContext, name: str, description: str | None, *, caller: Caller, now: datetime
) -> None:
    """Say what it is for. Raises NotFound, InvalidInput."""
    guard_fields({"description": description}, library.secrets)
    notebook = await _the(library, name, caller)
    await library.root.namespaces.describe(notebook.id, _description(description), caller=caller, now=now)


async def delete(library: MemoryContext, name: str, *, caller: Caller, now: datetime) -> str:
    """Hide a namespace with all that is in it, at once and from everything; `restore` brings it back for a while.

    Returns its name. Raises NotFound.
    """
    notebook = await _the(library, name, caller)
    await library.root.namespaces.delete(notebook.id, caller=caller, now=now)
    library.stored()
    return notebook.name


async def erase(
    library: MemoryContext,
    name: str,
    *,
    caller: Caller,
    now: datetime,
    dry_run: bool = False,
    if_ids: Sequence[UUID] | None = None,
) -> Erased:
    """Delete a namespace with all that is in it for good; if none of this name is in use, those that were deleted.

    Never both: those that were deleted were promised to come back. A `dry_run` only tells. With `if_ids` only if that
    would take these and no others. Raises NotFound, Conflict.
    """
    must_own(caller)
    spelled = names.normalise(name)
    deleted = [(item.id, item.name) for item in await library.namespaces.deleted(spelled)]
    living = [(item.id, item.name) for item in await library.namespaces.notebooks([spelled])]
    going = living or deleted
    if not going:
        await _the(library, name, caller)
    ids = tuple(id_ for id_, _ in going)
    if if_ids is not None and set(if_ids) != set(ids):
        raise Conflict(
            f"What goes by the name {spelled!r} is not what it was when you were asked; nothing was erased.",
            hint="Run it again to see what is there now.",
        )
    held = await library.namespaces.stats(ids, None)
    left = len(deleted) if living else 0
    erased = Erased(going[0][1], len(going), sum(item.memories for item in held), left, ids)
    if not dry_run:
        for id_ in ids:
            await library.namespaces.erase(id_, caller=caller, now=now)
        library.stored()
        await forget_samples(library)
    return erased


async def restore(library: MemoryContext, name: str, *, caller: Caller, now: datetime, retention: timedelta) -> str:
    """Bring back the namespace of this name that was deleted last. Raises NotFound, Conflict."""
    must_own(caller)
    deleted = await library.namespaces.deleted(names.normalise(name))
    if not deleted:
        raise NotFound(f"No namespace {name!r} was deleted.", hint="`folklore namespaces list --deleted` shows them.")
    last = deleted[0]
    if last.deleted_at is not None and last.deleted_at < now - retention:
        raise Conflict(f"The namespace {last.name} was deleted more than {retention.days} days ago.")
    if not await library.namespaces.restore(last.id, caller=caller, now=now):
        raise Conflict(
            f"There is another namespace {last.name!r} by now.",
            hint="Rename that one first.",
        )
    library.stored()
    return last.name


async def _the(library: MemoryContext, name: str, caller: Caller) -> NamespaceInfo:
    must_write(caller)
    library.stored()  # who changes a namespace wants to know it as it is
    notebook = (await library.notebooks([name]))[0]
    require(caller, notebook.name, "admin")
    return notebook


def _description(text: str | None) -> str | None:
    if text is None:
        return None
    cleaned = clean(text).text.strip()
    if len(cleaned) > MAX_DESCRIPTION:
        raise InvalidInput(
            "description", f"has {len(cleaned):,} characters; the limit is {MAX_DESCRIPTION:,}.", hint="Shorten it."
        )
    return cleaned or None
