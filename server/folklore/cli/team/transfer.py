"""`folklore export` and `folklore import`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, BinaryIO

import click

from folklore.app import App
from folklore.cli.context import settings_of, with_app
from folklore.cli.options import context_and_json, namespaces_option
from folklore.cli.output import print_json, print_line, progress
from folklore.config import Settings
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.requests import ExportRequest, ImportRequest
from folklore.memory.transfer.export import export_lines
from folklore.memory.transfer.formats import FORMATS, Format
from folklore.memory.transfer.formats.line import Lines
from folklore.memory.transfer.importer import import_lines
from folklore.memory.transfer.json_lines import is_memory
from folklore.memory.transfer.report import Report
from folklore.runtime import Runtime

_PROGRESS_EVERY = 500


@click.command()
@click.argument("file", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@namespaces_option
@click.option("--embeddings", is_flag=True, help="Also write vectors, so that an import need not compute them.")
@context_and_json
def export(ctx: click.Context, /, file: str, as_json: bool, **options: object) -> None:
    """Write every memory to FILE (- or nothing: stdout) as JSON Lines, forgotten and superseded ones too.

    With --json, the number of memories is printed as JSON; that needs a FILE.
    """
    if as_json and file == "-":
        raise click.UsageError("--json needs a FILE: stdout has the export itself, which is JSON Lines anyway.")
    request = ExportRequest(**options)

    async def from_database(app: App, _runtime: Runtime) -> int:
        return await _write(export_lines(await app.service.open(), request), file)

    async def from_server(settings: Settings) -> int:
        from folklore.cli.client import HttpClient

        async with HttpClient(settings) as client:
            return await _write(client.export(request), file)

    settings = settings_of(ctx)
    count = with_app(ctx, from_database) if settings.server is None else asyncio.run(from_server(settings))
    if as_json:
        print_json({"file": file, "exported": count})
    elif file != "-":
        print_line(f"{count:,} memories exported to {file}")


async def _write(lines: AsyncGenerator[str, None], file: str) -> int:
    """Write the lines of an export to a file; return the number of memories."""
    memories = 0
    async with aclosing(lines):
        with _target(file) as out, progress("Exporting", None) as show:
            async for line in lines:
                out.write(line.encode() + b"\n")
                if is_memory(line):
                    memories += 1
                    if memories % _PROGRESS_EVERY == 0:
                        show(memories, f"{memories:,} memories")
    return memories


@contextmanager
def _target(file: str) -> Iterator[IO[bytes]]:
    """Open the file to write; it gets its name only when it is whole, so that a failure keeps an older one."""
    if file == "-":
        yield sys.stdout.buffer
        return
    path = Path(file)
    if path.exists() and not path.is_file():  # a device or a named pipe is written to, not replaced
        with path.open("wb") as out:
            yield out
        return
    try:
        # In the folder of the file that a symbolic link names: only there is renaming atomic.
        whole = path.resolve()
        part = NamedTemporaryFile(dir=whole.parent, prefix=f".{whole.name}.", suffix=".part", delete=False)  # noqa: SIM115
    except OSError as error:
        raise InvalidInput("FILE", f"{file} cannot be written ({error.strerror}).") from error
    try:
        with part:
            yield part
        os.replace(part.name, whole)  # noqa: PTH105
    finally:
        Path(part.name).unlink(missing_ok=True)


@click.command("import")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option(
    "-n", "--namespace", help="Put every memory here, whatever its line says. Required with --format claude-memory."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown", "claude-memory", "mcp-memory-json", "mem0", "mcp-memory-service"]),
    default="jsonl",
    show_default=True,
    help="The format of FILE, which for markdown and claude-memory may be a folder.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["skip", "overwrite", "fail"]),
    help="What to do if a memory's id or text exists. Default: skip; overwrite for markdown and claude-memory.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; report what an import would do, and in which namespace.")
@context_and_json
def import_(ctx: click.Context, /, file: str, form: str, as_json: bool, **options: object) -> None:
    """Read memories from FILE (- for stdin), JSON Lines as `folklore export` writes them, or another --format.

    Lines with only "content", or with any of the other fields, do as well; a line that names no namespace goes to the
    project's. claude-memory has the notes of several projects and needs --namespace. Importing the same file again
    changes nothing. Exit code 1 if any line failed.
    """
    chosen = FORMATS[form]
    request = ImportRequest(**options | {"on_conflict": options["on_conflict"] or chosen.on_conflict})
    if chosen.several_projects and request.namespace is None:
        raise InvalidInput(
            "namespace",
            f"is missing. --format {form} reads your global notes and those of several projects, which do not state"
            " their namespaces.",
            hint="Name the namespace for all of them with --namespace NAME.",
        )
    report = Report()

    async def work(app: App, _runtime: Runtime) -> None:
        with _lines(file, chosen) as (lines, size), progress("Importing", size) as show:

            def show_report() -> None:
                show(report.bytes, f"{report.settled:,} memories, {report.rate:,.0f} a second")

            await import_lines(await app.service.open(), lines, request, report, show_report)

    try:
        with_app(ctx, work)
    except (FolkloreError, KeyboardInterrupt):
        if report.settled and not as_json:
            click.echo(f"Interrupted after: {_summary(report)}. Run it again to continue.", err=True)
        raise
    if as_json:
        values = asdict(report) | {"seconds": round(report.seconds, 3), "rate": round(report.rate)}
        del values["bytes"]
        print_json({"dry_run": request.dry_run} | values)
    else:
        _print_report(report, dry_run=request.dry_run, form=form)
    if report.failed:
        ctx.exit(1)


@contextmanager
def _lines(file: str, form: Format) -> Iterator[tuple[Lines, int | None]]:
    """Open the lines of a file or a folder, with their size in bytes if it is known."""
    if form.read is not None:
        with _source(file) as (source, size):
            yield form.read(source), size
        return
    assert form.folders is not None
    if file == "-":
        raise InvalidInput("FILE", "must be a file or a folder in this format.")
    if not Path(file).exists():
        raise InvalidInput("FILE", f"{file} does not exist.")
    yield form.folders(file), None


@contextmanager
def _source(file: str) -> Iterator[tuple[BinaryIO, int | None]]:
    if file == "-":
        # A descriptor of our own that is never closed: at the end a thread may still read from it.
        yield os.fdopen(os.dup(0), "rb"), None
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        hint = "--format markdown or claude-memory reads a folder." if Path(file).is_dir() else None
        raise InvalidInput("FILE", f"{file} cannot be read ({error.strerror}).", hint=hint) from error
    with source:
        yield source, os.fstat(source.fileno()).st_size or None


def _summary(report: Report) -> str:
    overwritten = f", {report.overwritten:,} overwritten" if report.overwritten else ""
    skipped = sum(report.skipped.values()) + report.refused
    stored = f"{report.stored:,} stored{overwritten}, {report.duplicates:,} duplicates"
    return f"{stored}, {skipped:,} skipped, {report.failed:,} failed"


def _print_report(report: Report, *, dry_run: bool, form: str) -> None:
    speed = f"in {report.seconds:.1f} s ({report.rate:,.0f} a second)"
    print_line(f"{'Would be: ' if dry_run else ''}{_summary(report)} {speed}")
    if dry_run:
        for name, count in report.namespaces.items():
            print_line(f"  into namespace {name!r}: {count:,}")
    for line in _remarks(report):
        print_line(f"  {line}")
    for failure in (*report.refusals, *report.failures):
        click.echo(f"  line {failure.line}: {failure.message}", err=True)
    if report.failed > len(report.failures):
        click.echo(f"  and {report.failed - len(report.failures):,} more lines failed", err=True)
    if form == "jsonl" and (report.failed or report.skipped) and not (report.settled or report.refused):
        click.echo("No line is as `folklore export` writes them; --format names the other formats of FILE.", err=True)


def _remarks(report: Report) -> Iterator[str]:
    for name, count in report.skipped.items():
        yield f"skipped: {count:,} lines of type {name!r}"
    for name, count in report.ignored_fields.items():
        yield f"ignored: field {name!r} on {count:,} lines; {_reason(name)}"
    for count, text in (
        (report.without_vector, "have no vector yet and are found by keyword only"),
        (report.unlinked, "were superseded by a memory that is neither stored nor in the file"),
        (report.redacted, "had secrets replaced by a marker"),
        (report.refused, "lines were skipped because they hold secrets"),
        (report.relations, "relations imported"),
        (report.revisions, "revisions imported"),
        (report.untied, "relations and revisions belong to memories that are neither stored nor in the file"),
    ):
        if count:
            yield f"{count:,} {text}"


def _reason(ignored: str) -> str:
    if ignored == "embedding":
        return "not of this store's model, or not of the text as it is stored; the text was embedded again"
    if ignored.startswith("front matter"):
        return "a memory has no such field, or the value does not fit"
    return "a memory has no such field (metadata takes any)"
