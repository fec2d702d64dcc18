"""Databases next to Folklore's own on one server: created for a copy, put in the place of its own, and dropped."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import asyncpg

from folklore.db.driver_errors import (
    DRIVER_ERRORS,
    connected,
    translate,
    translated_errors,
)
from folklore.db.session import Row
from folklore.db.sql_loader import statement
from folklore.errors import Conflict, DatabaseUnavailable, Refused

_connected = partial(connected, server_settings={"application_name": "folklore"})
# Which database of the server manages the others, and the key of its advisory lock ("fork" in ASCII).
MAINTENANCE = "postgres"
_LOCK = 0x666F726B
_LONGEST_NAME = 63
_RANDOM_BYTES = 4
# Seconds for the sessions of a database to end before it is renamed, and between two attempts to end them.
_ENDING_SECONDS = 30.0
_PAUSE = 0.1


def address_of(dsn: str, database: str) -> str:
    """Return the address of another database of the same server."""
    parts = urlsplit(dsn)
    options = [
        (name, value)
        for name, value in parse_qsl(parts.query)
        if name not in ("database", "dbname")
    ]
    query = urlencode(options, quote_via=quote)
    return f"{parts.scheme}://{parts.netloc}/{quote(database, safe='')}{'?' if query else ''}{query}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Roles of a server with their properties as JSON texts, and its databases but the templates."""

    roles: tuple[str, ...]
    databases: tuple[str, ...]


async def read_cluster(dsn: str) -> Cluster:
    """Read what a server has, without the scratch databases that a killed process has left."""
    async with _connected(dsn) as connection:
        roles = await _rows(connection, "backup/roles")
        scratch = _beginning(urlsplit(dsn).path.lstrip("/"), "scratch")
        databases = await _rows(connection, "backup/all_databases", scratch=scratch)
    return Cluster(
        tuple(row["role"] for row in roles), tuple(row["name"] for row in databases)
    )


async def copy_settings(dsn: str, target: str) -> list[str]:
    """Set on another server what `alter system` has set on this one; return the names of settings it does not take."""
    async with _connected(dsn) as source, _connected(target) as connection:
        rejects = []
        for row in await _rows(source, "backup/own_settings"):
            try:
                await connection.execute(row["command"])
            except asyncpg.PostgresError:
                rejects.append(row["name"])
    return rejects


async def has_tables(dsn: str) -> bool:
    """Return True if a database has tables other than those of extensions."""
    async with _connected(dsn) as connection:
        return bool(await _rows(connection, "backup/tables"))


async def has_schema(dsn: str) -> bool:
    """Return True if Folklore's migrations were applied to a database."""
    async with _connected(dsn) as connection:
        return bool((await _rows(connection, "backup/has_schema"))[0]["has_schema"])


async def drop_database(dsn: str, name: str) -> None:
    """Drop a database of a server and end its sessions."""
    async with _connected(address_of(dsn, MAINTENANCE)) as connection:
        for row in await _rows(connection, "backup/drop_database", name=name):
            await connection.execute(row["command"])


