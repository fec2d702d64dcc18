"""`folklore list` and `folklore show`."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import click

from folklore.cli.context import with_app
from folklore.cli.options import Given, filter_options, filters_from, format_option, json_option, namespaces_option
from folklore.cli.output import print_answer, print_json, print_memory, say
from folklore.errors import InvalidInput, NotFound
from folklore.memory import present
from folklore.memory.present import Format
from folklore.model import Sort

if TYPE_CHECKING:
    from folklore.app import App, Running


@click.command("list")
@namespaces_option
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@filter_options
@click.option(
    "--sort",
    type=click.Choice(["time_desc", "time_asc", "updated_desc", "updated_asc"]),
    default="time_desc",
    show_default=True,
)
@format_option
@click.option("--cursor", help="Go on where a list ended; repeat its other options.")
@json_option
@click.pass_context
def list_(
    ctx: click.Context,
    namespaces: tuple[str, ...],
    limit: int,
    filters: Given,
    sort: Sort,
    form: Format,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List memories in order of time, newest first."""

    async def work(app: App, running: Running) -> None:
        from folklore.memory.listing import list_memories

        answer = await list_memories(
            running.library,
            await running.library.notebooks(namespaces),
            filters_from(app, filters),
            limit=limit,
            now=app.now(),
            sort=sort,
            cursor=cursor,
        )
        print_answer(answer, form, as_json=as_json, zone=app.zone)

    with_app(ctx, work)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@json_option
@click.pass_context
def show(ctx: click.Context, ids: tuple[str, ...], as_json: bool) -> None:
    """Show memories whole, by id."""
    wanted = [_id(text) for text in dict.fromkeys(ids)]

    async def work(app: App, running: Running) -> None:
        notebooks = await running.library.notebooks([])
        found = await running.library.memories.get([notebook.id for notebook in notebooks], wanted)
        missing = [str(id_) for id_ in wanted if id_ not in {memory.id for memory in found}]
        if missing and (as_json or not found):
            raise _unknown(missing)
        if as_json:
            print_json({"memories": [present.record(memory) for memory in found]})
            return
        for memory in found:
            say(f"{memory.namespace} {memory.id}", bold=True)
            print_memory(memory, app.zone)
            say()
        if missing:
            raise _unknown(missing)

    with_app(ctx, work)


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput("ID", f"{text[:60]!r} is not one.", hint="`folklore list --format ids` shows ids.") from None


def _unknown(ids: list[str]) -> NotFound:
    return NotFound(f"There is no memory {', '.join(ids)}.", hint="`folklore list --format ids` shows ids.")
