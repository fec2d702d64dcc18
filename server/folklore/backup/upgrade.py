"""Upgrade of the engine's data to another major version: every database is copied to a new server, and compared."""

import asyncio
from functools import partial
from pathlib import Path
from time import monotonic

from folklore.backup.contents import read_contents
from folklore.backup.programs import Programs
from folklore.db import databases
from folklore.db.database import Moment
from folklore.db.migrate import server_info
from folklore.engine import Copied, Engine
from folklore.errors import Conflict, EngineFailed, FolkloreError
from folklore.log import get_logger
from folklore.phases import phase

log = get_logger(__name__)

_STAYS = "The data is as it was."


def upgrade_engine(engine: Engine) -> Path | None:
    """Upgrade data of an older major version, and return the directory in which the old data is kept.

    None if the data is not of an older version. The engine is stopped. Raises EngineFailed, DiskFull.
    """
    began = monotonic()
    old_data = engine.upgrade(_copy)
    if old_data is not None:
        log.warning(
            "engine_upgraded",
            seconds=round(monotonic() - began, 1),
            old_data=str(old_data),
        )
    return old_data


def _copy(older: Copied, newer: Copied) -> None:
    try:
        asyncio.run(_copy_all(older, newer))
    except EngineFailed:
        raise
    except FolkloreError as error:
        hint = f"{_STAYS} Correct this and run `folklore db upgrade`, or use the version of Folklore that wrote it."
        raise EngineFailed(
            f"The data could not be upgraded: {error.message}", hint=hint
        ) from error


async def _copy_all(older: Copied, newer: Copied) -> None:
    """Copy the roles, every database and the settings of `alter system`, and compare roles and databases."""
    old = await server_info(older.dsn)
    new = await server_info(newer.dsn)
    if old.offered is None:
        hint = f"Install it (Debian: `apt install postgresql-{old.major}-pgvector`), then run `folklore db upgrade`."
        raise EngineFailed(
            f"{old.version} in {older.programs.folder} has no pgvector.", hint=hint
        )
    log.warning(
        "engine_upgrade_began", old=old.version, new=new.version, bytes=old.bytes
    )
    cluster = await databases.read_cluster(older.dsn)
    maintenance = databases.address_of(newer.dsn, databases.MAINTENANCE)
    await _programs(older).copy_roles(older.dsn, _programs(newer), maintenance)
    with phase(
        f"Upgrading the database from {old.version} to {new.version}"
    ) as advance:
        for done, name in enumerate(cluster.databases):
            advance(done, len(cluster.databases))
            await _copy_database(older, newer, name)
    if rejects := await databases.copy_settings(older.dsn, newer.dsn):
        log.warning("engine_settings_not_taken_over", settings=rejects)
    copied = await databases.read_cluster(newer.dsn)
    if copied != cluster:
        raise Conflict("The copy has other roles or databases.")


async def _copy_database(older: Copied, newer: Copied, name: str) -> None:
    """Copy a database and compare it. Every server has the one for maintenance, usually without tables.

    Raises Conflict if a row or an answer of a copy with Folklore's tables differs.
    """
    source = databases.address_of(older.dsn, name)
    target = databases.address_of(newer.dsn, name)
    exists = name == databases.MAINTENANCE
    if exists and not await databases.has_tables(source):
        return
    if not exists:
        await databases.drop_database(newer.dsn, name)
    into = target if exists else databases.address_of(newer.dsn, databases.MAINTENANCE)
    copy = partial(
        _programs(older).copy,
        source,
        newer=_programs(newer),
        target=into,
        create=not exists,
    )
    if await databases.has_schema(source):
        moment = Moment(source)
        copied = Moment(target)
        async with moment.reading() as snapshot:
            contents = await read_contents(moment)
            await copy(snapshot)
        async with copied.reading():
            # Another major version may stem words otherwise, so that questions find other memories.
            differences = contents.differences(
                await read_contents(copied), answers=False
            )
        if differences:
            raise Conflict(
                f"The copy of the database {name} differs: {'; '.join(differences)}."
            )
    else:
        await copy(None)
    await _programs(newer).vacuum(target)


def _programs(server: Copied) -> Programs:
    return Programs(server.programs.folder)
