"""`folklore history`, `forget`, `undo` and `relate`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from folklore.cli.context import with_desk
from folklore.cli.options import (
    Given,
    filter_options,
    filters_from,
    id_of,
    json_option,
    namespace_option,
    scope_of,
)
from folklore.cli.output import paint, print_json, print_revision, say
from folklore.errors import InvalidInput, error_from_code
from folklore.memory import serializers as present
from folklore.model import Relation

if TYPE_CHECKING:
    from uuid import UUID

    from folklore.memory.records.forget import Forgotten
    from folklore.memory.service import Service


@click.command()
@click.argument("memory", metavar="ID")
@namespace_option
@json_option
@click.pass_context
def history(ctx: click.Context, memory: str, namespace: str | None, as_json: bool) -> None:
    """Show what was changed about a memory, by whom, and what it said before; the last change first."""
    id_ = id_of(memory)

    async def work(desk: Service) -> None:
        now, revisions = await desk.history(id_, scope_of(namespace))
        if as_json:
            print_json({"memory": present.record(now), "revisions": [present.revision(item) for item in revisions]})
            return
        say(f"{now.namespace} {now.id}, revision {now.revision}", bold=True)
        for item in revisions:
            print_revision(item, desk.zone)
        say(f"stored {now.created_at.astimezone(desk.zone):%Y-%m-%d %H:%M} by {now.author}", dim=True)

    with_desk(ctx, work)


@click.command()
@click.argument("memories", nargs=-1, metavar="[ID…]")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Only this one; repeatable. Default: the project's, but for an ID wherever it is.",
)
@filter_options
@click.option("--erase", is_flag=True, help="Delete for good, with every trace; nothing brings it back.")
@click.option("--dry-run", is_flag=True, help="Only show what would be forgotten.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_context
def forget(
    ctx: click.Context,
    memories: tuple[str, ...],
    namespaces: tuple[str, ...],
    filters: Given,
    erase: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Forget memories by ID, or all that the filters let through (of the project's namespace unless -n names others).

    `folklore undo` brings them back for a while (retention_days), unless --erase. On a terminal it asks first.
    """
    ids = tuple(id_of(text) for text in memories)

    async def work(desk: Service, *, dry: bool, shown: tuple[UUID, ...] | None = None) -> Forgotten:
        scope = namespaces or (() if ids else (await desk.home(),))
        return await desk.forget(ids, filters_from(filters), scope, erase, dry, shown)

    if not dry_run and not yes and sys.stdin.isatty():
        would = with_desk(ctx, lambda desk: work(desk, dry=True))
        if not as_json:
            _show(would, "would be")
        click.confirm("Erase these for good?" if erase else "Forget these?", abort=True, err=True)
        # The filters may let more through by now.
        shown = None if ids else tuple(memory.id for memory in would.memories)
        done = with_desk(ctx, lambda desk: work(desk, dry=False, shown=shown))
        done = replace(done, more=would.more)
    else:
        done = with_desk(ctx, lambda desk: work(desk, dry=dry_run))
    if as_json:
        print_json(present.forgotten(done, erase=erase, dry_run=dry_run))
    else:
        _show(done, "would be" if dry_run else "erased" if erase else "forgotten")


def _show(outcome: Forgotten, how: str) -> None:
    for memory in outcome.memories:
        text = "" if how == "erased" else "  " + present.beginning(memory.content).replace("\n", " ")
        say(f"{memory.id}{paint(text, dim=True)}")
    what = "would be forgotten" if how == "would be" else how
    say(f"{len(outcome.memories):,} {what}" + (", more match: run it again" if outcome.more else ""))
    if outcome.already:
        say(f"{len(outcome.already):,} were forgotten before")


@click.command()
@click.argument("memories", nargs=-1, required=True, metavar="ID…")
@namespace_option
@click.option(
    "--revision",
    type=click.IntRange(min=1),
    help="Only if the memory is at this one (of a single ID): then the same command again takes nothing more back.",
)
@json_option
@click.pass_context
def undo(
    ctx: click.Context, memories: tuple[str, ...], namespace: str | None, revision: int | None, as_json: bool
) -> None:
    """Take back the last change of each memory: an edit, a forgetting, a superseding. Again, for the one before."""
    ids = [id_of(text) for text in dict.fromkeys(memories)]
    if revision is not None and len(ids) > 1:
        raise InvalidInput("revision", "is that of one memory.", hint="Undo the others apart.")

    async def work(desk: Service) -> None:
        undone = []
        for id_ in ids:
            now, change = await desk.undo(id_, scope_of(namespace), revision)
            undone.append((now, change))
            if not as_json:
                say(f"undone: {change.action} of {id_}, by {change.author}")
        if as_json:
            print_json(
                {
                    "undone": [
                        {"memory": present.record(now), "change": present.revision(change)} for now, change in undone
                    ]
                }
            )

    with_desk(ctx, work)


@click.command()
@click.argument("from_", metavar="FROM")
@click.argument("type_", metavar="TYPE")
@click.argument("to", metavar="TO")
@click.option("--strength", type=click.FloatRange(0, 1), default=1.0, show_default=True)
@click.option("--remove", is_flag=True, help="Take the relation away.")
@click.option("-n", "--namespace", metavar="NAME", help="Where they are, if that is in doubt.")
@json_option
@click.pass_context
def relate(
    ctx: click.Context,
    from_: str,
    type_: str,
    to: str,
    strength: float,
    remove: bool,
    namespace: str | None,
    as_json: bool,
) -> None:
    """Say what one memory has to do with another: relates_to, contradicts, derived_from, part_of, depends_on, causes,
    exemplifies, prefers_over, precedes, supersedes, or a word of your own.
    """
    wanted = Relation(id_of(from_), type_, id_of(to), strength)

    async def work(desk: Service) -> None:
        from folklore.memory.records.relate import Wish

        outcome = await desk.relate((Wish(wanted, remove),), scope_of(namespace))
        if outcome.failed:
            first = outcome.failed[0]
            raise error_from_code(first.code, f"Not {'removed' if remove else 'related'}: {first.reason}")
        if as_json:
            print_json(present.related(outcome))
        else:
            done = "created" if outcome.created else "updated" if outcome.updated else "removed"
            say(f"{done}: {from_} {type_} {to}")

    with_desk(ctx, work)
