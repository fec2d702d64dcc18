"""Back up a database, verify a backup in a copy, and restore one in the place of the present database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from folklore import __version__
from folklore.backup.archive import (
    RESTORE_POINT,
    SUFFIX,
    Archive,
    Describe,
    Dump,
    Manifest,
    archives,
    remove_parts,
    write_archive,
    write_to,
)
from folklore.backup.contents import Contents, read_contents
from folklore.backup.programs import find_programs
from folklore.db.database import Database, Moment, PoolLimits
from folklore.db.databases import Databases
from folklore.db.migrate import migrate, refuse_unknown, server_info
from folklore.db.stores.upkeep.planner_statistics import PlannerStatistics
from folklore.disk import free_space
from folklore.errors import Conflict, Refused
from folklore.phases import phase

# Free space that a backup leaves on its disk, and a copy on the disk of the embedded engine, in bytes.
_LEFT_FREE = 256 << 20


@dataclass(frozen=True, slots=True)
class Store:
    """The database to back up, the folder of its backups, and the disk of the embedded engine's data."""

    dsn: str
    folder: Path
    disk: Path | None = None

    def new_path(self, name: str = "folklore") -> Path:
        """Return the path of a new backup in the folder, named after the time."""
        time = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}"[:-3]
        return self.folder / f"{name}-{time}Z{SUFFIX}"


@dataclass(frozen=True, slots=True)
class Restored:
    """A restore: the number of memories, and the backups of what was there before, if it held any."""

    memories: int
    restore_points: tuple[Path, ...]


async def back_up(store: Store, path: Path | None = None) -> Archive:
    """Write a backup of one moment of the database. Raises Refused on Citus and without free space."""
    target = path or store.new_path()
    async with _moment(store) as (dump, describe, size):
        _require_space(target.parent, size, "backup")
        return await write_archive(target, dump, describe)


async def pipe(store: Store, out: BinaryIO) -> Manifest:
    """Write a backup of one moment of the database to a pipe. Raises Refused on Citus."""
    async with _moment(store) as (dump, describe, _size):
        return await write_to(out, dump, describe)


@asynccontextmanager
async def _moment(store: Store) -> AsyncIterator[tuple[Dump, Describe, int]]:
    """Yield what dumps and what describes one moment of the database, and the bytes that it takes there."""
    info = await server_info(store.dsn)
    programs = find_programs(info.major)
    moment = Moment(store.dsn)
    async with moment.reading() as snapshot:
        await _refuse_cluster(moment)
        at = datetime.now(UTC)

        async def describe() -> Manifest:
            async with moment.session() as session:
                row = await session.row("backup/model")
            with phase("Reading every row"):
                contents = await read_contents(moment)
            return Manifest(
                created_at=at,
                folklore=__version__,
                postgres=info.version,
                major=info.major,
                pgvector=info.pgvector or "",
                bytes=info.bytes,
                model=row["model"] if row else None,
                contents=contents,
            )

        async def dump(out: BinaryIO) -> None:
            await programs.dump(store.dsn, snapshot, out)

        with phase("Dumping the database"):
            yield dump, describe, info.bytes


async def verify(store: Store, archive: Archive) -> None:
    """Restore a backup into a copy, compare every row and answer, and mark the file. Raises Conflict."""
    async with Databases.managed(store.dsn) as databases:
        await _settle_former(store, databases)
        digest = await asyncio.to_thread(archive.digest)
        try:
            await _restore_copy(store, databases, archive)
        finally:
            await databases.drop(databases.scratch)
    archive.mark_verified(digest)


async def restore(store: Store, archive: Archive) -> Restored:
    """Put the contents of a backup in the place of the database, and keep a backup of what was there.

    On any failure the database is as before. Raises SchemaAhead, SchemaBehind, Conflict, Refused.
    """
    refuse_unknown(set(archive.manifest.contents.migrations), "backup")
    async with Databases.managed(store.dsn) as databases:
        points = await _settle_former(store, databases)
        in_place = False
        try:
            copy = await _restore_copy(store, databases, archive)
            await migrate(copy)
            async with Database(copy, PoolLimits(minimum=0, maximum=2)) as database:
                await PlannerStatistics(database).analyze()
            with phase("Backing up the present database"):
                previous = await back_up(store, store.new_path(RESTORE_POINT))
            contents = previous.contents()
            if previous.manifest.contents.memories:
                points.append(previous.path)
            else:
                previous.delete()
            with phase("Replacing the database"):
                former = await databases.put_in_place()
            in_place = True
        finally:
            if not in_place:
                await databases.drop(databases.scratch)
        points += await _keep_later_writes(replace(store, dsn=former), contents)
        await databases.drop(databases.former)
    return Restored(archive.manifest.contents.memories, tuple(points))


