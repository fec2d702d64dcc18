"""`folklore list` and `folklore show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from folklore.cli.context import with_desk
from folklore.cli.options import (
    Given,
    filter_options,
    filters_from,
    format_option,
    id_of,
    json_option,
    namespaces_option,
)
from folklore.cli.output import print_answer, print_detail, print_json, say
from folklore.memory import serializers as present
from folklore.memory.serializers import Format
from folklore.model import Sort

if TYPE_CHECKING:
    from folklore.memory.service import Service


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

    async def work(desk: Service) -> None:
        answer = await desk.listing(namespaces, filters_from(filters), limit, sort, cursor)
        print_answer(answer, form, as_json=as_json, zone=desk.zone)

    with_desk(ctx, work)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@json_option
@click.pass_context
def show(ctx: click.Context, ids: tuple[str, ...], as_json: bool) -> None:
    """Show memories whole, by id: every field, relations, how often each was changed; forgotten ones too."""
    wanted = tuple(id_of(text) for text in dict.fromkeys(ids))

    async def work(desk: Service) -> None:
        from folklore.memory.locate import unknown

        whole = await desk.show(wanted)
        if whole.missing and as_json:
            raise unknown(whole.missing)
        if as_json:
            print_json({"memories": [present.detail(item) for item in whole.found]})
            return
        for item in whole.found:
            say(f"{item.memory.namespace} {item.memory.id}", bold=True)
            print_detail(item, desk.zone)
            say()
        if whole.missing:
            raise unknown(whole.missing)

    with_desk(ctx, work)
