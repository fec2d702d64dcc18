"""`folklore namespaces` and `folklore stats`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from folklore.cli.context import with_desk
from folklore.cli.options import json_option, namespaces_option
from folklore.cli.output import print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from folklore.memory.namespaces import Erased
    from folklore.memory.service import Service

_COUNTS = ("memories", "forgotten", "superseded", "without_vector", "sessions", "characters")


@click.group()
def namespaces() -> None:
    """The shared notebooks that memories hang on."""


@namespaces.command("list")
@click.option("--deleted", is_flag=True, help="Those that were deleted and can still be restored.")
@json_option
@click.pass_context
def list_(ctx: click.Context, deleted: bool, as_json: bool) -> None:
    """List the namespaces; counts end at 50,000 (`folklore stats` counts to the end)."""

    async def work(desk: Service) -> None:
        found = await desk.namespaces(deleted)
        rows = [
            {
                "name": item.name,
                "memories": item.memories or 0,
                "language": item.language,
                "created_at": _day(item.created_at, desk),
                "description": item.description,
            }
            | ({"deleted_at": _day(item.deleted_at, desk), "deleted_by": item.deleted_by} if deleted else {})
            for item in found
        ]
        if as_json:
            print_json({"namespaces": [_set(row) for row in rows]})
        elif rows:
            print_table([*rows[0]], [[value if value is not None else "" for value in row.values()] for row in rows])
        else:
            say("None was deleted." if deleted else "Nothing has been stored yet.")

    with_desk(ctx, work)


@namespaces.command()
@click.argument("name")
@click.option("--language", help="What its texts are in, unless one says otherwise. Default: english.")
@click.option("--description", help="What it is for.")
@click.pass_context
def create(ctx: click.Context, name: str, language: str | None, description: str | None) -> None:
    """Make an empty namespace; storing makes one too."""

    async def work(desk: Service) -> None:
        made = await desk.create_namespace(name, language, description)
        say(f"created {made}")

    with_desk(ctx, work)


@namespaces.command()
@click.argument("name")
@click.argument("to")
@click.pass_context
def rename(ctx: click.Context, name: str, to: str) -> None:
    """Call the namespace NAME from now on TO; what is in it stays."""

    async def work(desk: Service) -> None:
        say(f"renamed to {await desk.rename_namespace(name, to)}")

    with_desk(ctx, work)


@namespaces.command()
@click.argument("name")
@click.argument("description", required=False)
@click.pass_context
def describe(ctx: click.Context, name: str, description: str | None) -> None:
    """Say what a namespace is for; without DESCRIPTION, say nothing any more."""

    async def work(desk: Service) -> None:
        await desk.describe_namespace(name, description)
        say(f"described {name}")

    with_desk(ctx, work)


@namespaces.command()
@click.argument("name")
@click.option("--erase", is_flag=True, help="For good, with all that is in it; nothing brings it back.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(ctx: click.Context, name: str, erase: bool, yes: bool) -> None:
    """Delete a namespace with all that is in it: hidden at once, and for a while `restore` brings it back.

    --erase takes the namespace that is in use; if there is none, those of this name that were deleted before.
    """

    async def hide(desk: Service) -> None:
        gone, kept = await desk.delete_namespace(name)
        say(f"deleted {gone}; for {kept.days} days `folklore namespaces restore {gone}` brings it back")

    async def remove(desk: Service) -> None:
        erased = await desk.erase_namespace(name, if_ids=shown)
        say(f"erased {_told(erased)}")
        if erased.left:
            say(f"{erased.left:,} of that name, deleted before, stayed: `folklore namespaces list --deleted`")

    shown = None  # what goes by this name may be another by the time of the answer
    if not yes and sys.stdin.isatty():
        what, how = name, "with all that is in it"
        if erase:
            would = with_desk(ctx, lambda desk: desk.erase_namespace(name, dry_run=True))
            what, how, shown = _told(would), "for good", would.ids
        click.confirm(f"{what} will be gone {how}. Go on?", abort=True, err=True)
    with_desk(ctx, remove if erase else hide)


@namespaces.command()
@click.argument("name")
@click.pass_context
def restore(ctx: click.Context, name: str) -> None:
    """Bring back the namespace of this name that was deleted last."""

    async def work(desk: Service) -> None:
        say(f"restored {await desk.restore_namespace(name)}")

    with_desk(ctx, work)


@click.command()
@namespaces_option
@json_option
@click.pass_context
def stats(ctx: click.Context, namespaces: tuple[str, ...], as_json: bool) -> None:
    """Count what is stored, exactly; reads every memory of the namespaces."""

    async def work(desk: Service) -> None:
        held = await desk.stats(namespaces)
        counts = _COUNTS if held.model is not None else tuple(count for count in _COUNTS if count != "without_vector")
        found = held.namespaces
        rows = [
            {"name": item.name}
            | {count: getattr(item, count) for count in counts}
            | {"oldest": _day(item.oldest, desk), "newest": _day(item.newest, desk)}
            for item in found
        ]
        total = {count: sum(getattr(item, count) for item in found) for count in counts}
        if as_json:
            shown = [_set(row) for row in rows]
            value = {"namespaces": shown, "total": total, "model": held.model, "engine": held.engine}
            print_json(_set(value))
        else:
            last = [["all", *total.values(), "", ""]] if len(rows) > 1 else []
            lines = [[value if value is not None else "" for value in row.values()] for row in rows]
            print_table(["name", *counts, "oldest", "newest"], lines + last)

    with_desk(ctx, work)


def _told(erased: Erased) -> str:
    many = f" ({erased.namespaces:,} deleted namespaces)" if erased.namespaces > 1 else ""
    return f"{erased.name}{many} with {erased.memories:,} {'memory' if erased.memories == 1 else 'memories'}"


def _day(moment: datetime | None, desk: Service) -> str | None:
    return None if moment is None else moment.astimezone(desk.zone).isoformat(timespec="seconds")


def _set(row: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if value is not None}
