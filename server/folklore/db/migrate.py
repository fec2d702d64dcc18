"""The schema of a database: migrations, each applied once, and information about the server."""

import asyncio
import hashlib
import re
from collections.abc import Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import asyncpg

from folklore.db.database import Database
from folklore.db.distribute import after_migrations
from folklore.db.driver_errors import connected
from folklore.db.requirements import Unmet, read_unmet, refuse, unmet
from folklore.db.roles import ensure_role, missing_commands
from folklore.db.rows import made
from folklore.db.sql_loader import statement
from folklore.errors import DatabaseUnavailable, SchemaAhead, SchemaBehind
from folklore.phases import phase

# The key of the advisory lock for migrations ("folk" in ASCII).
_LOCK = 0x666F6C6B
_OLDEST_POSTGRES = 15
_LONGEST_SECONDS = 3600.0  # of one migration, which may rewrite a table
_LARGE = 250  # memories of a namespace whose words a migration packs
_OLDEST_PGVECTOR = (0, 8, 0)
_PACKED_AT_ONCE = 2_000  # memories whose words one transaction packs
# A command of a migration: up to a semicolon outside of comments, texts and bodies of functions.
_COMMAND = re.compile(
    r"(?:--[^\n]*|'[^']*'|\$(\w*)\$.*?\$\1\$|\bbegin atomic\b.*?\nend\b|[^;])+",
    re.DOTALL,
)
# The first migration of unreleased versions, whose tables were different.
_UNRELEASED = "0001_memories.sql"
# The checksums that the first three files were released with. 0001 has lost its comments, which schema.sql has, and
# what 0002 and 0003 removed.
_RELEASED = {
    "8b64bfa9edc0a120a7e8dfcbbb79654b17f66b28babf56c41b184ddefa45eb84",
    "a497a6ff77213748a07698c52cce041f1b09ffa39cc2f9a215884e2f20ce7195",
    "cc7dac04120e56a2fd8847a8a60b25eb078f5737b203d2104aba8a08f795973f",
}


