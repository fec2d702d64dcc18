"""The role in which tokens are served: it owns nothing, and row-level security lets it see what its token opens."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files

import asyncpg
import structlog

from folklore.db.statements import statement

log = structlog.get_logger(__name__)

MEMBER = "folklore_app"

# Two databases of one cluster that are migrated at once both touch the cluster's list of roles.
_TRIES = 20


def entry(key: str) -> str:
    """The command that begins a transaction of the token with this key (64 hexadecimal digits). One round trip."""
    return _enter().replace("{key}", key)


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
    for _ in range(_TRIES):
        commands = await lacking(connection)
        if not commands:
            return []
        try:
            async with connection.transaction():
                for command in commands:
                    await connection.execute(command)
        except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError, asyncpg.InternalServerError):
            await asyncio.sleep(0.05)  # somebody else is at it
        except asyncpg.InsufficientPrivilegeError as error:
            log.info("role_not_made", role=MEMBER, reason=str(error))
            return commands
    return await lacking(connection)
