"""`folklore namespaces` and `folklore stats`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime, tzinfo

import click

from folklore.cli.context import call, zone_of
from folklore.cli.options import json_option, namespaces_option
from folklore.cli.output import print_json, print_table, say
from folklore.memory.requests import (
    CreateNamespaceRequest,
    DeleteNamespaceRequest,
    DescribeNamespaceRequest,
    EraseNamespaceRequest,
    ListNamespacesRequest,
    RenameNamespaceRequest,
    RestoreNamespaceRequest,
    StatsRequest,
)
from folklore.memory.results import ErasedNamespaces

_COUNTS = ("memories", "forgotten", "superseded", "without_vector", "sessions", "characters")


@click.group()
def namespaces() -> None:
    """Manage namespaces, the shared sets of memories."""


@namespaces.command("list")
@click.option("--deleted", is_flag=True, help="Deleted namespaces that can still be restored.")
@json_option
@click.pass_context
def list_(ctx: click.Context, deleted: bool, as_json: bool) -> None:
    """List the namespaces; counts stop at 50,000 (`folklore stats` counts exactly)."""
    found, zone = call(ctx, ListNamespacesRequest(deleted=deleted)), zone_of(ctx)
    rows = [
        {
            "name": item.name,
            "memories": item.memories or 0,
            "language": item.language,
            "created_at": _local(item.created_at, zone),
            "description": item.description,
        }
        | ({"deleted_at": _local(item.deleted_at, zone), "deleted_by": item.deleted_by} if deleted else {})
        for item in found
    ]
    if as_json:
        print_json({"namespaces": [_set(row) for row in rows]})
    elif rows:
        print_table([*rows[0]], [[value if value is not None else "" for value in row.values()] for row in rows])
    else:
        say("No namespace was deleted." if deleted else "Nothing has been stored yet.")


@namespaces.command()
@click.argument("name")
@click.option("--language", help="The language of its texts, unless a memory states another. Default: english.")
@click.option("--description", help="What it is for.")
@click.pass_context
def create(ctx: click.Context, name: str, language: str | None, description: str | None) -> None:
    """Create an empty namespace; storing into a new name creates one too."""
    created = call(ctx, CreateNamespaceRequest(name=name, language=language, description=description))
    say(f"created {created}")


@namespaces.command()
@click.argument("name")
@click.argument("to")
@click.pass_context
def rename(ctx: click.Context, name: str, to: str) -> None:
    """Rename the namespace NAME to TO; its memories stay."""
    say(f"renamed to {call(ctx, RenameNamespaceRequest(name=name, to=to))}")


@namespaces.command()
@click.argument("name")
@click.argument("description", required=False)
@click.pass_context
def describe(ctx: click.Context, name: str, description: str | None) -> None:
    """Set the description of a namespace; without DESCRIPTION, remove it."""
    call(ctx, DescribeNamespaceRequest(name=name, description=description))
    say(f"described {name}")


@namespaces.command()
@click.argument("name")
@click.option("--erase", is_flag=True, help="Permanently, with all its memories; it cannot be undone.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def delete(ctx: click.Context, name: str, erase: bool, yes: bool) -> None:
    """Delete a namespace with all its memories: hidden at once, and `restore` brings it back for a while.

    --erase takes the namespace in use; if there is none, the deleted ones of this name.
    """
    ask = not yes and sys.stdin.isatty()
    if erase:
        _erase(ctx, name, ask=ask)
        return
    if ask:
        click.confirm(f"{name} and all its memories will be deleted. Continue?", abort=True, err=True)
    deleted = call(ctx, DeleteNamespaceRequest(name=name))
    days = deleted.restorable_for.days
    say(f"deleted {deleted.name}; for {days} days `folklore namespaces restore {deleted.name}` restores it")


def _erase(ctx: click.Context, name: str, *, ask: bool) -> None:
    only = None  # another namespace may have the name when the question is answered
    if ask:
        preview = call(ctx, EraseNamespaceRequest(name=name, dry_run=True))
        click.confirm(f"Erase {_summary(preview)} permanently?", abort=True, err=True)
        only = preview.ids
    erased = call(ctx, EraseNamespaceRequest(name=name, only=only))
    say(f"erased {_summary(erased)}")
    if erased.remaining:
        say(f"{erased.remaining:,} of that name were deleted before: `folklore namespaces list --deleted`")


@namespaces.command()
@click.argument("name")
@click.pass_context
def restore(ctx: click.Context, name: str) -> None:
    """Restore the namespace of this name that was deleted last."""
    say(f"restored {call(ctx, RestoreNamespaceRequest(name=name))}")


@click.command()
@namespaces_option
@json_option
@click.pass_context
def stats(ctx: click.Context, namespaces: tuple[str, ...], as_json: bool) -> None:
    """Count what is stored, exactly; reads every memory of the namespaces."""
    held, zone = call(ctx, StatsRequest(namespaces=namespaces)), zone_of(ctx)
    counts = _COUNTS if held.model is not None else tuple(count for count in _COUNTS if count != "without_vector")
    rows = [
        {"name": item.name}
        | {count: getattr(item, count) for count in counts}
        | {"oldest": _local(item.oldest, zone), "newest": _local(item.newest, zone)}
        for item in held.namespaces
    ]
    total = {count: sum(getattr(item, count) for item in held.namespaces) for count in counts}
    if as_json:
        shown = [_set(row) for row in rows]
        print_json(_set({"namespaces": shown, "total": total, "model": held.model, "engine": held.engine}))
    else:
        last = [["all", *total.values(), "", ""]] if len(rows) > 1 else []
        lines = [[value if value is not None else "" for value in row.values()] for row in rows]
        print_table(["name", *counts, "oldest", "newest"], lines + last)


def _summary(erased: ErasedNamespaces) -> str:
    several = f" ({len(erased.ids):,} deleted namespaces)" if len(erased.ids) > 1 else ""
    return f"{erased.name}{several} with {erased.memories:,} {'memory' if erased.memories == 1 else 'memories'}"


def _local(moment: datetime | None, zone: tzinfo) -> str | None:
    return None if moment is None else moment.astimezone(zone).isoformat(timespec="seconds")


def _set(row: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if value is not None}