@dataclass(frozen=True, slots=True)
class Migration:
    """A file of `migrations/`, applied in one transaction."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the text, to detect a file that was changed after it was applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()

    def commands(self) -> list[str]:
        """Return the commands one by one, as a cluster needs them."""
        return [
            command
            for match in _COMMAND.finditer(self.sql)
            if (command := match[0].strip())
        ]


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """Versions of a server, and one database on it. `version` is "PostgreSQL 18.4", `bytes` the database's size.

    `pgvector` is None if the extension was not created in the database, `offered` if the server does not have it.
    """

    version: str
    major: int
    pgvector: str | None
    offered: str | None
    database: str
    role: str
    bytes: int


def migrations() -> list[Migration]:
    """Return all migrations in order."""
    files = sorted((Path(__file__).parent / "migrations").glob("*.sql"))
    return [Migration(file.name, file.read_text(encoding="utf-8")) for file in files]


async def migrate(dsn: str, *, timeout: float = 60.0) -> list[str]:
    """Apply missing migrations and return their names.

    Raises DatabaseUnavailable if Postgres or pgvector is too old, DatabaseUnsuitable for a new database with the wrong
    encoding, locale or settings, SchemaAhead if a newer Folklore migrated the
    database, SchemaBehind if this role may not apply a migration or an unreleased version made the tables.
    """
    async with connected(dsn, timeout, command_timeout=timeout) as connection:
        require_versions(await _read_info(connection))
        await _require_fit(connection)
        applied = []
        if await _missing(connection):
            with phase("Creating the tables"):
                applied = await _apply_under_lock(connection, dsn, timeout)
        await ensure_role(connection)
        return applied


async def pending(dsn: str, *, timeout: float = 10.0) -> list[str]:
    """Return the names of missing migrations; change nothing. Raises SchemaAhead, SchemaBehind as `migrate`."""
    async with connected(dsn, timeout, command_timeout=timeout) as connection:
        return [migration.name for migration in await _missing(connection)]


async def missing_role_commands(dsn: str, *, timeout: float = 10.0) -> list[str]:
    """Return the commands that the role for tokens still needs, in a database without missing migrations."""
    async with connected(dsn, timeout, command_timeout=timeout) as connection:
        return await missing_commands(connection)


async def server_info(dsn: str, *, timeout: float = 10.0) -> ServerInfo:
    """Return information about a server. Raises DatabaseUnavailable."""
    async with connected(dsn, timeout, command_timeout=timeout) as connection:
        return await _read_info(connection)


async def read_requirements(dsn: str, *, timeout: float = 10.0) -> list[Unmet]:
    """Return what a database does not meet. Raises DatabaseUnavailable."""
    async with connected(dsn, timeout, command_timeout=timeout) as connection:
        return await read_unmet(connection)


async def check_requirements(database: Database) -> list[Unmet]:
    """Return what a database does not meet. One statement."""
    row = await database.row("server/requirements")
    if row is None:
        return []
    return unmet(row)


async def check_schema(database: Database) -> None:
    """Check that no migration is missing. One statement. Raises SchemaBehind, SchemaAhead."""
    async with database.session() as session:
        applied = {row["name"] for row in await session.rows("server/migrations")}
    _refuse_unknown(applied)
    if missing := _known_names() - applied:
        raise SchemaBehind(
            f"The database lacks {min(missing)}.", hint="Run `folklore db migrate`."
        )


async def _read_info(connection: asyncpg.Connection) -> ServerInfo:
    row = await connection.fetchrow(statement("server/info").sql)
    assert row is not None
    return made(ServerInfo, row, version=" ".join(row["version"].split()[:2]))


def require_versions(server: ServerInfo) -> None:
    """Raise DatabaseUnavailable if Postgres or pgvector is too old."""
    if server.major < _OLDEST_POSTGRES:
        raise DatabaseUnavailable(
            f"Postgres {server.major} is too old.",
            hint=f"Folklore needs Postgres {_OLDEST_POSTGRES} or newer.",
        )
    pgvector = server.pgvector or server.offered
    if pgvector is None:
        raise DatabaseUnavailable(
            "This Postgres has no pgvector.",
            hint="Install pgvector 0.8 or newer on the server (package postgresql-NN-pgvector).",
        )
    if tuple(int(part) for part in pgvector.split(".")[:3]) < _OLDEST_PGVECTOR:
        raise DatabaseUnavailable(
            f"pgvector {pgvector} is too old.",
            hint="Folklore needs 0.8; run `alter extension vector update`.",
        )


async def _require_fit(connection: asyncpg.Connection) -> None:
    """Raise DatabaseUnsuitable for what a new database does not meet, and for an encoding other than UTF8.

    A database with memories goes on as far as it can; `db migrate`, `doctor` and /readyz name the rest.
    """
    found = await read_unmet(connection)
    new = await connection.fetchval("select to_regclass('folklore_migrations') is null")
    refuse([item for item in found if new or item.code == "database_encoding"])


async def _missing(connection: asyncpg.Connection) -> list[Migration]:
    try:
        rows = await connection.fetch(statement("server/migrations").sql)
    except asyncpg.UndefinedTableError:
        return migrations()
    applied = {name: checksum for name, checksum, *_ in rows}
    _refuse_unknown(applied.keys())
    for migration in migrations():
        if applied.get(migration.name, migration.checksum) not in (
            migration.checksum,
            *_RELEASED,
        ):
            raise DatabaseUnavailable(
                f"The applied migration {migration.name} differs from this installation's."
            )
    return [migration for migration in migrations() if migration.name not in applied]


@cache
def _known_names() -> frozenset[str]:
    return frozenset(migration.name for migration in migrations())


def _refuse_unknown(applied: Set[str]) -> None:
    if _UNRELEASED in applied:
        raise SchemaBehind(
            "The tables of this database were made by an unreleased version of Folklore.",
            hint="Run `folklore export --embeddings all.jsonl` with that version, then `folklore import all.jsonl` "
            "with this one on an empty database (embedded engine: in another FOLKLORE_HOME).",
        )
    if newer := applied - _known_names():
        raise SchemaAhead(
            f"The database was migrated by a newer Folklore ({max(newer)}).",
            hint="Upgrade this installation.",
        )


async def _apply_under_lock(
    connection: asyncpg.Connection, dsn: str, timeout: float
) -> list[str]:
    # Polled outside a transaction: waiting would hold a snapshot, for which CREATE INDEX CONCURRENTLY would wait.
    deadline = asyncio.get_running_loop().time() + timeout
    while not await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK):
        if asyncio.get_running_loop().time() > deadline:
            raise DatabaseUnavailable(
                "Another process has been migrating the database for too long."
            )
        await asyncio.sleep(0.05)
    try:
        applied = []
        for migration in await _missing(connection):
            try:
                await _apply(connection, migration)
            except asyncpg.InsufficientPrivilegeError as error:
                raise SchemaBehind(
                    f"The database lacks {migration.name}, which this role may not apply ({error}).",
                    hint="Run `folklore db migrate` with a role that may.",
                ) from error
            applied.append(migration.name)
        if applied:
            await _pack_words(connection)
            await after_migrations(dsn)
        return applied
    finally:
        await connection.execute("select pg_advisory_unlock($1)", _LOCK)


async def _pack_words(connection: asyncpg.Connection) -> None:
    """Pack the words that a migration has made anew: a question reads all that are not packed.

    The job `postings` does that on a cluster, and for small namespaces.
    """
    if await connection.fetchval("select to_regclass('pg_dist_partition') is not null"):
        return
    due = statement("postings/due")
    begin = statement("postings/begin")
    pack = statement("postings/pack")
    rows = await connection.fetch(due.sql, *due.arguments({"most": _PACKED_AT_ONCE}))
    for namespace in [row["namespace"] for row in rows if row["fresh"] >= _LARGE]:
        packed = _PACKED_AT_ONCE
        while packed == _PACKED_AT_ONCE:
            async with connection.transaction():
                first = await connection.fetchval(
                    begin.sql, *begin.arguments({"namespace": namespace})
                )
                values = {
                    "namespace": namespace,
                    "next": first,
                    "most": _PACKED_AT_ONCE,
                }
                packed = await connection.fetchval(
                    pack.sql, *pack.arguments(values), timeout=_LONGEST_SECONDS
                )


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    record = statement("server/record_migration")
    values = {
        "name": migration.name,
        "checksum": migration.checksum,
        "now": datetime.now(UTC),
    }
    async with connection.transaction():
        await connection.execute(
            "set local lock_timeout = '30s'; set local citus.multi_shard_modify_mode = sequential"
        )
        for command in migration.commands():
            await connection.execute(command, timeout=_LONGEST_SECONDS)
        await connection.execute(record.sql, *record.arguments(values))
