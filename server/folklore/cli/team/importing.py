"""`folklore import`."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import click

from folklore.background import in_thread
from folklore.cli.context import settings_of, with_operations
from folklore.cli.options import context_and_json, named, repeatable
from folklore.cli.output import print_either, print_line, print_table, wants_json
from folklore.cli.screen import confirm
from folklore.cli.team.target_readers import with_readers
from folklore.client.http_client import HttpClient
from folklore.client.project import project_namespace, working_directory
from folklore.contract.people import CallerRequest
from folklore.contract.transfer import Failure, ImportRequest, Report
from folklore.errors import InvalidInput, Unavailable
from folklore.importers import (
    FileFormat,
    Format,
    Options,
    PathFormat,
    Target,
    installed,
)
from folklore.phases import phase
from folklore.text import names
from folklore.text.amounts import amount

# Characters of a source in a table. The end of a folder's name says more than its beginning.
_SOURCE = 28
# Titles of a target that are shown.
_TITLES = 20


def _mapping(
    _ctx: click.Context, _option: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    pairs = [value.rpartition("=") for value in values]
    if wrong := [
        value
        for value, pair in zip(values, pairs, strict=True)
        if not (pair[0] and pair[2])
    ]:
        raise click.BadParameter(f"{wrong[0]!r} is not of the form FOLDER=NAMESPACE.")
    return {folder: names.normalise(namespace) for folder, _, namespace in pairs}


@click.command("import")
@click.argument(
    "files", metavar="FILE", nargs=-1, required=True, type=click.Path(allow_dash=True)
)
@click.option(
    "-n",
    "--namespace",
    callback=named,
    help="Put every memory here, whatever its source says.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(installed.format_names()),
    help="The format of FILE. Default: found by its name and content, else jsonl.",
)
@repeatable(
    "--map",
    "mapping",
    "FOLDER=NAMESPACE",
    "The namespace for a project of Claude Code whose folder is not found on this machine",
    callback=_mapping,
)
@repeatable(
    "--private-host",
    "private_hosts",
    "HOST",
    "A host of pages that may have a private or local address, and http",
)
@click.option(
    "--on-conflict",
    type=click.Choice(["skip", "overwrite", "fail"]),
    help="What to do if a memory's id or text exists. Default: overwrite for pages, else skip.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Write nothing; report what an import would do, and in which namespace.",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@context_and_json
def import_(
    ctx: click.Context,
    /,
    files: tuple[str, ...],
    form: str | None,
    yes: bool,
    **options: Any,
) -> None:
    """Read memories from FILE (- for stdin): an export of folklore, pages, conversations, or another system's export.

    FILE may be the address of a web page, or of several, and `git` for the history and the decision records of this
    repository.

    Rules and notes of assistants go to the namespace of their repository; your own notes and conversations to a private
    one. The targets are shown first. Without a terminal, several namespaces, or one that others can read, need --yes.

    Lines of jsonl with only "content", or with any of the other fields, do as well; a line that names no namespace goes
    to the project's. Importing the same file again changes nothing. Exit code 1 if any line failed.
    """
    form = _checked_format(files, form)
    reader = installed.format_of(form)
    mapping = options.pop("mapping")
    private_hosts = options.pop("private_hosts")
    if options["on_conflict"] is None:
        options["on_conflict"] = reader.on_conflict
    if options["namespace"] is not None:
        options["namespace"] = names.normalise(options["namespace"])
    request = ImportRequest(**options, report=Report())
    ask = not (yes or request.dry_run)
    targets: list[Target] = []

    async def read_and_import(operations: HttpClient) -> None:
        # Fails before anything is read or sent, if the server is away or the token unknown.
        caller = await operations.call(CallerRequest())
        if isinstance(reader, FileFormat):
            await _import_file(operations, files[0], reader, request)
            return
        choices = _choices(ctx, caller.principal, request, mapping, private_hosts)
        with phase("Reading"):
            targets[:] = await in_thread(
                lambda: reader.targets(files, choices), "import-read"
            )
        targets[:] = await with_readers(targets, operations, caller)
        confirmed = _confirmed(targets, ask=ask)
        await _import_targets(operations, confirmed, request)

    with _closing(targets, request.report):
        with_operations(ctx, read_and_import)

    advice = _advice_on(files[0], reader, targets, request.report)
    value = _value(form, targets, request, advice)
    print_either(
        value,
        lambda: _print_report(request.report, dry_run=request.dry_run, advice=advice),
    )
    if request.report.failed or advice:
        ctx.exit(1)


def _checked_format(files: Sequence[str], form: str | None) -> str:
    """Return the format of the files, found by the first one if it is not given. Raises InvalidInput."""
    file = files[0]
    if not file:
        raise InvalidInput(
            "FILE", "is empty.", hint="Name a file or a folder, or . for this folder."
        )
    if form is None:
        form = installed.found_format(file)
    else:
        installed.check_format(form, file)
    if len(files) > 1 and not _takes_several(form):
        raise InvalidInput(
            "FILE", f"one file or folder is imported at a time, got {len(files)}."
        )
    return form


def _takes_several(form: str) -> bool:
    reader = installed.format_of(form)
    return isinstance(reader, PathFormat) and reader.of_addresses


async def _import_file(
    operations: HttpClient, file: str, reader: FileFormat, request: ImportRequest
) -> None:
    with _source(file) as (source, size):
        await operations.import_lines(
            reader.read(source), request, lambda: (request.report.bytes, size)
        )


def _choices(
    ctx: click.Context,
    principal: str,
    request: ImportRequest,
    mapping: dict[str, str],
    private_hosts: tuple[str, ...],
) -> Options:
    settings = settings_of(ctx)
    directory = working_directory(os.environ)
    project = settings.namespace or project_namespace(directory, settings.remote)
    return Options(
        principal,
        project,
        request.namespace,
        mapping,
        private_hosts,
        settings.remote,
    )


def _advice_on(
    file: str, reader: Format, targets: Sequence[Target], report: Report
) -> str | None:
    """Return what to do if nothing of the source was read, else None."""
    if isinstance(reader, FileFormat):
        return _advice(file) if _is_unread(report) else None
    if _has_no_page(targets) and not (report.failed or report.removed):
        return f"{file} has no page with a text. {reader.hint}"
    return None


def _value(
    form: str, targets: Sequence[Target], request: ImportRequest, advice: str | None
) -> dict[str, Any]:
    """Return the report for --json."""
    figures = asdict(request.report)
    figures["seconds"] = round(request.report.seconds, 3)
    figures["rate"] = round(request.report.rate)
    del figures["bytes"]
    value = {"dry_run": request.dry_run, "format": form}
    value |= figures
    value |= _target_values(targets)
    if advice:
        value["advice"] = advice
    return value


@contextmanager
def _closing(targets: Sequence[Target], report: Report) -> Iterator[None]:
    """Close the pages of the targets after the block, and say that it may be continued if it fails."""
    try:
        yield
    except (Unavailable, KeyboardInterrupt):
        if report.lines and not wants_json():
            click.echo(
                "Interrupted. What was stored stays; run it again to continue.",
                err=True,
            )
        raise
    finally:
        for target in targets:
            target.close()


async def _import_targets(
    operations: HttpClient, targets: Sequence[Target], request: ImportRequest
) -> None:
    counts = [target.memories for target in targets]  # None before they were read
    total = 0 if None in counts else sum(count or 0 for count in counts)
    for target in targets:
        changes: dict[str, Any] = {"namespace": target.namespace}
        # commits do not change, people may have changed their memories
        if target.titles:
            changes["on_conflict"] = "skip"
        if target.pages is not None:
            changes["pages"] = target.pages
        each = request.model_copy(update=changes)
        await operations.import_lines(
            target.lines, each, lambda: (request.report.lines, total)
        )


def _show(targets: Sequence[Target]) -> None:
    if rows := [_row(target) for target in targets if target.namespace is not None]:
        print_table(("source", "into namespace", "memories", "stored", "readers"), rows)
    _print_titles(targets)
    for target in targets:
        if target.namespace is None:
            print_line(
                f"left out: {target.source} ({amount(target.memories or 0, 'memory')}): {target.reason}"
            )


def _print_titles(targets: Sequence[Target]) -> None:
    for target in targets:
        for title in target.titles[:_TITLES]:
            print_line(f"  {title}")
    if hidden := sum(len(target.titles[_TITLES:]) for target in targets):
        print_line(f"  and {hidden:,} more; --dry-run --json names all")


def _row(target: Target) -> tuple[object, ...]:
    return (
        target.source
        if len(target.source) <= _SOURCE
        else f"…{target.source[1 - _SOURCE :]}",
        target.namespace,
        "" if target.memories is None else target.memories,
        "new" if target.stored is None else f"{target.stored:,}",
        ", ".join((*target.readers, *(f"{name} (owner)" for name in target.owners)))
        or "only you",
    )


def _confirmed(targets: Sequence[Target], *, ask: bool) -> list[Target]:
    """Show the targets, and return those with a namespace once the user agrees. Raises InvalidInput, FolkloreError.

    A terminal is asked. Elsewhere several namespaces, and one that others can read, need --yes.
    """
    if not wants_json():
        _show(targets)
    selected = [target for target in targets if target.namespace is not None]
    if not selected:
        hint = "Name the namespace for all with --namespace, or for one project with --map FOLDER=NAMESPACE."
        raise InvalidInput(
            "namespace",
            f"none is known for {targets[0].source}: {targets[0].reason}.",
            hint=hint,
        )
    if ask:
        several = sorted({str(target.namespace) for target in selected})
        _ask(
            several,
            sorted({str(target.namespace) for target in selected if target.readers}),
        )
    return selected


def _ask(namespaces: Sequence[str], shared: Sequence[str]) -> None:
    """Ask on a terminal for the import into namespaces, of which others can read the `shared` ones."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        into = ", ".join(namespaces[:5]) + (" …" if namespaces[5:] else "")
        readable = f" Others can read {', '.join(shared)}." if shared else ""
        confirm(f"Import into {into}?{readable}")
    elif shared or namespaces[1:]:
        if shared:
            problem = f"others can read {shared[0]}"
        else:
            problem = f"there are {len(namespaces)} namespaces"
        raise InvalidInput(
            "--yes",
            f"is needed, as {problem}.",
            hint="See them with --dry-run, and repeat with --yes.",
        )


