"""Undo of changes and of undos (redo): of memories by id, or of one's own writes one by one."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, tzinfo
from typing import Any
from uuid import UUID

import click

from folklore.cli.context import call, with_operations, zone_of
from folklore.cli.daily.write import print_forgotten
from folklore.cli.ids import with_ids
from folklore.cli.options import Names, ask_option, context_and_json, namespace_option
from folklore.cli.output import (
    in_one_line,
    print_either,
    print_json,
    print_line,
    time_text,
    wants_json,
)
from folklore.cli.screen import confirm
from folklore.contract.memories import (
    ForgetRequest,
    History,
    HistoryRequest,
    Undone,
    UndoRequest,
    forgotten_json,
    record_json,
    revision_json,
)
from folklore.contract.requests import Operations
from folklore.contract.review import Event, LogRequest
from folklore.contract.undoing import Effect, changes_in_force, effects
from folklore.errors import Conflict, InvalidInput, NotFound

# Of the writes of one moment, the others follow from the first of these: a store may supersede, a forget restores.
_ORDER = ("undo", "store", "merge", "forget", "update", "retag", "supersede")
_OWN_WRITES = 200  # the latest ones, in which the change is looked for


@click.command()
@click.argument("memories", nargs=-1, metavar="[ID…]")
@namespace_option
@click.option(
    "--revision",
    type=click.IntRange(min=1),
    help="Only if the memory (one ID) is at this revision, so that a repeated command undoes nothing more.",
)
@ask_option
@context_and_json
def undo(
    ctx: click.Context, memories: tuple[str, ...], revision: int | None, **options: Any
) -> None:
    """Undo the last change of each memory: an edit, a forget, a supersede. Repeat it for the previous change.

    Without ID: your own changes one by one, the last one first, each of all memories that it concerned; stored memories
    are forgotten. On a terminal it asks first. `folklore redo` takes back an undo.
    """
    if revision is not None and len(set(memories)) != 1:
        raise InvalidInput(
            "revision",
            "belongs to one memory.",
            hint="Undo the others in another command.",
        )
    _run(ctx, memories, revision=revision, **options)


@click.command()
@click.argument("memories", nargs=-1, metavar="[ID…]")
@namespace_option
@ask_option
@context_and_json
def redo(ctx: click.Context, memories: tuple[str, ...], **options: Any) -> None:
    """Undo the last undo of each memory, so that the change is in force again. A change made since forbids it.

    Without ID: your own undos one by one, the last one first. On a terminal it asks first.
    """
    _run(ctx, memories, redo=True, **options)


def _run(
    ctx: click.Context,
    memories: tuple[str, ...],
    *,
    ask: bool,
    namespaces: Names,
    **options: Any,
) -> None:
    if not memories:
        _run_own(ctx, namespaces, redo=options.get("redo", False), ask=ask)
        return

    async def work(operations: Operations, ids: tuple[UUID, ...]) -> None:
        undos = [
            UndoRequest(id=id_, namespaces=namespaces, **options)
            for id_ in dict.fromkeys(ids)
        ]
        await _undo_all(operations, undos)

    with_ids(ctx, memories, work)


async def _undo_all(operations: Operations, undos: Sequence[UndoRequest]) -> None:
    """Undo or redo changes one by one, and print each as it is done: a later one may fail."""
    undone: list[Undone] = []
    for request in undos:
        item = await operations.call(request)
        undone.append(item)
        if not wants_json():
            _print_undone(item, redo=request.redo)
    if wants_json():
        key = "redone" if undos[0].redo else "undone"
        print_json({key: [_as_json(item) for item in undone]})


def _print_undone(undone: Undone, *, redo: bool) -> None:
    revision = undone.revision
    action = "store" if redo and revision.undoes_store else revision.action
    verb = "redone" if redo else "undone"
    print_line(f"{verb}: {action} of {undone.memory.id}, by {revision.author}")
    for id_ in undone.superseded:
        print_line(f"superseded again: {id_}")


def _as_json(undone: Undone) -> dict[str, Any]:
    value: dict[str, Any] = {
        "memory": record_json(undone.memory),
        "change": revision_json(undone.revision),
    }
    if undone.superseded:
        value["superseded"] = [str(id_) for id_ in undone.superseded]
    return value


def _run_own(ctx: click.Context, namespaces: Names, *, redo: bool, ask: bool) -> None:
    """Take back the last write of the caller that was not taken back, or the last undo. Raises NotFound, Conflict."""
    scope = {} if namespaces is None else {"namespaces": namespaces}
    request = LogRequest(mine=True, limit=_OWN_WRITES, **scope)
    find = _undone_write if redo else _write_in_force
    write = with_operations(
        ctx, lambda operations: find(_own_writes(operations, request))
    )
    forgets = write.action == "store" and not redo
    if ask:
        _ask(write, zone_of(ctx), redo=redo, forgets=forgets)

    where = (write.namespace,)
    if forgets:
        ids = tuple(memory.id for memory in write.memories)
        forget = ForgetRequest(ids=ids, undoes_store=True, namespaces=where)
        result = call(ctx, forget)
        value = forgotten_json(result, erase=False, dry_run=False)
        print_either(value, lambda: print_forgotten(result, "forgotten"))
        return
    undos = []
    for memory in write.memories:
        undos.append(
            UndoRequest(
                id=memory.id, revision=memory.revision, redo=redo, namespaces=where
            )
        )
    with_operations(ctx, lambda operations: _undo_all(operations, undos))


def _ask(write: Event, zone: tzinfo, *, redo: bool, forgets: bool) -> None:
    memories = "this memory"
    if len(write.memories) > 1:
        memories = f"these {len(write.memories):,} memories"
    if forgets:
        question = f"Forget {memories}, stored"
    elif redo:
        question = f"Redo the {write.action} of {memories}, done"
    else:
        question = f"Undo the {write.action} of {memories}, done"
    for memory in write.memories:
        click.echo(f"{memory.id}  {in_one_line(memory.content)}", err=True)
    confirm(f"{question} {time_text(write.at, zone)}?")


async def _own_writes(
    operations: Operations, request: LogRequest
) -> AsyncIterator[tuple[Event, list[History]]]:
    """Yield the caller's writes, the last one first, each with the histories of its memories that are not erased."""
    log = await operations.call(request)
    writes = [entry for entry in log if entry.action in _ORDER]
    writes.sort(key=lambda entry: (-entry.at.timestamp(), _ORDER.index(entry.action)))
    for entry in writes:
        histories = []
        for id_ in entry.ids:
            history = HistoryRequest(id=id_, namespaces=(entry.namespace,))
            with suppress(NotFound):
                histories.append(await operations.call(history))
        yield entry, histories


