"""A database that lives as long as a block, beside the configured one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from uuid import uuid4

import asyncpg

from folklore.db.driver_errors import ours
from folklore.db.sql_loader import statement


@dataclass(frozen=True, slots=True)
class ScratchDatabase:
    """Its name, and its address with all that the configured one holds."""

    name: str
    address: str


@asynccontextmanager
async def scratch_database(dsn: str, *, prefix: str, keep: bool = False) -> AsyncIterator[ScratchDatabase]:
    """Create a database on the server of `dsn`, and drop it after the block, with whoever is still connected.

    Raises DatabaseUnavailable, also for a role that may not create databases.
    """
    name = f"{prefix}{uuid4().hex[:12]}"
    await _run(dsn, "scratch_create", name)
    try:
        yield ScratchDatabase(name, with_database(dsn, name))
    finally:
        if not keep:
            await _run(dsn, "scratch_drop", name)


def with_database(dsn: str, name: str) -> str:
    """The same address with another database."""
    parts = urlsplit(dsn)
    query = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in ("dbname", "database")]
    return urlunsplit(parts._replace(path=f"/{name}", query=urlencode(query)))


async def _run(dsn: str, spelled_by: str, name: str) -> None:
    with ours():
        connection = await asyncpg.connect(dsn, timeout=10, statement_cache_size=0)
        try:
            await connection.execute(await connection.fetchval(statement(spelled_by).sql, name))
        finally:
            await connection.close(timeout=5)
