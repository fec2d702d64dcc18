"""The schema of a database: schema.sql, later changes of it, and information about the server.

An empty database gets schema.sql, which includes every later change. `migrations/` has these changes one by one, for
databases that an earlier schema.sql made.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
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
_SECONDS = 10.0  # of a statement that reads
_LONGEST_SECONDS = 3600.0  # of one migration, which may rewrite a table
_LARGE = 250  # memories of a namespace whose lexemes a migration packs
_OLDEST_PGVECTOR = (0, 8, 0)
_PACKED_AT_ONCE = 2_000  # memories whose lexemes one transaction packs
# A command of a migration: up to a semicolon outside of comments, texts and bodies of functions.
_COMMAND = re.compile(
    r"(?:--[^\n]*|'[^']*'|\$(\w*)\$.*?\$\1\$|\bbegin atomic\b.*?\nend\b|[^;])+",
    re.DOTALL,
)
# The name under which schema.sql is recorded in the databases that it made.
SCHEMA = "schema.sql"
# The last migration of the versions before schema.sql made databases. The tables that it left are those of schema.sql.
_LAST_OF_TRIALS = "0016_no_saved_presets.sql"


@dataclass(frozen=True, slots=True)
class Migration:
    """schema.sql, or a file of `migrations/`: applied in one transaction."""

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


def schema() -> Migration:
    """Return schema.sql, which makes an empty database."""
    file = Path(__file__).with_name(SCHEMA)
    if not file.exists():
        # A checkout: the file is at its top, and the package of a distribution has it here.
        file = Path(__file__).parents[3] / SCHEMA
    return Migration(SCHEMA, file.read_text(encoding="utf-8"))


@cache
def migrations() -> tuple[Migration, ...]:
    """Return the changes since the first schema.sql, in order."""
    files = sorted((Path(__file__).parent / "migrations").glob("*.sql"))
    return tuple(
        Migration(file.name, file.read_text(encoding="utf-8")) for file in files
    )


async def migrate(dsn: str, *, timeout: float = 60.0) -> list[str]:
    """Apply schema.sql to an empty database, and missing migrations to another one; return the names of what was applied.

    Raises DatabaseUnavailable if Postgres or pgvector is too old, DatabaseUnsuitable for a new database with the wrong
    encoding, locale or settings, SchemaAhead if a newer Folklore migrated the
    database, SchemaBehind if this role may not apply a migration or an early trial version made the tables.
    """
    async with connected(dsn, timeout, command_timeout=timeout) as connection:
        require_versions(await _read_info(connection))
        await _require_fit(connection)
        applied = []
        if await _missing_names(connection):
            with phase("Creating the tables"):
                applied = await _apply_under_lock(connection, dsn, timeout)
        await ensure_role(connection)
        return applied


async def pending(dsn: str) -> list[str]:
    """Return the names that `migrate` would return; change nothing. Raises SchemaAhead, SchemaBehind as it does."""
    async with connected(dsn, command_timeout=_SECONDS) as connection:
        return await _missing_names(connection)


async def missing_role_commands(dsn: str) -> list[str]:
    """Return the commands that the role for tokens still needs, in a database without missing migrations."""
    async with connected(dsn, command_timeout=_SECONDS) as connection:
        return await missing_commands(connection)


async def server_info(dsn: str) -> ServerInfo:
    """Return information about a server. Raises DatabaseUnavailable."""
    async with connected(dsn, command_timeout=_SECONDS) as connection:
        return await _read_info(connection)


async def read_requirements(dsn: str) -> list[Unmet]:
    """Return what a database does not meet. Raises DatabaseUnavailable."""
    async with connected(dsn, command_timeout=_SECONDS) as connection:
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
    refuse_unknown(applied)
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


async def _missing_names(connection: asyncpg.Connection) -> list[str]:
    applied = await _applied(connection)
    if applied is None:
        return [SCHEMA]
    names = [migration.name for migration in _later(applied)]
    if SCHEMA not in applied:
        names.insert(0, SCHEMA)
    return names


async def _applied(connection: asyncpg.Connection) -> Mapping[str, str] | None:
    """Return the checksums of what was applied, by name; None for an empty database. Raises SchemaAhead, SchemaBehind."""
    try:
        rows = await connection.fetch(statement("server/migrations").sql)
    except asyncpg.UndefinedTableError:
        return None
    applied = {row["name"]: row["checksum"] for row in rows}
    refuse_unknown(applied.keys())
    return applied


def _later(applied: Mapping[str, str]) -> list[Migration]:
    """Return the migrations that are not among `applied`. Raises DatabaseUnavailable if the text of one differs."""
    missing = []
    for migration in migrations():
        checksum = applied.get(migration.name)
        if checksum is None:
            missing.append(migration)
        elif checksum != migration.checksum:
            raise DatabaseUnavailable(
                f"The applied migration {migration.name} differs from this installation's."
            )
    return missing


def _known_names() -> set[str]:
    return {SCHEMA, *(migration.name for migration in migrations())}


def refuse_unknown(applied: Set[str], what: str = "database") -> None:
    """Raise an error unless this version can use tables to which migrations of these names were applied.

    SchemaBehind if an early trial version made them, SchemaAhead if a newer Folklore changed them.
    """
    if _LAST_OF_TRIALS in applied:
        return
    if SCHEMA not in applied:
        raise SchemaBehind(
            f"This {what} is of an early trial version of Folklore.",
            hint="Run `folklore export --embeddings all.jsonl` with that version, then `folklore import all.jsonl` "
            "with this one on an empty database (embedded engine: in another FOLKLORE_HOME).",
        )
    if newer := applied - _known_names():
        raise SchemaAhead(
            f"This {what} is of a newer Folklore ({max(newer)}).",
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
        return await _apply_missing(connection, dsn)
    finally:
        await connection.execute("select pg_advisory_unlock($1)", _LOCK)


async def _apply_missing(connection: asyncpg.Connection, dsn: str) -> list[str]:
    applied = await _applied(connection)
    if applied is None:
        await _apply(connection, schema(), *migrations())
        return [SCHEMA]

    names = []
    if SCHEMA not in applied:
        with _naming(SCHEMA):
            await connection.execute(statement("server/adopt").sql)
        names.append(SCHEMA)

    later = _later(applied)
    for migration in later:
        await _apply(connection, migration)
        names.append(migration.name)
    if later:
        await _pack_words(connection)
        await after_migrations(dsn)
    return names


async def _pack_words(connection: asyncpg.Connection) -> None:
    """Pack the lexemes that a migration has made anew: a question reads all that are not packed.

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


async def _apply(
    connection: asyncpg.Connection, migration: Migration, *included: Migration
) -> None:
    """Apply a migration in one transaction, and record it and those that its text includes."""
    record = statement("server/record_migration")
    now = datetime.now(UTC)
    with _naming(migration.name):
        async with connection.transaction():
            await connection.execute(
                "set local lock_timeout = '30s'; set local citus.multi_shard_modify_mode = sequential"
            )
            for command in migration.commands():
                await connection.execute(command, timeout=_LONGEST_SECONDS)
            for recorded in (migration, *included):
                values = {
                    "name": recorded.name,
                    "checksum": recorded.checksum,
                    "now": now,
                }
                await connection.execute(record.sql, *record.arguments(values))


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name what this role may not apply."""
    try:
        yield
    except asyncpg.InsufficientPrivilegeError as error:
        raise SchemaBehind(
            f"The database lacks {name}, which this role may not apply ({error}).",
            hint="Run `folklore db migrate` with a role that may.",
        ) from error
