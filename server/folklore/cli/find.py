"""`folklore recall` and `folklore search`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from folklore.cli.context import with_desk
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
from folklore.memory.serializers import Format
from folklore.model import Sort

if TYPE_CHECKING:
    from folklore.memory.service import Service


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
    """Find what is known about QUERY, a question or topic in plain words; '*' lists what is new, in use or important.

    Quote it: the shell takes "…" off a phrase and expands *. What begins with a dash stands behind --.
    """

    async def work(desk: Service) -> None:
        from folklore.memory.requests import Question

        question = Question(
            query=" ".join(query),
            namespaces=namespaces,
            limit=limit,
            filters=filters_from(filters),
            ranking=ranking_from(ranking),
            sort=sort,
            max_tokens=max_tokens,
            cursor=cursor,
            explain=explain,
        )
        answer = await desk.recall(question)
        print_answer(answer, form, as_json=as_json, zone=desk.zone)
        if explain and not as_json:
            print_explanation(answer)

    with_desk(ctx, work)


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
    """Find memories by exact words: error codes, identifiers, paths, names. Rare words count most.

    QUERY may hold "phrases", AND, OR, NOT, -word, prefix*, tag:word, source:word, summary:word. Put it into single
    quotes, since the shell takes "…" off a phrase: folklore search '"connection pool" -redis'.
    """

    async def work(desk: Service) -> None:
        answer = await desk.search(" ".join(query), namespaces, limit, filters_from(filters), cursor)
        print_answer(answer, form, as_json=as_json, zone=desk.zone)

    with_desk(ctx, work)
