"""Undo and redo: of changes of memories by id, or of one's own writes one by one."""

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
from folklore.errors import Conflict, InvalidInput, NotFound
from folklore.model import Revision

# Of one moment, the write that the others follow from: a store may supersede, a forget restores.
_ORDER = ("store", "merge", "forget", "update", "retag", "supersede", "undo")
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
    """Repeat the change that the last undo of each memory took back. A change made since forbids it.

    Without ID: what your own undos took back, one by one, the last one first. On a terminal it asks first.
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
        print_json(
            {
                "redone" if undos[0].redo else "undone": [
                    _as_json(item) for item in undone
                ]
            }
        )


def _print_undone(item: Undone, *, redo: bool) -> None:
    action = "store" if redo and item.revision.undoes == 0 else item.revision.action
    print_line(
        f"{'redone' if redo else 'undone'}: {action} of {item.memory.id}, by {item.revision.author}"
    )
    for old in item.superseded:
        print_line(f"superseded again: {old}")


def _as_json(item: Undone) -> dict[str, Any]:
    value: dict[str, Any] = {
        "memory": record_json(item.memory),
        "change": revision_json(item.revision),
    }
    return value | (
        {"superseded": [str(old) for old in item.superseded]} if item.superseded else {}
    )


def _run_own(ctx: click.Context, namespaces: Names, *, redo: bool, ask: bool) -> None:
    """Take back the last write of the caller that was not taken back, or the last undo. Raises NotFound, Conflict."""
    names = {} if namespaces is None else {"namespaces": namespaces}
    find = _undone_write if redo else _write_in_force
    write = with_operations(
        ctx, lambda operations: find(_own_writes(operations, names))
    )
    forgets = write.action == "store" and not redo
    if ask:
        _ask(write, "Redo" if redo else "Undo", zone_of(ctx), forgets=forgets)
    only: dict[str, Any] = {"namespaces": (write.namespace,)}
    if forgets:
        ids = tuple(memory.id for memory in write.memories)
        result = call(ctx, ForgetRequest(ids=ids, undoes_store=True, **only))
        value = forgotten_json(result, erase=False, dry_run=False)
        print_either(value, lambda: print_forgotten(result, "forgotten"))
        return
    undos = [
        UndoRequest(id=item.id, revision=item.revision, redo=redo, **only)
        for item in write.memories
    ]
    with_operations(ctx, lambda operations: _undo_all(operations, undos))


def _ask(write: Event, verb: str, zone: tzinfo, *, forgets: bool) -> None:
    if len(write.memories) == 1:
        noun = "this memory"
    else:
        noun = f"these {len(write.memories):,} memories"
    if forgets:
        question = f"Forget {noun}, stored"
    else:
        question = f"{verb} the {write.action} of {noun}, done"
    for memory in write.memories:
        click.echo(f"{memory.id}  {in_one_line(memory.content)}", err=True)
    confirm(f"{question} {time_text(write.at, zone)}?")


async def _own_writes(
    operations: Operations, names: dict[str, Any]
) -> AsyncIterator[tuple[Event, list[History]]]:
    """Yield the caller's writes, the last one first, each with the histories of its memories that are not erased."""
    log = await operations.call(LogRequest(mine=True, limit=_OWN_WRITES, **names))
    entries = [entry for entry in log if entry.action in _ORDER]
    for entry in sorted(
        entries, key=lambda entry: (-entry.at.timestamp(), _ORDER.index(entry.action))
    ):
        histories = []
        for id_ in entry.ids:
            with suppress(NotFound):
                request = HistoryRequest(id=id_, namespaces=(entry.namespace,))
                histories.append(await operations.call(request))
        yield entry, histories


async def _write_in_force(writes: AsyncIterator[tuple[Event, list[History]]]) -> Event:
    """Return the last write that was not taken back, with its memories as they are now. Raises NotFound, Conflict."""
    async for entry, histories in writes:
        if current := tuple(
            item.memory for item in histories if _in_force(item, entry)
        ):
            return replace(entry, memories=current)
    raise NotFound(
        "You changed nothing that can be undone.",
        hint="`folklore log --mine` shows what you did.",
    )


def _in_force(history: History, entry: Event) -> bool:
    """Return True if this write of a memory was not taken back. Raises Conflict if another change followed it."""
    memory = history.memory
    changes = _lasting_changes(history)
    if entry.action == "store":
        lasts = memory.created_at == entry.at and memory.forgotten_at is None
    else:
        lasts = any(
            item.changed_at == entry.at and item.undoes != 0 for item in changes
        )
    following = next((item for item in changes if item.changed_at > entry.at), None)
    if lasts and following is not None:
        hint = f"`folklore history {memory.id}` shows it; `folklore undo {memory.id}` undoes that first."
        raise Conflict(
            f"After your last change, {following.author} changed the memory {memory.id}.",
            hint=hint,
        )
    return lasts


def _lasting_changes(history: History) -> list[Revision]:
    """Return the changes that were not taken back, without undos and moves."""
    undone = {item.undoes for item in history.revisions if item.action == "undo"}
    return [
        item
        for item in history.revisions
        if item.action not in ("undo", "move") and item.revision not in undone
    ]


async def _undone_write(writes: AsyncIterator[tuple[Event, list[History]]]) -> Event:
    """Return what the last undo took back, unless another change of the caller followed it. Raises NotFound."""
    write: Event | None = None
    async for entry, history, change in _undos(writes):
        action, at = _taken_back(history, change)
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
) -> AsyncIterator[tuple[Event, History, Revision]]:
    """Yield the undos among the caller's writes, by memory, until another change of the caller."""
    redone_at: datetime | None = None
    async for entry, histories in writes:
        for history in histories:
            # A store changed no former memory.
            change = next(
                (item for item in history.revisions if item.changed_at == entry.at),
                None,
            )
            if entry.at == redone_at or (
                change is None and history.memory.created_at != entry.at
            ):
                continue
            if change is None or change.undoes is None:
                return
            if change.action == "undo" or not change.undoes:
                yield entry, history, change
            else:
                redone_at = entry.at  # what a redo superseded or restored belongs to it


def _taken_back(history: History, change: Revision) -> tuple[str, datetime]:
    """Return the action and the time of the write that an undo took back; no action if that was redone."""
    original = next(
        (item for item in history.revisions if item.revision == change.undoes), None
    )
    if any(item.undoes == change.revision for item in history.revisions) or (
        original and original.undoes == 0
    ):
        return "", change.changed_at
    if original is None:
        return ("store", history.memory.created_at)
    return (original.action, original.changed_at)
