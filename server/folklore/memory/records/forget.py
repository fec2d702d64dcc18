"""Forget memories: hidden and restorable, or erased."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from uuid import UUID

from folklore.callers import Role
from folklore.contract.memories import ForgetRequest, ForgetResult
from folklore.db.stores.changes import Closing, NamespaceTransaction
from folklore.db.stores.events.audit import Write
from folklore.db.stores.namespaces import Listed
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.context import MemoryContext, RequestContext, locate
from folklore.memory.context.filters import resolve_filters
from folklore.memory.records.supersede import restore
from folklore.model import Filters, Memory, Revision
from folklore.permissions import require, require_writable

MAX_AT_ONCE = 1_000


async def forget(context: RequestContext, request: ForgetRequest) -> ForgetResult:
    """Forget memories, one transaction for each namespace, at most 1,000 a call.

    Forgotten memories are hidden at once, and an undo restores them within the retention time. With `erase`, text,
    vectors, postings, relations and revisions are deleted permanently. What they superseded is in force again, unless
    it matches the filters too. Filters without `namespaces` apply to the current namespace. Raises InvalidInput,
    Refused, and NotFound for an unknown id; then nothing is forgotten.
    """
    if not request.dry_run:
        require_writable(context.caller)
    if bool(request.ids) == (request.filters is not None):
        raise InvalidInput("ids", "give ids or filters, one of the two.")
    namespaces, filters = await _select(context, request)
    memories: list[Memory] = []
    earlier: list[UUID] = []
    restored: list[Memory] = []
    more = False
    for namespace, ids in namespaces.items():
        room = MAX_AT_ONCE - len(memories)
        async with context.memory.changes.of(
            namespace, caller=context.caller, now=context.now
        ) as change:
            if ids is None:
                assert filters is not None
                ids = await change.matching(filters, room + 1, request.only)
                more |= len(ids) > room
                ids = ids[:room]
            targets, old = await _due(change, ids, erase=request.erase)
            earlier += old
            if targets:
                memories += await change.read(targets)
                restored += await _forget(change, targets, filters, request)
    if not request.dry_run and memories:
        context.memory.changed()
        if request.erase:
            context.memory.namespaces.known.clear()  # one may be empty now
            await refresh_planner_samples(context.memory)
    return ForgetResult(tuple(memories), tuple(earlier), more, tuple(restored))


async def _forget(
    change: NamespaceTransaction,
    ids: Sequence[UUID],
    filters: Filters | None,
    request: ForgetRequest,
) -> list[Memory]:
    """Forget memories, unless the run is dry, and return those that are in force again."""
    hidden = await _hidden(change, ids, filters)
    if not request.dry_run:
        undoes = dict.fromkeys(ids, 0) if request.undoes_store else None
        await _write(change, ids, hidden, erase=request.erase, undoes=undoes)
    return await change.read(list(hidden))


async def forget_again(
    change: NamespaceTransaction, id_: UUID, undone: Revision
) -> None:
    """Take back an undo that had restored a forgotten memory."""
    hidden = await _hidden(change, [id_], None)
    await _write(change, [id_], hidden, action="undo", undoes={id_: undone.revision})


async def _write(
    change: NamespaceTransaction,
    ids: Sequence[UUID],
    hidden: Mapping[UUID, UUID],
    *,
    erase: bool = False,
    action: Write = "forget",
    undoes: Mapping[UUID, int] | None = None,
) -> None:
    if erase:
        await change.erase(ids)
    else:
        await change.record(ids, action, ["forgotten_at"], undoes=undoes)
        await change.close(
            closings=[Closing(id_, forgotten_at=change.now) for id_ in ids]
        )
    done = "erased" if erase else "forgot"
    await restore(change, hidden, f"{done} what superseded it")


async def _hidden(
    change: NamespaceTransaction, ids: Sequence[UUID], filters: Filters | None
) -> dict[UUID, UUID]:
    """Return the memories that only these ones hide, each with the memory that superseded it.

    One that matches the filters itself stays superseded: forgetting a topic must not bring its older memories back.
    """
    states = await change.states(ids)
    in_force = []
    for id_, state in states.items():
        if state.forgotten_at is None and state.superseded_at is None:
            in_force.append(id_)
    hidden = dict(await change.superseded_by(leading=in_force, leaving=ids))
    if hidden and filters is not None:
        matching = replace(filters, include_superseded=True)
        for id_ in await change.matching(matching, len(hidden), list(hidden)):
            del hidden[id_]
    return hidden


async def refresh_planner_samples(memory: MemoryContext) -> None:
    """Replace the planner's samples, which may hold erased texts; for a role that may not, autovacuum does."""
    with suppress(FolkloreError):
        await memory.root.changes.statistics.analyze()


async def _select(
    context: RequestContext, request: ForgetRequest
) -> tuple[dict[UUID, list[UUID] | None], Filters | None]:
    """Return the memories to forget in each namespace: ids, or None for those that match the filters.

    The caller's role in each is checked before anything is read.
    """
    if request.filters is None:
        located = await locate(
            context.memory, request.ids, namespaces=request.namespaces
        )
        names = {namespace.name for namespace in located.values()}
        in_order = sorted(located, key=lambda id_: (located[id_].id, id_))
        groups = groupby(in_order, key=lambda id_: located[id_].id)
        selected: dict[UUID, list[UUID] | None] = {}
        for namespace_id, ids in groups:
            selected[namespace_id] = list(ids)
        filters = None
    else:
        filters = resolve_filters(request.filters, context)
        if not filters.selective:
            hint = "Add a filter such as tags, session or time."
            raise InvalidInput(
                "filters",
                "exclude nothing: every memory would be forgotten.",
                hint=hint,
            )
        memory = context.memory
        if request.namespaces:
            namespaces = await memory.find_namespaces(request.namespaces)
        else:
            namespaces = Listed([await memory.find_namespace(context.namespace())])
        names = {namespace.name for namespace in namespaces}
        selected = dict.fromkeys(sorted(namespace.id for namespace in namespaces))
    role: Role = "admin" if request.erase else "writer"
    for name in sorted(names):
        require(context.caller, name, role, dry_run=request.dry_run)
    return selected, filters


async def _due(
    change: NamespaceTransaction, ids: Sequence[UUID], *, erase: bool
) -> tuple[list[UUID], list[UUID]]:
    """Return the memories to forget, and those that are forgotten already."""
    states = await change.states(ids)
    due = []
    forgotten = []
    for id_ in ids:
        if id_ not in states:
            continue
        if erase or states[id_].forgotten_at is None:
            due.append(id_)
        else:
            forgotten.append(id_)
    return due, forgotten
