"""`folklore backup`, `folklore restore` and `folklore backups`."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from datetime import tzinfo
from pathlib import Path

import click

from folklore.backup import (
    Archive,
    Manifest,
    Store,
    archives,
    back_up,
    pipe,
    prune,
    received,
    restore as put_back,
    verify as compare,
)
from folklore.cli.context import Value, local_settings, zone_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_table, time_text, wants_json
from folklore.cli.screen import confirm
from folklore.db.migrate import migrate
from folklore.errors import InvalidInput, Refused
from folklore.runtime import backed_up_store, backup_folder
from folklore.text.amounts import amount

_PIPE = Path("-")


@click.command()
@click.argument(
    "file",
    required=False,
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
)
@click.option(
    "--verify",
    is_flag=True,
    help="Restore a copy from the file and compare every row and twenty answers.",
)
@context_and_json
def backup(ctx: click.Context, /, file: Path | None, verify: bool) -> None:
    """Back up the whole database to FILE, or to a new file in the folder of backups: tokens and logs too.

    Servers may go on writing: the backup is of one moment. Anyone who has the file can read every memory in it. `-` as FILE
    writes it to stdout, for a program that encrypts it: folklore backup - | age -r KEY > FILE
    """
    if file == _PIPE:
        _back_up_to_pipe(ctx, verify=verify)
        return
    target = None if file is None else file.absolute()

    async def work(store: Store) -> Archive:
        archive = await back_up(store, target)
        if verify:
            await compare(store, archive)
        return archive

    archive = _with_store(ctx, work)
    memories = amount(archive.manifest.contents.memories, "memory")
    text = f"{memories} backed up to {archive.path} ({_megabytes(archive)} MB)"
    if verify:
        text += "; a copy restored from it was the same"
    print_either(_document(archive), text)


@click.command()
@click.argument(
    "file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path)
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@context_and_json
def restore(ctx: click.Context, /, file: Path, yes: bool) -> None:
    """Replace the whole database by the backup in FILE, and back up what was there before.

    The copy is restored, compared and migrated next to the present database, which stays in use until then. On any
    failure nothing has changed. `-` as FILE reads stdin: age -d -i KEYFILE FILE | folklore restore - --yes
    """
    if local_settings(ctx).read_only:
        raise Refused(
            "read_only is on, and a restore replaces the database.",
            hint="Set it to false for this command.",
        )
    if file == _PIPE:
        if not yes:
            raise InvalidInput(
                "--yes", "is needed for a backup from a pipe.", hint="Repeat it."
            )
        with _from_pipe(ctx) as archive:
            restored = _with_store(ctx, lambda store: put_back(store, archive))
    else:
        archive = Archive.read(file.absolute())
        if not yes:
            _confirm(ctx, archive)
        restored = _with_store(ctx, lambda store: put_back(store, archive))
    points = [str(path) for path in restored.restore_points]
    lines = [f"{amount(restored.memories, 'memory')} restored"]
    lines += [f"What was there before: {path}" for path in points]
    value = {"memories": restored.memories, "restore_points": points}
    print_either(value, "\n".join(lines))


backups = click.Group("backups", help="Backups in the folder of backups.")


@backups.command("list")
@context_and_json
def list_(ctx: click.Context) -> None:
    """List the backups, newest first."""
    backups = archives(backup_folder(local_settings(ctx)))
    zone = zone_of(ctx)
    columns = ["created", "memories", "MB", "verified", "file"]
    rows = [_row(archive, zone) for archive in backups]
    value = [_document(archive) for archive in backups]
    print_either(value, lambda: print_table(columns, rows))


def _row(archive: Archive, zone: tzinfo) -> list[object]:
    verified: object = "no"
    if archive.verified_at:
        verified = archive.verified_at.astimezone(zone)
    elif archive.changed:
        verified = "changed since"
    manifest = archive.manifest
    return [
        manifest.created_at.astimezone(zone),
        manifest.contents.memories,
        _megabytes(archive),
        verified,
        str(archive.path),
    ]


def _megabytes(archive: Archive) -> str:
    return f"{archive.size / 2**20:,.1f}"


@backups.command("verify")
@click.argument(
    "file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path)
)
@context_and_json
def verify_(ctx: click.Context, /, file: Path) -> None:
    """Restore a copy from the backup in FILE (-: stdin), and compare every row and twenty answers."""
    if file == _PIPE:
        with _from_pipe(ctx) as archive:
            _with_store(ctx, lambda store: compare(store, archive))
        document = {"file": "-", **_described(archive.manifest)}
    else:
        archive = Archive.read(file.absolute())
        _with_store(ctx, lambda store: compare(store, archive))
        document = _document(archive)
    print_either(
        document, f"{archive.name} is whole: a copy restored from it was the same"
    )


@backups.command("prune")
@click.option(
    "--keep",
    type=click.IntRange(1),
    help="Keep so many. Default: the setting backup.keep.",
)
@context_and_json
def prune_(ctx: click.Context, /, keep: int | None) -> None:
    """Delete all backups but the newest, those before restores apart; the newest verified one stays in any case."""
    settings = local_settings(ctx)
    count = keep or settings.backup.keep
    if not count:
        raise click.UsageError("Give --keep: the setting backup.keep is 0.")
    deleted = [str(path) for path in prune(backup_folder(settings), count)]
    text = "\n".join(f"deleted {path}" for path in deleted)
    print_either({"deleted": deleted}, text or "There is nothing to delete.")


def _with_store(ctx: click.Context, work: Callable[[Store], Awaitable[Value]]) -> Value:
    """Run work on the database and its backups; the schema is brought up to date unless it is read-only."""
    settings = local_settings(ctx)

    async def whole() -> Value:
        store = await backed_up_store(settings)
        if not settings.read_only:
            await migrate(store.dsn)
        return await work(store)

    return asyncio.run(whole())


def _back_up_to_pipe(ctx: click.Context, *, verify: bool) -> None:
    """Write a backup to stdout, and say so on stderr."""
    if verify or wants_json():
        raise click.UsageError(
            "--verify and --json need a FILE: stdout has the backup itself. "
            "`folklore backups verify -` reads one from a pipe."
        )
    if sys.stdout.isatty():
        raise click.UsageError(
            "A backup is not for a terminal: pipe it, or give a FILE."
        )
    manifest = _with_store(ctx, lambda store: pipe(store, sys.stdout.buffer))
    click.echo(
        f"{amount(manifest.contents.memories, 'memory')} backed up to stdout", err=True
    )


def _from_pipe(ctx: click.Context) -> AbstractContextManager[Archive]:
    """Read a backup from stdin."""
    return received(sys.stdin.buffer, backup_folder(local_settings(ctx)))


def _confirm(ctx: click.Context, archive: Archive) -> None:
    created = time_text(archive.manifest.created_at, zone_of(ctx))
    memories = archive.manifest.contents.memories
    confirm(
        f"Replace everything that is stored by the {amount(memories, 'memory')} of {created}?"
    )


def _document(archive: Archive) -> dict[str, object]:
    verified = archive.verified_at
    return {
        "file": str(archive.path),
        **_described(archive.manifest),
        "bytes": archive.size,
        "verified_at": verified.isoformat() if verified else None,
        "changed": archive.changed,
    }


def _described(manifest: Manifest) -> dict[str, object]:
    return {
        "created_at": manifest.created_at.isoformat(),
        "memories": manifest.contents.memories,
        "postgres": manifest.postgres,
        "model": manifest.model,
        "schema": manifest.contents.migrations[-1],
    }