def _target_values(targets: Sequence[Target]) -> dict[str, Any]:
    if not targets:
        return {}

    def rows(names: str, *, left_out: bool) -> list[dict[str, Any]]:
        group = [target for target in targets if (target.namespace is None) == left_out]
        return [
            {name: getattr(target, name) for name in names.split()} for target in group
        ]

    return {
        "targets": rows(
            "source namespace memories stored readers owners", left_out=False
        ),
        "titles": [title for target in targets for title in target.titles],
        "left_out": rows("source memories reason", left_out=True),
    }


@contextmanager
def _source(file: str) -> Iterator[tuple[BinaryIO, int]]:
    """Open the file; yield it with its size, 0 if that is unknown."""
    if file == "-":
        # A descriptor of our own that is never closed: at the end a thread may still read from it.
        yield os.fdopen(os.dup(0), "rb"), 0
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        hint = _folder_hint() if Path(file).is_dir() else None
        raise InvalidInput(
            "FILE", f"{file} cannot be read ({error.strerror}).", hint=hint
        ) from error
    with source:
        yield source, os.fstat(source.fileno()).st_size


def _folder_hint() -> str:
    names = ", ".join(
        name
        for name, reader in installed.formats().items()
        if isinstance(reader, PathFormat) and not reader.of_addresses
    )
    return f"A folder has the format {names}." if names else installed.how_to_install()


