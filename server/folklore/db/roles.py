"""The role in which tokens are served: it owns nothing, and row-level security lets it see what its token opens."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Literal

import asyncpg
import structlog

from folklore.db.sql_loader import statement

log = structlog.get_logger(__name__)

MEMBER = "folklore_app"

# Two databases of one cluster that are migrated at once both touch the cluster's list of roles.
_TRIES = 20


Mode = Literal["read only", "read write", "isolation level repeatable read, read only"]


def entry(key: str, mode: Mode) -> str:
    """The command that begins a transaction of the token with this key (64 hexadecimal digits). One round trip."""
    return _enter().replace("{mode}", mode).replace("{key}", key)


@cache
def _enter() -> str:
    return (files("folklore.db") / "commands" / "enter.sql").read_text(encoding="utf-8")


async def lacking(connection: asyncpg.Connection) -> list[str]:
    """The commands that the role still needs, in order; none when all is well. One statement."""
    return [row["command"] for row in await connection.fetch(statement("role_lacks").sql)]


async def settle(connection: asyncpg.Connection) -> list[str]:
    """Make the role what it must be, as far as we may; returns the commands left to the database's administrator.

    Nothing else needs it: who serves no tokens can do without.
    """
    tried: set[str] = set()
    for _ in range(_TRIES):
        commands = await lacking(connection)
        if tried.issuperset(commands):
            return commands
        for command in commands:
            try:
                async with connection.transaction():
                    await connection.execute(command)
            except (asyncpg.InsufficientPrivilegeError, asyncpg.ReadOnlySQLTransactionError) as error:
                log.info("role_lacks", command=command, reason=str(error))
            except (asyncpg.UndefinedObjectError, asyncpg.DuplicateObjectError):
                pass  # of a role that may not be made; or somebody else was quicker
            except (asyncpg.UniqueViolationError, asyncpg.InternalServerError):
                await asyncio.sleep(0.05)  # somebody else is at it
                continue
            tried.add(command)  # once: where somebody has no right to give, Postgres may only warn
    return await lacking(connection)
