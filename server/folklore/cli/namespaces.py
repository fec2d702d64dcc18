"""`folklore namespaces` and `folklore stats`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from folklore.cli.context import with_app
from folklore.cli.options import json_option, namespaces_option
from folklore.cli.output import print_json, print_table, say
from folklore.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from folklore.app import App, Running

_COUNTS = ("memories", "forgotten", "superseded", "without_vector", "sessions", "characters")


@click.group()
def namespaces() -> None:
    """The shared notebooks that memories hang on."""


@namespaces.command("list")
@json_option
@click.pass_context
def list_(ctx: click.Context, as_json: bool) -> None:
    """List the namespaces; counts end at 50,000 (`folklore stats` counts to the end)."""

    async def work(app: App, running: Running) -> None:
        found = await running.library.namespaces.all()
        rows = [
            {
                "name": item.name,
                "memories": item.memories or 0,
                "language": item.language,
                "created_at": _day(item.created_at, app),
                "description": item.description,
            }
            for item in found
        ]
        if as_json:
            print_json({"namespaces": [_set(row) for row in rows]})
        elif rows:
            print_table([*rows[0]], [[value if value is not None else "" for value in row.values()] for row in rows])
        else:
            say("Nothing has been stored yet.")

    with_app(ctx, work)


@click.command()
@namespaces_option
@json_option
@click.pass_context
def stats(ctx: click.Context, namespaces: tuple[str, ...], as_json: bool) -> None:
    """Count what is stored, exactly; reads every memory of the namespaces."""

    async def work(app: App, running: Running) -> None:
        library = running.library
        model = None
        if library.embedder is not None:
            with suppress(EmbedderUnavailable):  # then it is not known which memories owe a vector
                model = await library.embedder.model()
        counts = _COUNTS if model is not None else tuple(count for count in _COUNTS if count != "without_vector")
        notebooks = await library.notebooks(namespaces)
        found = await library.namespaces.stats(
            [notebook.id for notebook in notebooks], None if model is None else model.id
        )
        rows = [
            {"name": item.name}
            | {count: getattr(item, count) for count in counts}
            | {"oldest": _day(item.oldest, app), "newest": _day(item.newest, app)}
            for item in found
        ]
        total = {count: sum(getattr(item, count) for item in found) for count in counts}
        if as_json:
            named = None if model is None else f"{model.provider}/{model.name}/{model.dimensions}"
            value = {"namespaces": [_set(row) for row in rows], "total": total, "model": named, "engine": running.where}
            print_json(_set(value))
        else:
            last = [["all", *total.values(), "", ""]] if len(rows) > 1 else []
            lines = [[value if value is not None else "" for value in row.values()] for row in rows]
            print_table(["name", *counts, "oldest", "newest"], lines + last)

    with_app(ctx, work)


def _day(moment: datetime | None, app: App) -> str | None:
    return None if moment is None else moment.astimezone(app.zone).isoformat(timespec="seconds")


def _set(row: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in row.items() if value is not None}