def _summary(report: Report) -> str:
    overwritten = f", {report.overwritten:,} overwritten" if report.overwritten else ""
    overwritten += f", {report.removed:,} forgotten" if report.removed else ""
    skipped = sum(report.skipped.values()) + report.refused
    counts = f"{report.stored:,} stored{overwritten}, {report.duplicates:,} duplicates"
    return f"{counts}, {skipped:,} skipped, {report.failed:,} failed"


def _print_report(report: Report, *, dry_run: bool, advice: str | None) -> None:
    speed = f"in {report.seconds:.1f} s ({report.rate:,.0f} a second)"
    print_line(f"{'Would be: ' if dry_run else ''}{_summary(report)} {speed}")
    if dry_run:
        for name, count in report.namespaces.items():
            print_line(f"  into namespace {name!r}: {count:,}")
    for line in _remarks(report):
        print_line(f"  {line}")
    for failure in (*report.refusals, *report.failures):
        click.echo(f"  {_failure(failure)}", err=True)
    unshown = {
        "with secrets": report.refused - len(report.refusals),
        "failed": report.failed - len(report.failures),
    }
    for what, count in unshown.items():
        if count > 0:
            click.echo(f"  and {count:,} more lines {what}", err=True)
    if advice:
        click.echo(advice, err=True)


