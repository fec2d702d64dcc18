"""A team at one server: tokens made behind its back, and clients that carry them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.memory.auth.tokens import Made, TokenRequest, create_token, revoke_tokens
from folklore.memory.context import MemoryContext
from folklore.model import Caller, Draft
from tests.person import Person
from tests.servers import HttpServer

OWNER = Caller("root")


@dataclass(frozen=True, slots=True)
class Team:
    """The server and the database behind it."""

    server: HttpServer
    library: MemoryContext

    @property
    def url(self) -> str:
        return self.server.url

    async def token(self, name: str, *grants: str, **asked: Any) -> Made:
        return await create_token(
            self.library, TokenRequest(name, grants, **asked), caller=OWNER, now=datetime.now(UTC)
        )

    async def revoke(self, made: Made) -> None:
        await revoke_tokens(self.library, [made.id], caller=OWNER, now=datetime.now(UTC))

    async def keep(self, *texts: str | Draft, namespace: str) -> list[Any]:
        return await Person(self.library, name="root", now=datetime.now(UTC)).keep(*texts, namespace=namespace)

    @asynccontextmanager
    async def assistant(self, secret: str, *, sse: bool = False, **options: Any) -> AsyncIterator[Client]:
        """An MCP client that carries a token."""
        headers = bearer(secret)
        options.setdefault("read_timeout_seconds", 30)
        if sse:
            async with Client(sse_client(f"{self.url}/sse", headers=headers), **options) as client:
                yield client
            return
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(f"{self.url}/mcp", http_client=http), **options) as client,
        ):
            yield client


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@asynccontextmanager
async def library_at(dsn: str, embedder: Embedder | None = None) -> AsyncIterator[MemoryContext]:
    """The whole library of a database, for what happens behind a server's back; without a model vectors are owed."""
    database = Database(dsn)
    await database.open()
    try:
        yield MemoryContext.of(database, embedder)
    finally:
        await database.close()
