"""`folklore status`, also `folklore` without a command: the memory of this project at a glance; `folklore log`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import groupby
from typing import Any
from uuid import UUID

import click

from folklore import __version__
from folklore.cli.context import call, settings_of, with_operations, zone_of
from folklore.cli.ids import keep_list
from folklore.cli.options import context_and_json, namespaces_option
from folklore.cli.output import (
    one_line,
    paint,
    print_either,
    print_line,
    row_of,
    time_text,
)
from folklore.cli.screen import paged
from folklore.client.project import project_namespace, working_directory
from folklore.config import Settings
from folklore.contract.health import Status, StatusRequest
from folklore.contract.jobs import JobsRequest
from folklore.contract.memories import ListRequest, record_json
from folklore.contract.people import CallerRequest
from folklore.contract.requests import Operations, without_nulls
from folklore.contract.review import DONE, Event, LogRequest
from folklore.errors import NotFound
from folklore.model import JobState, Memory, NamespaceStatus
from folklore.text import names
from folklore.text.amounts import amount

_NEWEST = 5
_MEMORIES = 3  # memories of one write
_COUNT_LIMIT = 50_000  # where the counts of a status stop


@dataclass(frozen=True, slots=True)
class Overview:
    """The memory of a project: the state of the whole, the newest memories, and failed jobs of this machine."""

    project: str
    where: str
    status: Status
    newest: Sequence[Memory] = ()
    failed: Sequence[JobState] = ()
    namespace: NamespaceStatus | None = None


@click.command()
@context_and_json
def status(ctx: click.Context) -> None:
    """Show the memory of this project: its namespace, counts, the newest memories, and what wants attention."""
    settings = settings_of(ctx)
    overview = with_operations(ctx, lambda operations: _overview(operations, settings))
    print_either(_as_json(overview), lambda: _print(ctx, overview))


@click.command()
@namespaces_option
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Only memories of this kind; repeatable.",
)
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    help="Only memories with this tag; repeatable.",
)
@click.option("--author", metavar="NAME", help="Only what this author did.")
@click.option(
    "--time",
    metavar="TEXT",
    help='Such as "last week", "since March", 2025-03-01..2025-03-09.',
)
@click.option("--mine", is_flag=True, help="Only what you did.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
@context_and_json
def log(ctx: click.Context, /, **options: Any) -> None:
    """Show who stored, changed and forgot what, the latest first, by day; erased memories leave no trace."""
    entries = call(ctx, LogRequest(**options))
    zone = zone_of(ctx)
    print_either(
        {"log": [_log_row(entry, zone) for entry in entries]},
        lambda: _print_log(ctx, entries, zone),
    )


def _print_log(ctx: click.Context, entries: Sequence[Event], zone: tzinfo) -> None:
    """Print entries by day, and keep the numbers of their memories."""
    listed: list[UUID] = []
    with paged():
        if not entries:
            print_line("Nothing was written that matches.")
        for place, (day, of_day) in enumerate(
            groupby(entries, lambda entry: entry.at.astimezone(zone).date())
        ):
            day_name = {0: ", today", 1: ", yesterday"}.get(
                (datetime.now(zone).date() - day).days, ""
            )
            print_line(
                ("\n" if place else "") + f"{day:%A}, {day:%Y-%m-%d}{day_name}",
                bold=True,
            )
            for entry in of_day:
                _print_entry(entry, listed, zone)
    keep_list(ctx, listed)


def _print_entry(entry: Event, listed: list[UUID], zone: tzinfo) -> None:
    """Print an entry, and append its memories to `listed` as they are numbered."""
    size = "a memory" if entry.amount == 1 else f"{entry.amount:,} memories"
    when = f"{entry.at.astimezone(zone):%H:%M}"
    print_line(
        f"{when}  {entry.author} {DONE[entry.action]} {size} in {entry.namespace}"
    )
    for memory in entry.memories[:_MEMORIES]:
        listed.append(memory.id)
        print_line(one_line(len(listed), memory, None))
    if len(entry.memories) > _MEMORIES:
        print_line(f"    and {entry.amount - _MEMORIES:,} more", dim=True)


def _log_row(entry: Event, zone: tzinfo) -> dict[str, Any]:
    row: Any = without_nulls(
        row_of(entry, "at author agent action amount namespace", zone)
    )
    return {
        **row,
        "memories": [
            {"id": str(memory.id), "content": memory.content}
            for memory in entry.memories
        ],
    }


async def _overview(operations: Operations, settings: Settings) -> Overview:
    caller = await operations.call(CallerRequest())
    project = (
        caller.namespace
        or settings.namespace
        or project_namespace(working_directory(os.environ), settings.remote)
    )
    here = settings.server is None
    failed = list[JobState]()
    where = f"server {settings.server}"
    if here:
        jobs = (await operations.call(JobsRequest())).jobs
        failed = sorted(
            (job for job in jobs if job.outcome == "failed"), key=lambda job: job.name
        )
        if settings.database_url is None:
            where = "embedded Postgres"
        else:
            where = "Postgres of database_url"
        where += f", home {settings.home}"
    # A model of this machine needs no check, and loading it takes longer than everything else here.
    check = not here or settings.embedding.provider not in ("auto", "bundled")
    state = await operations.call(StatusRequest(check_model=check))
    for namespace in state.namespaces:
        if names.key(namespace.name) == names.key(project):
            with suppress(NotFound):  # renamed or deleted since
                answer = await operations.call(
                    ListRequest(namespaces=(namespace.name,), limit=_NEWEST)
                )
                newest = [result.memory for result in answer.memories]
                return Overview(project, where, state, newest, failed, namespace)
    return Overview(project, where, state, failed=failed)


def _print(ctx: click.Context, overview: Overview) -> None:
    state = overview.status
    namespace = overview.namespace
    zone = zone_of(ctx)
    size = "no memories yet" if namespace is None else _memories(namespace.memories)
    print_line(f"{overview.project}: {size}", bold=True)
    _print_others(overview)
    if state.model is None:
        model = "no embedding model"
    else:
        model = f"model {state.model.provider}/{state.model.name}"
    print_line(f"folklore {__version__}, {overview.where}, {model}", dim=True)
    newest = [
        one_line(place, memory, zone)
        for place, memory in enumerate(overview.newest, start=1)
    ]
    attention = [
        f"{paint('!', fg='yellow')} {line}" for line in _attention(overview, zone)
    ]
    first = [
        'Store the first one: folklore store "…"; `folklore --help` lists all commands.'
    ]
    for paragraph in filter(
        None, (newest, attention, first if namespace is None else ())
    ):
        for line in ("", *paragraph):
            print_line(line)
    keep_list(ctx, [memory.id for memory in overview.newest])


def _print_others(overview: Overview) -> None:
    others = [
        item for item in overview.status.namespaces if item is not overview.namespace
    ]
    if not others:
        return
    shared = [item.name for item in others if item.shared == "always"]
    more = f"; shared with every project: {', '.join(shared)}" if shared else ""
    total = sum(item.memories for item in others)
    print_line(f"{_memories(total)} in {amount(len(others), 'other namespace')}{more}")


def _attention(overview: Overview, zone: tzinfo) -> Iterator[str]:
    pending = overview.status.pending_embeddings
    if pending:
        noun = "embedding is" if pending == 1 else "embeddings are"
        yield f"{_count(pending)} {noun} pending: a server adds them, or `folklore embeddings backfill`"
    for item in overview.status.degraded:
        yield f"recall works without its {item.branch} branch: {item.reason}"
    for job in overview.failed:
        when = "" if job.finished_at is None else f" {time_text(job.finished_at, zone)}"
        yield f"the job {job.name} failed{when}: {job.error or 'no reason was kept'} (`folklore jobs status`)"


def _memories(number: int) -> str:
    if number == 1:
        return "1 memory"
    return f"{_count(number)} memories"


def _count(number: int) -> str:
    if number < _COUNT_LIMIT:
        return f"{number:,}"
    return f"over {_COUNT_LIMIT:,}"


def _as_json(overview: Overview) -> dict[str, Any]:
    state = overview.status
    namespace = overview.namespace
    model = state.model
    return {
        "project": overview.project,
        "where": overview.where,
        "version": state.version,
        "memories": 0 if namespace is None else namespace.memories,
        "namespaces": len(state.namespaces),
        "model": None
        if model is None
        else f"{model.provider}/{model.name}/{model.dimensions}",
        "pending_embeddings": state.pending_embeddings,
        "degraded": [
            {"branch": item.branch, "reason": item.reason} for item in state.degraded
        ],
        "failed_jobs": [
            {"job": job.name, "finished_at": job.finished_at, "error": job.error}
            for job in overview.failed
        ],
        "newest": [record_json(memory) for memory in overview.newest],
    }