class Databases:
    """The databases of a server; at most one process at a time creates, renames or drops any.

    `scratch` is the name of a new database, `former` the one that Folklore's own database gets when it is replaced.
    Scratch databases that a killed process has left are dropped by the next one.
    """

    def __init__(
        self,
        dsn: str,
        connection: asyncpg.Connection,
        current: str,
        create_scratch: str,
    ) -> None:
        self._dsn = dsn
        self._connection = connection
        self._create_scratch = create_scratch
        self.current = current
        self.scratch = _named(current, "scratch")
        self.former = _named(current, "before")

    @classmethod
    @asynccontextmanager
    async def managed(cls, dsn: str) -> AsyncIterator[Databases]:
        """Manage the databases of a server for the length of the block. Raises Conflict while another process does."""
        async with _connected(dsn) as server:
            current = await server.fetchval("select current_database()")
            command = (await _rows(server, "backup/create_database"))[0]["command"]
        async with _connected(address_of(dsn, MAINTENANCE)) as connection:
            if not await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK):
                raise Conflict(
                    "Another process restores or verifies a backup on this server.",
                    hint="Try again when it has ended.",
                )
            databases = cls(dsn, connection, current, command)
            for scratch in await _rows(
                connection, "backup/databases", beginning=_beginning(current, "scratch")
            ):
                await databases.drop(scratch["name"])
            yield databases

    async def create_scratch(self) -> str:
        """Create the empty scratch database, with the locale of Folklore's own, and return its address."""
        quoted = '"' + self.scratch.replace('"', '""') + '"'
        try:
            await self._connection.execute(
                self._create_scratch.replace("{name}", quoted)
            )
        except asyncpg.InsufficientPrivilegeError as error:
            raise Refused(
                "The role of database_url may not create a database, which a copy is restored into.",
                hint="Run this with a role that may: alter role NAME createdb.",
            ) from error
        with suppress(
            asyncpg.DuplicateObjectError,
            asyncpg.UniqueViolationError,
            asyncpg.InsufficientPrivilegeError,
        ):
            # a copy's privileges name the role for tokens
            await self._command("backup/token_role")
        return address_of(self._dsn, self.scratch)

    async def left_formers(self) -> list[str]:
        """Return the databases that a killed process replaced and did not drop."""
        rows = await _rows(
            self._connection,
            "backup/databases",
            beginning=_beginning(self.current, "before"),
        )
        return [row["name"] for row in rows]

    def address_of(self, name: str) -> str:
        """Return the address of a database of this server."""
        return address_of(self._dsn, name)

    async def drop(self, name: str) -> None:
        """Drop a database and end its sessions."""
        with translated_errors():
            await self._command("backup/drop_database", name=name)

    async def put_in_place(self) -> str:
        """Give the scratch database the name of Folklore's own, in one transaction; return the address of the former.

        New sessions wait for the end of the transaction, and then begin in the new database. Raises
        DatabaseUnavailable if sessions do not end in time; then both databases are as before.
        """
        ending = asyncio.create_task(self._end_sessions())
        try:
            async with asyncio.timeout(_ENDING_SECONDS):
                while True:
                    # a session that began between two attempts
                    with suppress(asyncpg.ObjectInUseError):
                        async with self._connection.transaction():
                            await self._rename(self.current, self.former)
                            await self._rename(self.scratch, self.current)
                        return address_of(self._dsn, self.former)
        except TimeoutError as error:
            raise DatabaseUnavailable(
                "The sessions of the database do not end.",
                hint="Stop the servers that use it, then try again.",
            ) from error
        except DRIVER_ERRORS as error:
            raise translate(error) from error
        finally:
            ending.cancel()
            await asyncio.wait({ending})

    async def _rename(self, old: str, new: str) -> None:
        await self._command("backup/rename_database", old=old, new=new)

    async def _end_sessions(self) -> None:
        """End the sessions of both databases again and again; renaming one waits some seconds for their end."""
        async with _connected(address_of(self._dsn, MAINTENANCE)) as connection:
            while True:
                await _rows(
                    connection,
                    "backup/end_sessions",
                    names=[self.current, self.scratch],
                )
                await asyncio.sleep(_PAUSE)

    async def _command(self, name: str, /, **values: object) -> None:
        for row in await _rows(self._connection, name, **values):
            await self._connection.execute(row["command"])


def _named(current: str, use: str) -> str:
    return _beginning(current, use) + secrets.token_hex(_RANDOM_BYTES)


def _beginning(current: str, use: str) -> str:
    """Return the name of such a database without its random end; a long name is cut, as Postgres would."""
    end = f"_{use}_"
    return (
        current.encode()[: _LONGEST_NAME - len(end) - 2 * _RANDOM_BYTES].decode(
            errors="ignore"
        )
        + end
    )


async def _rows(
    connection: asyncpg.Connection, name: str, /, **values: object
) -> list[Row]:
    query = statement(name)
    return list(await connection.fetch(query.sql, *query.arguments(values)))
