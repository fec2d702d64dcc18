"""`folklore export` and `folklore import`."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, BinaryIO

import click

from folklore.cli.context import settings_of, with_app
from folklore.cli.options import json_option, namespaces_option
from folklore.cli.output import print_json, say
from folklore.cli.progress import progress
from folklore.config import Settings
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.requests import ExportRequest

if TYPE_CHECKING:
    from folklore.app import App
    from folklore.memory.transfer.conflicts import OnConflict
    from folklore.memory.transfer.formats import Format
    from folklore.memory.transfer.formats.line import Lines
    from folklore.memory.transfer.report import Report
    from folklore.runtime import Runtime

_OUT_EVERY = 500


@click.command()
@click.argument("file", default="-", type=click.Path(dir_okay=False, allow_dash=True))
@namespaces_option
@click.option("--embeddings", is_flag=True, help="Write each memory's vector too: elsewhere it need not be made anew.")
@json_option
@click.pass_context
def export(ctx: click.Context, file: str, namespaces: tuple[str, ...], embeddings: bool, as_json: bool) -> None:
    """Write every memory to FILE (- or nothing: stdout) as JSON Lines, forgotten and superseded ones too.

    With --json, what was written is told as JSON; that needs a FILE.
    """
    if as_json and file == "-":
        raise click.UsageError("--json tells what was written to a FILE; the export itself is JSON Lines anyway.")

    async def work(app: App, running: Runtime) -> int:
        from folklore.db.stores.transfer import Transfers
        from folklore.memory.transfer.streams import export_lines

        return await write(export_lines(Transfers(running.database), namespaces, now=app.now(), embeddings=embeddings))

    async def write(lines: AsyncGenerator[str, None]) -> int:
        from folklore.memory.transfer.json_lines import is_memory

        memories = 0
        async with aclosing(lines):
            with _target(file) as out, progress("Exporting", None) as tell:
                async for line in lines:
                    out.write(line.encode() + b"\n")
                    if is_memory(line):
                        memories += 1
                        if memories % _OUT_EVERY == 0:
                            tell(memories, f"{memories:,} memories")
        return memories

    async def from_server(settings: Settings) -> int:
        from folklore.cli.client import HttpClient

        async with HttpClient(settings) as client:
            return await write(client.export(ExportRequest(namespaces=namespaces, embeddings=embeddings)))

    if (settings := settings_of(ctx)).server is not None:
        count = asyncio.run(from_server(settings))
    else:
        count = with_app(ctx, work)
    if as_json:
        print_json({"file": file, "exported": count})
    elif file != "-":
        say(f"{count:,} memories exported to {file}")


@contextmanager
def _target(file: str) -> Iterator[IO[bytes]]:
    """Where to write; a file takes its name only when it is whole, so that a failure leaves an older one as it was."""
    if file == "-":
        yield sys.stdout.buffer
        return
    path = Path(file)
    if path.exists() and not path.is_file():  # a device or a named pipe is written to, not replaced
        with path.open("wb") as out:
            yield out
        return
    try:
        # Beside the file, following a symbolic link: only there is renaming one step.
        beside = path.resolve()
        part = NamedTemporaryFile(dir=beside.parent, prefix=f".{beside.name}.", suffix=".part", delete=False)  # noqa: SIM115
    except OSError as error:
        raise InvalidInput("FILE", f"{file} cannot be written ({error.strerror}).") from error
    try:
        with part:
            yield part
        os.replace(part.name, beside)  # noqa: PTH105
    except BaseException:
        Path(part.name).unlink(missing_ok=True)
        raise


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
    help="What FILE is; for markdown and claude-memory it may be a folder.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["skip", "overwrite", "fail"]),
    help="What to do with a memory whose id or text is here already. Default: skip; for pages, overwrite.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; report what would be done, and in which namespace.")
@json_option
@click.pass_context
def import_(
    ctx: click.Context,
    file: str,
    namespace: str | None,
    form: str,
    on_conflict: OnConflict | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Read memories from FILE (- for stdin), JSON Lines as `folklore export` writes them, or another --format.

    Lines with only "content", or with any of the other fields, do as well; a line that names no namespace goes to the
    project's. claude-memory gathers the notes of several projects and needs --namespace. Importing the same file again
    changes nothing. Exit code 1 if any line failed.
    """
    from folklore.memory.transfer.formats import FORMATS
    from folklore.memory.transfer.importer import ImportRequest
    from folklore.memory.transfer.report import Report

    chosen = FORMATS[form]
    if chosen.several_projects and namespace is None:
        raise InvalidInput(
            "namespace",
            f"is missing. --format {form} gathers your global notes and those of several projects, and does not know"
            " the namespace of each.",
            hint="Name the namespace for all of them with --namespace NAME.",
        )
    report = Report()

    async def work(app: App, running: Runtime) -> None:
        from folklore.db.stores.transfer import Transfers
        from folklore.memory.transfer.streams import import_lines

        request = ImportRequest(app.namespace(), namespace, on_conflict or chosen.on_conflict, dry_run)
        with _lines(file, chosen) as (lines, size), progress("Importing", size) as tell:
            await import_lines(
                running.memory,
                Transfers(running.database),
                lines,
                request,
                caller=app.caller,
                now=app.now,
                zone=app.zone,
                report=report,
                told=lambda: tell(report.bytes, f"{report.settled:,} memories, {report.rate:,.0f} a second"),
            )

    try:
        with_app(ctx, work)
    except (FolkloreError, KeyboardInterrupt):
        if report.settled and not as_json:
            click.echo(f"Broken off after: {_summary(report)}. Run it again to go on.", err=True)
        raise
    if as_json:
        print_json(_as_json(report, dry_run))
    else:
        _tell(report, dry_run, form)
    if report.failed:
        ctx.exit(1)


