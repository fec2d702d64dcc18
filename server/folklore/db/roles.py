"""The database role for requests with a token. It owns nothing; row-level security limits it to the token's grants."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

import asyncpg

from folklore.db.sql_loader import statement
from folklore.log import get_logger

log = get_logger(__name__)

TOKEN_ROLE = "folklore_app"  # noqa: S105  (a name, no password)

# Two databases of one cluster that are migrated at the same time change the same list of roles.
_TRIES = 20

Mode = Literal["read only", "read write", "isolation level repeatable read, read only"]


@dataclass(frozen=True, slots=True)
class TokenTransaction:
    """A transaction in the role for tokens, which sees what one token may see.

    `key` are 64 hexadecimal digits.
    """

    key: str = field(repr=False)
    mode: Mode

    async def begin(self, connection: asyncpg.Connection) -> None:
        """Begin it on a connection: two round trips."""
        enter = statement("roles/enter")
        await connection.execute(f"begin {self.mode}")
        await connection.execute(enter.sql, self.key)


async def missing_commands(connection: asyncpg.Connection) -> list[str]:
    """Return the commands that the role still needs, in order. One statement."""
    return [
        row["command"] for row in await connection.fetch(statement("roles/missing").sql)
    ]


async def ensure_role(connection: asyncpg.Connection) -> None:
    """Create the role, which only requests with a token need, and grant its privileges as far as this role may."""
    attempts: set[str] = set()
    for _ in range(_TRIES):
        commands = await missing_commands(connection)
        if attempts.issuperset(commands):
            return
        for command in commands:
            try:
                async with connection.transaction():
                    await connection.execute(command)
            except (
                asyncpg.InsufficientPrivilegeError,
                asyncpg.ReadOnlySQLTransactionError,
            ) as error:
                log.warning("role_not_complete", command=command, reason=str(error))
            except (asyncpg.UndefinedObjectError, asyncpg.DuplicateObjectError):
                pass  # the role could not be created, or another process was faster
            except (asyncpg.UniqueViolationError, asyncpg.InternalServerError):
                await asyncio.sleep(0.05)  # another process changes the list of roles
                continue
            # once: for a grant without the right to it Postgres may only warn
            attempts.add(command)
