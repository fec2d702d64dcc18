"""Distribution of the tables over the nodes of a Citus cluster."""

from collections.abc import Mapping, Sequence

import asyncpg

from folklore.db.driver_errors import connected
from folklore.db.sql_loader import statement
from folklore.errors import Refused
from folklore.phases import phase

_LONGEST_SECONDS = 6 * 3600.0  # of one table
_ALONE = "on the coordinator alone"
_UNSET = "missing: a token sees nothing"


async def distribute(dsn: str, *, dry_run: bool) -> Mapping[str, Sequence[str]]:
    """Distribute a database and check it; return the commands by step, of those that were still to do.

    Raises Refused. Functions and policies are one transaction, the tables another: a later call goes on.
    """
    done: dict[str, Sequence[str]] = {}
    for step in ("settings", "functions", "tables"):
        async with connected(
            dsn
        ) as connection:  # settings of the role hold for new connections
            done[step] = await _commands_of(connection, step)
            with phase(f"Distributing: {step}") as advance:
                async with connection.transaction():
                    for number, command in enumerate(() if dry_run else done[step]):
                        await connection.execute(command, timeout=_LONGEST_SECONDS)
                        advance(number + 1, len(done[step]))
    if not dry_run and (left := await undistributed(dsn)):
        raise Refused(f"Not distributed: {', '.join(left)}.")
    return {step: commands for step, commands in done.items() if commands}


async def placed(dsn: str) -> Mapping[str, str]:
    """Return where each table is, and the settings of roles that are missing; nothing without a cluster."""
    async with connected(dsn) as connection:
        if not await connection.fetchval(statement("backup/is_cluster").sql):
            return {}
        rows = await connection.fetch(statement("distribute/placed").sql)
        places = {name: place or _ALONE for name, place in rows}
        missing = await connection.fetch(statement("distribute/settings").sql)
        return places | ({"settings of roles": _UNSET} if missing else {})


async def undistributed(dsn: str) -> list[str]:
    """Return the tables that are on the coordinator alone, and the missing settings; none without a cluster."""
    return [
        name for name, place in (await placed(dsn)).items() if place in (_ALONE, _UNSET)
    ]


async def _commands_of(connection: asyncpg.Connection, step: str) -> list[str]:
    """Return the commands of a step that are still to do. Raises Refused if that is not possible."""
    if not await connection.fetchval(statement("backup/is_cluster").sql):
        raise Refused(
            "This database has no extension citus.",
            hint="docs/how-to/citus.md says what comes before.",
        )
    if doubts := [
        row["doubt"]
        for row in await connection.fetch(statement("distribute/doubts").sql)
    ]:
        raise Refused(" ".join(doubts))
    if step == "settings":
        await connection.execute(
            "select '[1]'::halfvec"
        )  # a role may set the settings of an extension that is loaded
        return await _commands(connection, "settings")
    tables = await _commands(connection, "tables")
    if not tables:
        return []
    if step == "functions":
        return await _commands(connection, "functions", "policies", "grants")
    keys = await connection.fetch(statement("distribute/keys").sql)
    sequential = "set local citus.multi_shard_modify_mode = 'sequential'"
    return [
        sequential,
        *(key["drop"] for key in keys),
        *tables,
        *(key["command"] for key in keys if key["command"]),
    ]


async def _commands(connection: asyncpg.Connection, *names: str) -> list[str]:
    rows = [
        row
        for name in names
        for row in await connection.fetch(statement(f"distribute/{name}").sql)
    ]
    return [row["command"] for row in rows]
