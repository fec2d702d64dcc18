"""`folklore backup`, `folklore restore` and `folklore backups`."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import click

from folklore.backup.archive import Archive, archives
from folklore.backup.encryption import new_key as write_key
from folklore.backup.operations import (
    Store,
    back_up,
    prune,
    restore as put_back,
    verify as compare,
)
from folklore.cli.context import Value, local_settings, zone_of
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_table, time_text
from folklore.cli.screen import confirm
from folklore.db.migrate import migrate
from folklore.errors import Refused
from folklore.runtime import backed_up_store, backup_folder
from folklore.text.amounts import amount


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--verify",
    is_flag=True,
    help="Restore a copy from the file and compare every row and twenty answers.",
)
@context_and_json
def backup(ctx: click.Context, /, file: Path | None, verify: bool) -> None:
    """Back up the whole database to FILE, or to a new file in the folder of backups: tokens and logs too.

    Servers may go on writing: the backup is of one moment. Anyone who has the file can read every memory in it, unless
    the setting backup.key encrypts it.
    """
    target = None if file is None else file.absolute()

    async def work(store: Store) -> Archive:
        archive = await back_up(store, target)
        if verify:
            await compare(store, archive)
        return archive

    archive = _with_store(ctx, work)
    verified = "; a copy restored from it was the same" if verify else ""
    print_either(
        _document(archive),
        f"{amount(archive.manifest.contents.memories, 'memory')} backed up to {archive.path} "
        f"({archive.size / 2**20:,.1f} MB){verified}",
    )


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@context_and_json
def restore(ctx: click.Context, /, file: Path, yes: bool) -> None:
    """Replace the whole database by the backup in FILE, and back up what was there before.

    The copy is restored, compared and migrated next to the present database, which stays in use until then. On any
    failure nothing has changed.
    """
    if local_settings(ctx).read_only:
        raise Refused(
            "read_only is on, and a restore replaces the database.",
            hint="Set it to false for this command.",
        )
    archive = Archive.read(file.absolute())
    if not yes:
        created = time_text(archive.manifest.created_at, zone_of(ctx))
        memories = archive.manifest.contents.memories
        confirm(
            f"Replace everything that is stored by the {amount(memories, 'memory')} of {created}?"
        )

    restored = _with_store(ctx, lambda store: put_back(store, archive))
    points = [str(path) for path in restored.restore_points]
    lines = [
        f"{amount(restored.memories, 'memory')} restored",
        *(f"What was there before: {one}" for one in points),
    ]
    print_either(
        {"memories": restored.memories, "restore_points": points}, "\n".join(lines)
    )


backups = click.Group("backups", help="Backups in the folder of backups.")


@backups.command("list")
@context_and_json
def list_(ctx: click.Context) -> None:
    """List the backups, newest first."""
    backups = archives(backup_folder(local_settings(ctx)))
    zone = zone_of(ctx)
    rows = [
        (
            archive.manifest.created_at.astimezone(zone),
            archive.manifest.contents.memories,
            f"{archive.size / 2**20:,.1f}",
            verified.astimezone(zone)
            if (verified := archive.verified_at)
            else "changed since"
            if archive.changed
            else "no",
            str(archive.path),
        )
        for archive in backups
    ]
    columns = ["created", "memories", "MB", "verified", "file"]
    print_either(
        [_document(archive) for archive in backups], lambda: print_table(columns, rows)
    )


@backups.command("verify")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@context_and_json
def verify_(ctx: click.Context, /, file: Path) -> None:
    """Restore a copy from the backup in FILE, and compare every row and twenty answers."""
    archive = Archive.read(file.absolute())
    _with_store(ctx, lambda store: compare(store, archive))
    print_either(
        _document(archive),
        f"{archive.path} is whole: a copy restored from it was the same",
    )


@backups.command("new-key")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@context_and_json
def new_key(ctx: click.Context, /, file: Path) -> None:
    """Write a new key for encrypted backups to FILE, in the format of age; the setting backup.key names it.

    The backups cannot be read without the key: keep a copy of FILE in another place than theirs.
    """
    path = file.absolute()
    public = write_key(path)
    text = f"Keep a copy of {path} elsewhere: without it, no backup can be restored. Then set backup.key to it."
    print_either({"file": str(path), "public_key": public}, text)


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
    if not (count := keep or settings.backup.keep):
        raise click.UsageError("Give --keep: the setting backup.keep is 0.")
    deleted = [str(path) for path in prune(backup_folder(settings), count)]
    text = (
        "\n".join(f"deleted {path}" for path in deleted)
        or "There is nothing to delete."
    )
    print_either({"deleted": deleted}, text)


def _with_store(ctx: click.Context, work: Callable[[Store], Awaitable[Value]]) -> Value:
    """Run work on the database and its backups; the schema is brought up to date unless it is read-only."""
    settings = local_settings(ctx)

    async def whole() -> Value:
        store = await backed_up_store(settings)
        if not settings.read_only:
            await migrate(store.dsn)
        return await work(store)

    return asyncio.run(whole())


def _document(archive: Archive) -> dict[str, object]:
    manifest = archive.manifest
    verified = archive.verified_at
    return {
        "file": str(archive.path),
        "created_at": manifest.created_at.isoformat(),
        "memories": manifest.contents.memories,
        "bytes": archive.size,
        "postgres": manifest.postgres,
        "model": manifest.model,
        "schema": manifest.contents.migrations[-1],
        "verified_at": verified.isoformat() if verified else None,
        "changed": archive.changed,
        "encrypted": manifest.encrypted,
    }