@contextmanager
def _lines(file: str, form: Format) -> Iterator[tuple[Lines, int | None]]:
    """The lines of a file or a folder, and how many bytes that is, if one can say."""
    if form.read is not None:
        with _source(file) as (source, size):
            yield form.read(source), size
        return
    assert form.folders is not None
    if file == "-":
        raise InvalidInput("FILE", "must be a file or a folder in this format.")
    if not Path(file).exists():
        raise InvalidInput("FILE", f"{file} is not there.")
    yield form.folders(file), None


@contextmanager
def _source(file: str) -> Iterator[tuple[BinaryIO, int | None]]:
    if file == "-":
        # A descriptor of our own, never closed: a thread may be waiting in it when we end, and would not let go.
        yield os.fdopen(os.dup(0), "rb"), None
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        hint = "--format markdown or claude-memory reads a folder." if Path(file).is_dir() else None
        raise InvalidInput("FILE", f"{file} cannot be read ({error.strerror}).", hint=hint) from error
    with source:
        yield source, os.fstat(source.fileno()).st_size or None


def _tell(report: Report, dry_run: bool, form: str) -> None:
    say(f"{'Would be: ' if dry_run else ''}{_summary(report)} in {report.seconds:.1f} s ({report.rate:,.0f} a second)")
    if dry_run:
        for name, count in report.namespaces.items():
            say(f"  into namespace {name!r}: {count:,}")
    for name, count in report.skipped.items():
        say(f"  skipped: {count:,} lines of type {name!r}")
    for name, count in report.ignored.items():
        why = "a memory has no such field (metadata takes any)"
        if name == "embedding":
            why = "not of this store's model, or not of the text as it is stored; made anew"
        elif name.startswith("front matter"):
            why = "nothing in a memory is made of it, or not of such a value"
        say(f"  ignored: field {name!r} on {count:,} lines; {why}")
    if report.without_vector:
        say(f"  {report.without_vector:,} have no vector yet and are found by word only")
    if report.unlinked:
        say(f"  {report.unlinked:,} were superseded by a memory that is neither here nor in the file")
    if report.redacted:
        say(f"  {report.redacted:,} had secrets replaced by a marker")
    if report.refused:
        say(f"  skipped: {report.refused:,} lines that hold secrets")
    for refusal in report.refusals:
        click.echo(f"  line {refusal.line}: {refusal.message}", err=True)
    if report.relations or report.revisions:
        say(f"  with {report.relations:,} relations and {report.revisions:,} revisions")
    if report.untied:
        say(f"  {report.untied:,} relations and revisions belong to memories that are neither here nor in the file")
    for failure in report.failures:
        click.echo(f"  line {failure.line}: {failure.message}", err=True)
    if report.failed > len(report.failures):
        click.echo(f"  and {report.failed - len(report.failures):,} more lines failed", err=True)
    if form == "jsonl" and (report.failed or report.skipped) and not (report.settled or report.refused):
        click.echo("No line is as `folklore export` writes them; --format says what else FILE may be.", err=True)


def _summary(report: Report) -> str:
    overwritten = f", {report.overwritten:,} overwritten" if report.overwritten else ""
    skipped = sum(report.skipped.values()) + report.refused
    return (
        f"{report.stored:,} stored{overwritten}, {report.duplicates:,} duplicates, {skipped:,} skipped,"
        f" {report.failed:,} failed"
    )


def _as_json(report: Report, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "lines": report.lines,
        "stored": report.stored,
        "overwritten": report.overwritten,
        "duplicates": report.duplicates,
        "namespaces": report.namespaces,
        "skipped": report.skipped,
        "ignored_fields": report.ignored,
        "refused": report.refused,
        "refusals": [{"line": refusal.line, "message": refusal.message} for refusal in report.refusals],
        "redacted": report.redacted,
        "failed": report.failed,
        "failures": [{"line": failure.line, "message": failure.message} for failure in report.failures],
        "without_vector": report.without_vector,
        "unlinked": report.unlinked,
        "relations": report.relations,
        "revisions": report.revisions,
        "untied": report.untied,
        "seconds": round(report.seconds, 3),
        "rate": round(report.rate),
    }
