"""`folklore status`, also `folklore` without a command: the memory of this project at a glance; `folklore log`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta, tzinfo
from typing import Any, cast
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
    rows = [_log_row(entry, zone) for entry in entries]
    print_either({"log": rows}, lambda: _print_log(ctx, entries, zone))


def _print_log(ctx: click.Context, entries: Sequence[Event], zone: tzinfo) -> None:
    """Print entries by day, and keep the numbers of their memories."""
    numbered: list[UUID] = []
    with paged():
        if not entries:
            print_line("Nothing was written that matches.")
        today = datetime.now(zone).date()
        last_day: date | None = None
        for entry in entries:
            day = entry.at.astimezone(zone).date()
            if day != last_day:
                blank_line = "" if last_day is None else "\n"
                print_line(blank_line + _day_text(day, today), bold=True)
                last_day = day
            _print_entry(entry, numbered, zone)
    keep_list(ctx, numbered)


def _day_text(day: date, today: date) -> str:
    text = f"{day:%A}, {day:%Y-%m-%d}"
    if day == today:
        return f"{text}, today"
    if day == today - timedelta(days=1):
        return f"{text}, yesterday"
    return text


def _print_entry(entry: Event, numbered: list[UUID], zone: tzinfo) -> None:
    """Print an entry, and append its memories to `numbered`, which gives their numbers."""
    size = "a memory" if entry.amount == 1 else f"{entry.amount:,} memories"
    when = f"{entry.at.astimezone(zone):%H:%M}"
    print_line(
        f"{when}  {entry.author} {DONE[entry.action]} {size} in {entry.namespace}"
    )
    for memory in entry.memories[:_MEMORIES]:
        numbered.append(memory.id)
        print_line(one_line(len(numbered), memory, None))
    if len(entry.memories) > _MEMORIES:
        print_line(f"    and {entry.amount - _MEMORIES:,} more", dim=True)


def _log_row(entry: Event, zone: tzinfo) -> dict[str, Any]:
    row: Any = without_nulls(
        row_of(entry, "at author agent action amount namespace", zone)
    )
    row["memories"] = [
        {"id": str(memory.id), "content": memory.content} for memory in entry.memories
    ]
    return cast("dict[str, Any]", row)


async def _overview(operations: Operations, settings: Settings) -> Overview:
    caller = await operations.call(CallerRequest())
    project = (
        caller.namespace
        or settings.namespace
        or project_namespace(working_directory(os.environ), settings.remote)
    )
    # A model of this machine needs no check, and loading it takes longer than everything else here.
    check_model = True
    failed: list[JobState] = []
    if settings.server is None:
        check_model = settings.embedding.provider not in ("auto", "bundled")
        jobs = (await operations.call(JobsRequest())).jobs
        failed = [job for job in jobs if job.outcome == "failed"]
        failed.sort(key=lambda job: job.name)
    state = await operations.call(StatusRequest(check_model=check_model))
    overview = Overview(project, _where(settings), state, failed=failed)
    for namespace in state.namespaces:
        if names.key(namespace.name) == names.key(project):
            request = ListRequest(namespaces=(namespace.name,), limit=_NEWEST)
            with suppress(NotFound):  # renamed or deleted since
                answer = await operations.call(request)
                newest = [result.memory for result in answer.memories]
                return replace(overview, newest=newest, namespace=namespace)
    return overview


def _where(settings: Settings) -> str:
    """Return where the memories are."""
    if settings.server is not None:
        return f"server {settings.server}"
    if settings.database_url is None:
        return f"embedded Postgres, home {settings.home}"
    return f"Postgres of database_url, home {settings.home}"


def _print(ctx: click.Context, overview: Overview) -> None:
    state = overview.status
    namespace = overview.namespace
    zone = zone_of(ctx)
    size = "no memories yet" if namespace is None else _memories(namespace.memories)
    print_line(f"{overview.project}: {size}", bold=True)
    _print_others(overview)
    model = "no embedding model"
    if state.model is not None:
        model = f"model {state.model.provider}/{state.model.name}"
    print_line(f"folklore {__version__}, {overview.where}, {model}", dim=True)

    numbered = enumerate(overview.newest, start=1)
    _print_paragraph([one_line(number, memory, zone) for number, memory in numbered])
    mark = paint("!", fg="yellow")
    _print_paragraph([f"{mark} {line}" for line in _attention(overview, zone)])
    if namespace is None:
        hint = 'Store the first one: folklore store "…"; `folklore --help` lists all commands.'
        _print_paragraph([hint])
    keep_list(ctx, [memory.id for memory in overview.newest])


def _print_paragraph(lines: Sequence[str]) -> None:
    if lines:
        print_line()
    for line in lines:
        print_line(line)


def _print_others(overview: Overview) -> None:
    others = []
    shared = []
    for namespace in overview.status.namespaces:
        if namespace is overview.namespace:
            continue
        others.append(namespace)
        if namespace.shared == "always":
            shared.append(namespace.name)
    if not others:
        return
    total = sum(namespace.memories for namespace in others)
    line = f"{_memories(total)} in {amount(len(others), 'other namespace')}"
    if shared:
        line += f"; shared with every project: {', '.join(shared)}"
    print_line(line)


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
    name = None
    if model is not None:
        name = f"{model.provider}/{model.name}/{model.dimensions}"
    degraded = [
        {"branch": item.branch, "reason": item.reason} for item in state.degraded
    ]
    failed = [
        {"job": job.name, "finished_at": job.finished_at, "error": job.error}
        for job in overview.failed
    ]
    return {
        "project": overview.project,
        "where": overview.where,
        "version": state.version,
        "memories": 0 if namespace is None else namespace.memories,
        "namespaces": len(state.namespaces),
        "model": name,
        "pending_embeddings": state.pending_embeddings,
        "degraded": degraded,
        "failed_jobs": failed,
        "newest": [record_json(memory) for memory in overview.newest],
    }
