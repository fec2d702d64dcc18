"""Commands that read: recall, search, list, show, history."""

from datetime import tzinfo
from typing import Any, get_args

import click

from folklore.cli import options as opt, output
from folklore.cli.context import call, zone_of
from folklore.cli.ids import call_with_ids, keep_list
from folklore.cli.screen import paged, print_line
from folklore.contract.compact import Format
from folklore.contract.memories import (
    GetRequest,
    History,
    HistoryRequest,
    ListRequest,
    ListSort,
    details_json,
    record_json,
    revision_json,
)
from folklore.contract.recall import RecallRequest, SearchRequest, token_budget
from folklore.contract.requests import Returns
from folklore.errors import NotFound
from folklore.model import Answer, Sort


@click.command(cls=opt.TextCommand)
@click.argument("query", nargs=-1, required=True)
@opt.repeatable("--also", "also", "QUERY", "Another question for the same answer")
@opt.project_first_option
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@opt.filter_options
@opt.ranking_options
@opt.one_of("--sort", get_args(Sort), "score")
@opt.format_option
@opt.max_tokens_option
@click.option("--cursor", help="Continue an answer; repeat its other options.")
@click.option(
    "--explain",
    is_flag=True,
    help="Show the terms of every score, and what each branch did.",
)
@opt.context_and_json
def recall(
    ctx: click.Context,
    /,
    filters: opt.Values,
    ranking: opt.Values,
    form: Format,
    **options: Any,
) -> None:
    """Find memories that answer QUERY, a question or topic in plain words; '*' lists what is trending.

    Quote it: the shell removes "…" from a phrase and expands *. One word that begins with a dash comes after --.
    """
    query = " ".join(options.pop("query"))
    also = options.pop("also")
    terms: dict[str, Any] = {"queries": (query, *also)} if also else {"query": query}
    options["max_tokens"] = token_budget(form, options["max_tokens"])
    request = RecallRequest(
        **terms,
        filters=opt.filters_from(filters),
        ranking=opt.ranking_from(ranking),
        **options,
    )
    _answer(ctx, request, form, question=" ".join((query, *also)))


@click.command(cls=opt.TextCommand)
@click.argument("query", nargs=-1, required=True)
@opt.project_first_option
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@opt.filter_options
@opt.format_option
@opt.max_tokens_option
@click.option("--cursor", help="Continue an answer; repeat its other options.")
@opt.context_and_json
def search(
    ctx: click.Context,
    /,
    query: tuple[str, ...],
    filters: opt.Values,
    form: Format,
    **options: object,
) -> None:
    """Find memories by exact words: error codes, identifiers, paths, names. Rare words count most.

    QUERY may hold "phrases", AND, OR, NOT, -word, prefix*, tag:word, source:word, summary:word. Put it into single
    quotes, since the shell removes "…" from a phrase: folklore search '"connection pool" -redis'.
    """
    text = " ".join(query)
    _answer(
        ctx,
        SearchRequest(query=text, filters=opt.filters_from(filters), **options),
        form,
        question=text,
    )


@click.command("list")
@opt.namespaces_option
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@opt.filter_options
@opt.one_of(
    "--sort",
    [sort for sort in get_args(ListSort) if sort != "score"],
    "time_desc",
)
@opt.format_option
@opt.max_tokens_option
@click.option(
    "--faded",
    is_flag=True,
    help="Those that recall leaves out, since they were too little used.",
)
@click.option("--cursor", help="Continue a list; repeat its other options.")
@opt.context_and_json
def list_(
    ctx: click.Context,
    /,
    filters: opt.Values,
    form: Format,
    faded: bool,
    **options: object,
) -> None:
    """List memories in order of time, newest first."""
    conditions = opt.filters_from(filters | ({"faded": True} if faded else {}))
    _answer(ctx, ListRequest(filters=conditions, **options), form)


def _answer(
    ctx: click.Context,
    request: Returns[Answer],
    form: Format,
    question: str | None = None,
) -> None:
    """Print the answer to a request, and keep what its numbers mean, unless a program reads it."""
    answer = call(ctx, request)
    with paged():
        output.print_answer(answer, form, zone=zone_of(ctx), question=question)
        if not output.wants_json():
            keep_list(ctx, [result.memory.id for result in answer.memories])
            if getattr(request, "explain", False):  # of recall alone
                output.print_explanation(answer)


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID…")
@opt.context_and_json
def show(ctx: click.Context, ids: tuple[str, ...]) -> None:
    """Show whole memories by id: every field, relations, number of changes; forgotten ones too."""
    result = call_with_ids(
        ctx,
        ids,
        lambda uuids: GetRequest(ids=tuple(dict.fromkeys(uuids)), forgotten=True),
    )
    zone = zone_of(ctx)
    if output.wants_json() and not result.missing:
        output.print_json({"memories": [details_json(item) for item in result.found]})
    with paged():
        for item in () if output.wants_json() else result.found:
            print_line(f"{item.memory.namespace} {item.memory.id}", bold=True)
            output.print_details(item, zone)
            print_line()
    if result.missing:
        missing = ", ".join(str(id_) for id_ in result.missing)
        raise NotFound(
            f"There is no memory {missing}.",
            hint="Ids come from recall, search or list.",
        )


@click.command()
@click.argument("memory", metavar="ID")
@opt.namespace_option
@opt.context_and_json
def history(ctx: click.Context, memory: str, namespaces: opt.Names) -> None:
    """Show the changes of a memory, their authors and what differs; the last change first."""
    result = call_with_ids(
        ctx,
        [memory],
        lambda ids: HistoryRequest(id=ids[0], namespaces=namespaces),
    )
    revisions = [revision_json(item) for item in result.revisions]
    value = {"memory": record_json(result.memory), "revisions": revisions}
    output.print_either(value, lambda: _print_history(result, zone_of(ctx)))


def _print_history(result: History, zone: tzinfo) -> None:
    now = result.memory
    following: dict[str, Any] = record_json(now)
    with paged():
        print_line(f"{now.namespace} {now.id}, revision {now.revision}", bold=True)
        if now.superseded_by is not None:
            print_line(f"superseded by {now.superseded_by}")
        for item in result.revisions:  # the last change first, so that each former value is the next one's new value
            output.print_revision(item, following, zone)
            following |= item.before
        print_line(
            f"stored {output.time_text(now.created_at, zone)} by {now.author}", dim=True
        )