async def _write_in_force(writes: AsyncIterator[tuple[Event, list[History]]]) -> Event:
    """Return the last write that was not taken back, with its memories as they are now. Raises NotFound, Conflict."""
    async for entry, histories in writes:
        action = None
        current = []
        for history in histories:
            done = _in_force(history, entry)
            if done:
                action = action or done
                current.append(history.memory)
        if action:
            return replace(entry, action=action, memories=tuple(current))
    raise NotFound(
        "You changed nothing that can be undone.",
        hint="`folklore log --mine` shows what you did.",
    )


def _in_force(history: History, entry: Event) -> str | None:
    """Return what this write did to a memory, such as "update"; None if that was taken back.

    Raises Conflict if another change followed it.
    """
    memory = history.memory
    changes = changes_in_force(history.revisions)
    action = None
    if entry.action == "store":
        if memory.created_at == entry.at and memory.forgotten_at is None:
            action = "store"
    else:
        for effect in changes:
            last = effect.revision
            if last.changed_at == entry.at and not last.undoes_store:
                action = effect.cause.action
    if action is None:
        return None

    for effect in changes:
        last = effect.revision
        if last.changed_at > entry.at:
            hint = f"`folklore history {memory.id}` shows it; `folklore undo {memory.id}` undoes that first."
            raise Conflict(
                f"After your last change, {last.author} changed the memory {memory.id}.",
                hint=hint,
            )
    return action


async def _undone_write(writes: AsyncIterator[tuple[Event, list[History]]]) -> Event:
    """Return what the last undo took back, unless another change of the caller followed it. Raises NotFound."""
    write: Event | None = None
    async for entry, history, effect in _undos(writes):
        if effect.change is None:
            action = "store"
            at = history.memory.created_at
        else:
            action = effect.change.action
            at = effect.change.changed_at
        if action not in _ORDER:
            continue
        if write is not None and at != write.at:
            break
        if write is None or _ORDER.index(action) < _ORDER.index(write.action):
            write = replace(entry, at=at, action=action, memories=(history.memory,))
        elif action == write.action:
            write = replace(write, memories=(*write.memories, history.memory))
    if write is None:
        hint = "A change after an undo ends what can be redone."
        raise NotFound("There is no undo of yours that could be redone.", hint=hint)
    return write


async def _undos(
    writes: AsyncIterator[tuple[Event, list[History]]],
) -> AsyncIterator[tuple[Event, History, Effect]]:
    """Yield the undos in force among the caller's writes, by memory, until another change of the caller."""
    redone_at: datetime | None = None
    async for entry, histories in writes:
        for history in histories:
            written = [
                revision
                for revision in history.revisions
                if revision.changed_at == entry.at
            ]
            if not written and history.memory.created_at != entry.at:
                continue
            if not written or written[0].undoes is None:
                if entry.at == redone_at:
                    continue  # what taking back an undo superseded or restored belongs to it
                return  # a store, or a change

            for effect in effects(history.revisions):
                if effect.revision != written[0]:
                    continue
                if effect.undone:
                    yield entry, history, effect
                else:
                    redone_at = entry.at  # a redo