def latest_verified(folder: Path) -> Archive | None:
    """Return the newest backup of a folder that was verified."""
    return next(
        (archive for archive in archives(folder) if archive.verified_at is not None),
        None,
    )


def prune(folder: Path, keep: int) -> list[Path]:
    """Delete all backups of a folder but the newest, and return them; the newest verified one is kept in any case.

    Backups that restores made are counted apart, so that they push no other out.
    """
    remove_parts(folder)
    verified = latest_verified(folder)
    everything = archives(folder)
    if verified:
        exempt = {verified.path}
    else:
        exempt = set()
    for restore_points in (False, True):
        exempt |= set(
            [one.path for one in everything if one.is_restore_point == restore_points][
                :keep
            ]
        )
    surplus = [archive for archive in everything if archive.path not in exempt]
    for archive in surplus:
        archive.delete()
    return [archive.path for archive in surplus]


async def _restore_copy(store: Store, databases: Databases, archive: Archive) -> str:
    """Restore a backup into the scratch database and compare its contents; return its address."""
    if store.disk is not None:
        _require_space(store.disk, archive.manifest.bytes, "copy")
    major = (await server_info(store.dsn)).major
    programs = find_programs(major)
    copy = await databases.create_scratch()
    with phase("Restoring a copy"), archive.dump() as dump:
        await programs.restore(copy, dump)
    moment = Moment(copy)
    with phase("Comparing the copy"):
        async with moment.reading():
            actual = await read_contents(moment)
            # Another major version may stem words otherwise, so that questions find other memories.
            same_major = major == archive.manifest.major
            expected = archive.contents()
            differences = expected.differences(actual, answers=same_major)
            if differences and archive.manifest.folklore_backup == 1:
                whole_rows = await read_contents(moment, whole_rows=True)
                differences = expected.differences(whole_rows, answers=same_major)
    if differences:
        raise Conflict(
            f"A copy restored from {archive.name} differs from what was backed up: {'; '.join(differences)}.",
            hint="Do not rely on this file: back up again, and report this.",
        )
    return copy


async def _settle_former(store: Store, databases: Databases) -> list[Path]:
    """Back up and drop what a killed restore has left of the database that it replaced; return the files."""
    files = []
    for name in await databases.left_formers():
        with phase(f"Backing up {name}, which a killed restore replaced"):
            former = await back_up(
                replace(store, dsn=databases.address_of(name)),
                store.new_path(RESTORE_POINT),
            )
        files.append(former.path)
        await databases.drop(name)
    return files


async def _keep_later_writes(former: Store, contents: Contents) -> list[Path]:
    """Back up the replaced database once more if it was written to after its first backup; return the file."""
    moment = Moment(former.dsn)
    async with moment.reading():
        unchanged = not contents.differences(await read_contents(moment))
    if unchanged:
        return []
    return [(await back_up(former, former.new_path(RESTORE_POINT))).path]


async def _refuse_cluster(moment: Moment) -> None:
    """Raise Refused on Citus: what pg_dump writes there makes no distributed tables."""
    async with moment.session() as session:
        row = await session.row("backup/is_cluster")
    if row is not None and row["is_cluster"]:
        raise Refused(
            "Citus has its own backups, of all nodes.",
            hint="See its documentation, or `folklore export`.",
        )


def _require_space(folder: Path, needed: int, purpose: str) -> None:
    free = free_space(folder)
    if free < needed + _LEFT_FREE:
        raise Refused(
            f"The disk of {folder} has {free / 2**20:,.0f} MB free; the {purpose} may need "
            f"{(needed + _LEFT_FREE) / 2**20:,.0f} MB.",
            hint="Free some space, or name a file on another disk.",
        )
