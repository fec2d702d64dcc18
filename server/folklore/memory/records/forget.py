"""Forget memories: softly, to be undone for a while, or for good."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.stores.changes import Changing, Closing
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.context import MemoryContext
from folklore.memory.locate import locate, unknown
from folklore.memory.permissions import must_write, require
from folklore.model import Caller, Filters, Memory

MAX_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class ForgetRequest:
    """Which memories: by id, or those that the filters let through in `namespaces`.

    `shown` narrows the filters to what a person has seen and agreed to.
    """

    ids: Sequence[UUID] = ()
    filters: Filters | None = None
    namespaces: Sequence[str] = ()
    erase: bool = False
    dry_run: bool = False
    shown: Sequence[UUID] | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, or would be; `already` was before. `more` match the filters than one call takes."""

    memories: tuple[Memory, ...]
    already: tuple[UUID, ...] = ()
    more: bool = False


async def forget(library: MemoryContext, request: ForgetRequest, *, caller: Caller, now: datetime) -> Forgotten:
    """Forget memories, one transaction a namespace, at most 1,000 a call.

    Softly: hidden from everything at once, and `undo` brings them back within the time of retention. With `erase` for
    good: text, vectors, words, relations and revisions are deleted. Raises InvalidInput, NotFound (one of the ids is
    nowhere: then nothing was forgotten), Refused.
    """
    if not request.dry_run:
        must_write(caller)
    if bool(request.ids) == (request.filters is not None):
        raise InvalidInput("ids", "or filters say what to forget.", hint="Give exactly one of the two.")
    if request.filters is not None and not request.filters.narrow:
        raise InvalidInput("filters", "narrow nothing: all would be forgotten.", hint="Name tags, a session, a time, …")
    for field, ids_ in (("ids", request.ids), ("shown", request.shown or ())):
        if len(ids_) > MAX_AT_ONCE:
            raise InvalidInput(field, f"{len(ids_)} are over the limit of {MAX_AT_ONCE:,} a call.", hint="Split them.")
    # What to look at where: ids, or None for whatever the filters let through.
    where: dict[UUID, list[UUID] | None]
    if request.filters is None:
        places = await locate(library, request.ids, namespaces=request.namespaces)
        if places.missing:
            raise unknown(places.missing)
        notebooks = list({notebook.id: notebook for notebook in places.of.values()}.values())
        where = dict(places.by_namespace())
    else:
        notebooks = await library.notebooks(request.namespaces)
        where = dict.fromkeys(sorted(notebook.id for notebook in notebooks))
    for notebook in notebooks:  # what would be forgotten is for those to know who could forget it
        require(caller, notebook.name, "admin" if request.erase else "writer", dry_run=request.dry_run)
    found: list[Memory] = []
    already: list[UUID] = []
    more = False
    for namespace, ids in where.items():
        room = MAX_AT_ONCE - len(found)
        async with library.changes.of(namespace, caller=caller, now=now) as change:
            if ids is None:
                assert request.filters is not None
                ids = await change.matching(request.filters, room + 1, request.shown)
                more = more or len(ids) > room
                ids = ids[:room]
            due, before = await _due(change, ids, erase=request.erase)
            already += before
            if due:
                found += await change.read(due)
                if not request.dry_run:
                    await _forget(change, due, erase=request.erase, now=now)
    if not request.dry_run and found:
        library.stored()
        if request.erase:
            await forget_samples(library)
    return Forgotten(tuple(found), tuple(already), more)


async def forget_samples(library: MemoryContext) -> None:
    """Let the planner's samples of the tables, which hold texts, be taken anew. A role that may not do so loses nothing
    but time: autovacuum will.
    """
    with suppress(FolkloreError):
        await library.root.changes.settle_statistics()


async def _due(change: Changing, ids: Sequence[UUID], *, erase: bool) -> tuple[list[UUID], list[UUID]]:
    """Which of these there is something to do about, and which are forgotten already."""
    states = await change.states(ids)
    here = [id_ for id_ in ids if id_ in states]
    if erase:
        return here, []
    due = [id_ for id_ in here if states[id_].forgotten_at is None]
    return due, [id_ for id_ in here if states[id_].forgotten_at is not None]


async def _forget(change: Changing, ids: Sequence[UUID], *, erase: bool, now: datetime) -> None:
    if erase:
        await change.erase(ids)
    else:
        await change.record(ids, "forget", ["forgotten_at"])
        await change.close([Closing(id_, forgotten_at=now) for id_ in ids])
