"""What a Postgres says about itself."""

from __future__ import annotations

from dataclasses import dataclass

import asyncpg

from folklore.db.driver_errors import ours
from folklore.db.sql_loader import statement


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """Versions, and where we are. `bytes` is the database's size.

    `pgvector` is None while the extension is not created here, `offered` if the server does not have it at all.
    """

    version: str
    pgvector: str | None
    offered: str | None
    database: str
    role: str
    bytes: int


async def facts(dsn: str, *, timeout: float = 10.0) -> ServerFacts:
    """Ask once, on a connection of its own. Raises DatabaseUnavailable."""
    with ours():
        connection = await asyncpg.connect(dsn, timeout=timeout, statement_cache_size=0)
        try:
            row = await connection.fetchrow(statement("server_facts").sql)
            assert row is not None
            return ServerFacts(
                version=" ".join(row["version"].split()[:2]),
                pgvector=row["pgvector"],
                offered=row["offered"],
                database=row["database"],
                role=row["role"],
                bytes=row["bytes"],
            )
        finally:
            await connection.close(timeout=5)
