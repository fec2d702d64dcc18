"""Change of the embedded engine's major version: dumped by its own programs, restored, compared, and put in place."""

from __future__ import annotations

import asyncio
from pathlib import Path

from folklore.backup.operations import Report, Store, back_up, restore_copy, settle_former
from folklore.db.databases import Databases
from folklore.engine import Engine
from folklore.engine.binaries import MAJOR
from folklore.engine.major_change import MajorChange
from folklore.phases import phase


async def change_major(engine: Engine, backups: Path, report: Report = lambda _: None) -> None:
    """Take over the data of an older major version; on any failure the old data is as before, and still in place.

    Backups of databases that a killed restore has left go to the folder `backups`. Raises EngineFailed, Refused without
    free space, Conflict if the copy differs.
    """
    with phase("Changing the embedded database to another version of Postgres"):
        change = await asyncio.to_thread(MajorChange.begin, engine)
        if change is None:
            return
        try:
            await _copy(change, backups, report)
            report("putting the copy in place")
            await asyncio.to_thread(change.complete)
        finally:
            await asyncio.shield(asyncio.to_thread(change.end))
    report(f"Postgres {change.major} is now Postgres {MAJOR}")


async def _copy(change: MajorChange, backups: Path, report: Report) -> None:
    old, new = Store(change.old_dsn, backups), Store(change.new_dsn, backups, disk=change.folder)
    async with Databases.managed(old.dsn) as databases:
        await settle_former(old, databases, report)
    archive = await back_up(old, change.folder / "dump", report)
    async with Databases.managed(new.dsn, like=old.dsn) as databases:
        await restore_copy(new, databases, archive, report)
        await databases.put_in_place()
        await databases.drop(databases.former)