def _is_unread(report: Report) -> bool:
    """Return True if no line of a source was one of an import, not even one that is left out on purpose."""
    is_state = any(type_.endswith(" memory") for type_ in report.skipped)
    memories = report.settled + report.refused
    links = report.relations + report.revisions + report.untied
    return not (report.headers or memories or links or is_state)


def _has_no_page(targets: Sequence[Target]) -> bool:
    return bool(targets) and all(
        target.pages is not None and not target.memories for target in targets
    )


def _advice(file: str) -> str:
    """Return what to do with a source of which nothing was read."""
    return installed.description_of(file) or (
        "No line is as `folklore export` writes them; --format names the other formats of FILE."
    )


def _failure(failure: Failure) -> str:
    """Return a failure with its place, which some messages name themselves."""
    place = failure.place or f"line {failure.line}"
    if failure.message.startswith(f"{place}: "):
        return failure.message
    return f"{place}: {failure.message}"


def _remarks(report: Report) -> Iterator[str]:
    for name, count in report.skipped.items():
        yield f"skipped: {count:,} of type {name!r}"
    for name, count in report.ignored_fields.items():
        first = report.ignored_at.get(name, "")
        where = f" ({first}{', …' if count > 1 else ''})" if first else ""
        yield f"ignored: field {name!r} on {amount(count, 'line')}{where}; {_reason(name)}"
    for what, count in (
        (
            "found by keyword only until a server has made their vectors (`folklore status`)",
            report.without_vector,
        ),
        (
            "superseded by a memory that is neither stored nor in the file",
            report.unlinked,
        ),
        (
            "forgotten, since their section is no longer in its file (`folklore undo` restores one)",
            report.removed,
        ),
        ("with secrets replaced by a marker", report.redacted),
        ("lines skipped because they hold secrets", report.refused),
        ("relations", report.relations),
        ("revisions", report.revisions),
        (
            "relations and revisions of memories that are neither stored nor in the file",
            report.untied,
        ),
    ):
        if count:
            yield f"{what}: {count:,}"


def _reason(ignored: str) -> str:
    if ignored == "embedding":
        return "not of this store's model, or not of the text as it is stored; the text was embedded again"
    if ignored.startswith("front matter"):
        return "a memory has no such field, or the value does not fit"
    return "a memory has no such field (metadata takes any)"
