"""Commands that read: recall, search, list, show, history."""

from collections.abc import Sequence
from datetime import tzinfo
from typing import Any, get_args

import click

from folklore.cli import options as opt
from folklore.cli.context import call, zone_of
from folklore.cli.ids import call_with_ids, keep_list
from folklore.cli.memory_output import (
    print_answer,
    print_details,
    print_explanation,
    print_revision,
)
from folklore.cli.output import print_either, print_json, time_text, wants_json
from folklore.cli.screen import paged, print_line
from folklore.contract.compact import Format
from folklore.contract.memories import (
    GetRequest,
    History,
    HistoryRequest,
    ListRequest,
    ListSort,
    MemoryDetails,
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
    if also:
        options["queries"] = (query, *also)
    else:
        options["query"] = query
    options["max_tokens"] = token_budget(form, options["max_tokens"])
    request = RecallRequest(
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
    request = SearchRequest(query=text, filters=opt.filters_from(filters), **options)
    _answer(ctx, request, form, question=text)


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
    if faded:
        filters["faded"] = True
    request = ListRequest(filters=opt.filters_from(filters), **options)
    _answer(ctx, request, form)


def _answer(
    ctx: click.Context,
    request: Returns[Answer],
    form: Format,
    question: str | None = None,
) -> None:
    """Print the answer to a request, and keep what its numbers mean, unless a program reads it."""
    answer = call(ctx, request)
    with paged():
        print_answer(answer, form, zone=zone_of(ctx), question=question)
        if not wants_json():
            keep_list(ctx, [result.memory.id for result in answer.memories])
            if getattr(request, "explain", False):  # of recall alone
                print_explanation(answer)


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
    if not wants_json():
        _print_memories(result.found, zone_of(ctx))
    elif not result.missing:
        print_json({"memories": [details_json(details) for details in result.found]})
    if result.missing:
        missing = ", ".join(str(id_) for id_ in result.missing)
        raise NotFound(
            f"There is no memory {missing}.",
            hint="Ids come from recall, search or list.",
        )


def _print_memories(found: Sequence[MemoryDetails], zone: tzinfo) -> None:
    with paged():
        for details in found:
            memory = details.memory
            print_line(f"{memory.namespace} {memory.id}", bold=True)
            print_details(details, zone)
            print_line()


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
    revisions = [revision_json(revision) for revision in result.revisions]
    value = {"memory": record_json(result.memory), "revisions": revisions}
    print_either(value, lambda: _print_history(result, zone_of(ctx)))


def _print_history(history: History, zone: tzinfo) -> None:
    memory = history.memory
    following: dict[str, Any] = record_json(memory)
    with paged():
        head = f"{memory.namespace} {memory.id}, revision {memory.revision}"
        print_line(head, bold=True)
        if memory.superseded_by is not None:
            print_line(f"superseded by {memory.superseded_by}")
        # The last change comes first, so that each former value is the next one's new value.
        for revision in history.revisions:
            print_revision(revision, following, zone)
            following |= revision.before
        when = time_text(memory.created_at, zone)
        print_line(f"stored {when} by {memory.author}", dim=True)
