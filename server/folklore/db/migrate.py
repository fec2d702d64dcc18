"""Bring the schema up to date: numbered files, in order, once each, safe when several processes start together."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from folklore.db.driver_errors import ours
from folklore.db.roles import lacking, settle
from folklore.errors import DatabaseUnavailable, SchemaAhead, SchemaBehind

# One number for all of Folklore's migrations ("folk" in ASCII).
_LOCK = 0x666F6C6B
_OLDEST_POSTGRES = 150000
_OLDEST_PGVECTOR = (0, 8, 0)


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of `migrations/`: applied whole or not at all."""

    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text, to notice a file that was changed after it was applied."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


def migrations() -> list[Migration]:
    """Every migration, in the order they apply."""
    folder = files("folklore.db") / "migrations"
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return [Migration(entry.name, entry.read_text(encoding="utf-8")) for entry in sorted(found, key=lambda e: e.name)]


async def migrate(dsn: str, *, timeout: float = 60.0) -> list[str]:
    """Apply what is missing and return its names.

    Raises DatabaseUnavailable if Postgres or pgvector is too old, SchemaAhead if the database was migrated by a newer
    Folklore, SchemaBehind if this role may not apply what is missing.
    """
    with ours():
        connection = await asyncpg.connect(dsn, timeout=timeout, statement_cache_size=0)
        try:
            await _check_postgres(connection)
            done = await _apply_under_lock(connection, timeout) if await _missing(connection) else []
            await settle(connection)
            return done
        finally:
            await connection.close(timeout=5)


async def pending(dsn: str, *, timeout: float = 10.0) -> list[str]:
    """Names of the migrations the database still lacks; changes nothing."""
    with ours():
        connection = await asyncpg.connect(dsn, timeout=timeout, statement_cache_size=0)
        try:
            return [migration.name for migration in await _missing(connection)]
        finally:
            await connection.close(timeout=5)


async def role_lacks(dsn: str, *, timeout: float = 10.0) -> list[str]:
    """The commands that the role for tokens still needs; changes nothing. The schema must be up to date."""
    with ours():
        connection = await asyncpg.connect(dsn, timeout=timeout, statement_cache_size=0)
        try:
            return await lacking(connection)
        finally:
            await connection.close(timeout=5)


async def _check_postgres(connection: asyncpg.Connection) -> None:
    version = int(await connection.fetchval("show server_version_num"))
    if version < _OLDEST_POSTGRES:
        raise DatabaseUnavailable(
            f"Postgres {version // 10000} is too old.", hint="Folklore needs Postgres 15 or newer."
        )
    offered = await connection.fetchval(
        "select coalesce((select extversion from pg_extension where extname = 'vector'),"
        " (select default_version from pg_available_extensions where name = 'vector'))"
    )
    if offered is None:
        raise DatabaseUnavailable(
            "This Postgres has no pgvector.",
            hint="Install pgvector 0.8 or newer on the server (package postgresql-NN-pgvector).",
        )
    if tuple(int(part) for part in offered.split(".")[:3]) < _OLDEST_PGVECTOR:
        raise DatabaseUnavailable(
            f"pgvector {offered} is too old.", hint="Folklore needs 0.8; run `alter extension vector update`."
        )


async def _missing(connection: asyncpg.Connection) -> list[Migration]:
    known = migrations()
    if await connection.fetchval("select to_regclass('folklore_migrations')") is None:
        return known
    applied = {
        row["name"]: row["checksum"] for row in await connection.fetch("select name, checksum from folklore_migrations")
    }
    if newer := applied.keys() - {migration.name for migration in known}:
        raise SchemaAhead(
            f"The database was migrated by a newer Folklore ({max(newer)}).", hint="Upgrade this installation."
        )
    for migration in known:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise DatabaseUnavailable(f"The applied migration {migration.name} differs from this installation's.")
    return [migration for migration in known if migration.name not in applied]


async def _apply_under_lock(connection: asyncpg.Connection, timeout: float) -> list[str]:
    # Polled, outside a transaction: a blocked waiter holds a snapshot, on which CREATE INDEX CONCURRENTLY would wait.
    deadline = asyncio.get_running_loop().time() + timeout
    while not await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK):
        if asyncio.get_running_loop().time() > deadline:
            raise DatabaseUnavailable("Another process has been migrating the database for too long.")
        await asyncio.sleep(0.05)
    try:
        done = []
        for migration in await _missing(connection):
            try:
                await _apply(connection, migration)
            except asyncpg.InsufficientPrivilegeError as error:
                raise SchemaBehind(
                    f"The database lacks {migration.name}, which this role may not apply ({error}).",
                    hint="Run `folklore db migrate` with a role that may.",
                ) from error
            done.append(migration.name)
        return done
    finally:
        await connection.execute("select pg_advisory_unlock($1)", _LOCK)


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    async with connection.transaction():
        await connection.execute("set local lock_timeout = '30s'")
        await connection.execute(migration.sql)
        await connection.execute(
            "create table if not exists folklore_migrations"
            " (name text primary key, checksum text not null, applied_at timestamptz not null)"
        )
        await connection.execute(
            "insert into folklore_migrations (name, checksum, applied_at) values ($1, $2, now())",
            migration.name,
            migration.checksum,
        )
