"""Distribution of the tables over the nodes of a Citus cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from secrets import token_bytes
from uuid import uuid4

import asyncpg

from folklore.db.driver_errors import closed_after
from folklore.db.roles import begin_as_token
from folklore.db.sql_loader import statement
from folklore.errors import Refused
from folklore.phases import phase

_LONGEST_SECONDS = 6 * 3600.0  # of one table
# Whether a query in these roles sees the one memory of a check.
_SEEN = {"the owner": True, "a token": True, "a token without a grant": False}


async def distribute(dsn: str, *, dry_run: bool) -> Mapping[str, Sequence[str]]:
    """Distribute a database and check it; return the commands by step, of those that were still to do.

    Raises Refused. Functions and policies are one transaction, the tables another: a later call goes on.
    """
    done: dict[str, Sequence[str]] = {}
    for step in ("settings", "functions", "tables"):
        async with _connected(dsn) as connection:  # settings of the role hold for new connections
            done[step] = await _commands_of(connection, step)
            with phase(f"Distributing: {step}") as advance:
                async with connection.transaction():
                    for number, command in enumerate(() if dry_run else done[step]):
                        await connection.execute(command, timeout=_LONGEST_SECONDS)
                        advance(number + 1, len(done[step]))
    if not dry_run and (wrong := await problems(dsn)):
        raise Refused(" ".join(wrong), hint="`folklore db distribute` goes on where it ended.")
    return {step: commands for step, commands in done.items() if commands}


async def placed(dsn: str) -> Mapping[str, str]:
    """Return where each table is; nothing without a cluster."""
    async with _connected(dsn) as connection:
        if not await connection.fetchval(statement("backup/is_cluster").sql):
            return {}
        rows = await connection.fetch(statement("distribute/placed").sql)
        return {name: place or "on the coordinator alone" for name, place in rows}


async def problems(dsn: str) -> list[str]:
    """Return what is wrong on a cluster: tables left over, roles that see too little or too much."""
    async with _connected(dsn) as connection:
        left = [name for name, place in await connection.fetch(statement("distribute/placed").sql) if place is None]
        found = [f"On the coordinator alone: {', '.join(left)}."] if left else []
        seen = {} if left else await _seen(connection)
    return found + [f"A query as {who} sees {seen[who]} memories." for who in seen if seen[who] != _SEEN[who]]


async def _seen(connection: asyncpg.Connection) -> dict[str, int]:
    """Return how many of one memory each role sees; nothing stays."""
    seen, now = dict[str, int](), datetime.now(UTC)
    values: dict[str, object] = {"space": (space := uuid4()), "now": now, "until": now + timedelta(minutes=1)}
    values |= {
        "namespace": space,
        "id": space,
        "name": f"distribute-{space}",
        "language": "english",
        "description": None,
    }
    values |= {
        "shared": "never",
        "created_at": now,
        "created_by": "folklore",
        "namespaces": [space],
        "roles": ["reader"],
    }

    async def write(*parts: str) -> None:
        for part in parts:
            found = statement(part if "/" in part else f"distribute/check_{part}")
            await connection.fetch(found.sql, *(values[name] for name in found.parameters))

    try:
        await write("namespaces/insert", "memory", "principal")
        for who in _SEEN:
            key = hashlib.sha256(token_bytes(32))
            values |= {"token": uuid4(), "digest": hashlib.sha256(key.digest()).digest()}
            await write("token", *(["principals/insert_grants"] if who == "a token" else []))
            await connection.execute("begin" if who == "the owner" else begin_as_token(key.hexdigest(), "read only"))
            seen[who] = int(await connection.fetchval(statement("distribute/check").sql, values["space"]))
            await connection.execute("commit")
    finally:
        await connection.execute("rollback")
        await write("end_principal", "namespaces/erase_memories", "namespaces/erase")
    return seen


async def _commands_of(connection: asyncpg.Connection, step: str) -> list[str]:
    """Return the commands of a step that are still to do. Raises Refused if that is not possible."""
    if not await connection.fetchval(statement("backup/is_cluster").sql):
        raise Refused(
            "This database has no extension citus.", hint="docs/how-to/citus.md has the steps before this one."
        )
    if doubts := [row["doubt"] for row in await connection.fetch(statement("distribute/doubts").sql)]:
        raise Refused(" ".join(doubts))

    async def commands(name: str) -> list[str]:
        return [row["command"] for row in await connection.fetch(statement(f"distribute/{name}").sql)]

    if step == "settings":
        await connection.execute("select '[1]'::halfvec")  # a role may set the settings of an extension that is loaded
        return await commands(step)
    tables = await commands("tables")
    if not tables:
        return []
    if step == "functions":
        return [command for name in ("functions", "policies", "grants") for command in await commands(name)]
    keys = await connection.fetch(statement("distribute/keys").sql)
    sequential = "set local citus.multi_shard_modify_mode = 'sequential'"
    return [sequential, *(key["drop"] for key in keys), *tables, *(key["command"] for key in keys if key["command"])]


def _connected(dsn: str) -> AbstractAsyncContextManager[asyncpg.Connection]:
    return closed_after(asyncpg.connect(dsn, timeout=10, statement_cache_size=0))
