"""`folklore recall` and `folklore search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from folklore.cli.context import with_app
from folklore.cli.options import (
    Given,
    filter_options,
    filters_from,
    format_option,
    json_option,
    namespaces_option,
    ranking_from,
    ranking_options,
    sort_option,
)
from folklore.cli.output import print_answer, print_explanation
from folklore.memory.present import Format
from folklore.model import Sort

if TYPE_CHECKING:
    from folklore.app import App, Running


@click.command()
@click.argument("query", nargs=-1, required=True)
@namespaces_option
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@filter_options
@ranking_options
@sort_option
@format_option
@click.option("--max-tokens", type=click.IntRange(50, 100_000), help="Keep the answer within so many tokens.")
@click.option("--cursor", help="Go on where an answer ended; repeat its other options.")
@click.option("--explain", is_flag=True, help="Show every term of every score, and what each branch did.")
@json_option
@click.pass_context
def recall(
    ctx: click.Context,
    query: tuple[str, ...],
    namespaces: tuple[str, ...],
    limit: int,
    filters: Given,
    ranking: Given,
    sort: Sort,
    form: Format,
    max_tokens: int | None,
    cursor: str | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Find what is known about QUERY, a question or topic in plain words; * lists what is new, in use or important."""
    numbers = ranking_from(ranking)

    async def work(app: App, running: Running) -> None:
        from folklore.memory.recall import RecallRequest, recall

        request = RecallRequest(
            query=" ".join(query),
            namespaces=namespaces,
            limit=limit,
            filters=filters_from(app, filters),
            ranking=numbers,
            sort=sort,
            max_tokens=max_tokens,
            cursor=cursor,
            explain=explain,
        )
        answer = await recall(running.library, request, now=app.now())
        app.traces.answered(answer, request.query, caller=app.caller, now=app.now())
        print_answer(answer, form, as_json=as_json, zone=app.zone)
        if explain and not as_json:
            print_explanation(answer)

    with_app(ctx, work)


@click.command()
@click.argument("query", nargs=-1, required=True)
@namespaces_option
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@filter_options
@format_option
@click.option("--cursor", help="Go on where an answer ended; repeat its other options.")
@json_option
@click.pass_context
def search(
    ctx: click.Context,
    query: tuple[str, ...],
    namespaces: tuple[str, ...],
    limit: int,
    filters: Given,
    form: Format,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Find memories by exact words: error codes, identifiers, paths, names. Rare words count most."""

    async def work(app: App, running: Running) -> None:
        from folklore.memory.keywords import search

        answer = await search(
            running.library,
            " ".join(query),
            namespaces=namespaces,
            limit=limit,
            filters=filters_from(app, filters),
            cursor=cursor,
            now=app.now(),
        )
        app.traces.answered(answer, " ".join(query), caller=app.caller, now=app.now())
        print_answer(answer, form, as_json=as_json, zone=app.zone)

    with_app(ctx, work)
