"""Distribution of the tables over the nodes of a Citus cluster."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from folklore.db.driver_errors import connected
from folklore.db.roles import TOKEN_ROLE
from folklore.db.sql_loader import statement
from folklore.errors import Refused, Unavailable
from folklore.phases import phase

_LONGEST_SECONDS = 6 * 3600.0  # of one table
_FUNCTIONS = ("functions", "tokens", "policies", "grants")
_ALONE = "on the coordinator alone"
_UNSET = "missing: a token sees nothing"
# Milliseconds until a node that accepts a connection and says nothing counts as one that does not answer.
_NODE_PATIENCE = 2000


@dataclass(frozen=True, slots=True)
class SilentNode:
    """A node of the cluster that does not answer.

    `number` is its id in pg_dist_node, `role` who asked, and `reason` what Postgres says.
    """

    number: int
    address: str
    role: str
    reason: str

    def __str__(self) -> str:
        return f"node {self.number} at {self.address} does not answer {self.role}: {self.reason}"


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


async def after_migrations(dsn: str) -> None:
    """Give a database that is distributed already what new migrations need there; do nothing to another one.

    Functions and policies get the form that a cluster needs, and new tables are distributed.
    """
    placements = await placed(dsn)
    if placements.get("memories", _ALONE) == _ALONE:
        return
    async with connected(dsn) as connection, connection.transaction():
        for command in await _commands(connection, *_FUNCTIONS):
            await connection.execute(command, timeout=_LONGEST_SECONDS)
    if await undistributed(dsn):
        await distribute(dsn, dry_run=False)


async def require_nodes(dsn: str) -> int:
    """Read from every shard as the owner and in the role for tokens; return how many nodes answered.

    A node is connected to in the role of the caller. Returns 0 without a cluster. Raises Unavailable with the role,
    the node and what Postgres says.
    """
    if silent := await silent_nodes(dsn):
        raise Unavailable(
            "; ".join(map(str, silent)),
            hint="Start it, or see its log; calls that need it fail meanwhile.",
        )
    async with _patient(dsn) as connection:
        if not await _is_cluster(connection):
            return 0
        await _read_every_shard(connection, "the owner of the tables")
        async with connection.transaction():
            await connection.execute(f"set local role {TOKEN_ROLE}")
            await _read_every_shard(connection, f"the role {TOKEN_ROLE}")
        return int(await connection.fetchval(statement("distribute/count_nodes").sql))


async def _read_every_shard(connection: asyncpg.Connection, role: str) -> None:
    try:
        await connection.execute(statement("distribute/every_shard").sql)
    except asyncpg.PostgresError as error:
        raise Unavailable(
            f"As {role}, Postgres says: {error}.",
            hint="docs/how-to/citus.md says how nodes reach each other in both roles.",
        ) from error


async def silent_nodes(dsn: str) -> list[SilentNode]:
    """Return the nodes of a cluster that do not answer within two seconds; none without a cluster."""
    async with _patient(dsn) as connection:
        if not await _is_cluster(connection):
            return []
        rows = await connection.fetch(statement("distribute/nodes").sql)
    return [
        SilentNode(row["node"], row["address"], row["role"], row["reason"])
        for row in rows
    ]


async def is_cluster(dsn: str) -> bool:
    """Return True if the database has the extension Citus."""
    async with connected(dsn) as connection:
        return await _is_cluster(connection)


async def placed(dsn: str) -> Mapping[str, str]:
    """Return where each table is, and the settings of roles that are missing; nothing without a cluster."""
    async with _patient(dsn) as connection:
        if not await _is_cluster(connection):
            return {}
        rows = await connection.fetch(statement("distribute/placed").sql)
        placements = {name: placement or _ALONE for name, placement in rows}
        missing = await connection.fetch(statement("distribute/settings").sql)
        return placements | ({"settings of roles": _UNSET} if missing else {})


async def undistributed(dsn: str) -> list[str]:
    """Return the tables that are on the coordinator alone, and the missing settings; none without a cluster."""
    return [
        name
        for name, placement in (await placed(dsn)).items()
        if placement in (_ALONE, _UNSET)
    ]


async def silent_namespaces(dsn: str) -> frozenset[UUID] | None:
    """Return the namespaces on nodes that do not answer; None if every node answers, or without a cluster."""
    if not (silent := await silent_nodes(dsn)):
        return None
    numbers = [node.number for node in silent]
    async with _patient(dsn) as connection:
        rows = await connection.fetch(
            statement("distribute/namespaces_on").sql, numbers
        )
    return frozenset(row["id"] for row in rows)


@asynccontextmanager
async def _patient(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """Open a connection that waits two seconds for a node that does not answer, and not for thirty."""
    async with connected(dsn) as connection:
        await connection.execute(
            f"set citus.node_connection_timeout = {_NODE_PATIENCE}"
        )
        yield connection


async def _is_cluster(connection: asyncpg.Connection) -> bool:
    return bool(await connection.fetchval(statement("backup/is_cluster").sql))


async def _commands_of(connection: asyncpg.Connection, step: str) -> list[str]:
    """Return the commands of a step that are still to do. Raises Refused if that is not possible."""
    if not await _is_cluster(connection):
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
        # a role may set the settings of an extension that is loaded
        await connection.execute("select '[1]'::halfvec")
        return await _commands(connection, "settings")
    tables = await _commands(connection, "tables")
    if not tables:
        return []
    if step == "functions":
        return await _commands(connection, *_FUNCTIONS)
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
