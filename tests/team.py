"""A team at one server: tokens created in its database, and clients that send them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import httpx2
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from folklore.contract.memories import GetRequest
from folklore.contract.people import CreatedToken, RevokeTokensRequest
from folklore.db.database import Database
from folklore.embedding.protocol import Embedder
from folklore.memory.context import MemoryContext
from folklore.model import Draft, Memory
from tests.person import Person
from tests.servers import HttpServer
from tests.visitor import Visitor, visiting


@dataclass(frozen=True, slots=True)
class Team:
    """The server and the database behind it."""

    server: HttpServer
    library: MemoryContext

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def owner(self) -> Person:
        return root(self.library)

    async def token(self, name: str, *grants: str, **asked: Any) -> CreatedToken:
        return await self.owner.create_token(name, *grants, **asked)

    async def revoke(self, created: CreatedToken) -> None:
        await self.owner.call(RevokeTokensRequest(ids=(created.id,)))

    @asynccontextmanager
    async def visitor(
        self, name: str, *grants: str, **asked: Any
    ) -> AsyncIterator[Visitor]:
        """A person with a new token, signed in to the console."""
        async with visiting(
            self.url, (await self.token(name, *grants, **asked)).secret
        ) as visitor:
            yield visitor

    async def keep(self, *texts: str | Draft, namespace: str) -> list[UUID]:
        return await self.owner.keep(*texts, namespace=namespace)

    async def read(self, id_: UUID) -> Memory:
        """Return a memory, also one that is forgotten."""
        return (
            (await self.owner.call(GetRequest(ids=(id_,), forgotten=True)))
            .found[0]
            .memory
        )

    @asynccontextmanager
    async def assistant(
        self, secret: str, *, sse: bool = False, **options: Any
    ) -> AsyncIterator[Client]:
        """An MCP client that sends a token."""
        async with connected(self.url, bearer(secret), sse=sse, **options) as client:
            yield client


@asynccontextmanager
async def connected(
    url: str,
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    sse: bool = False,
    query: str = "",
    **options: Any,
) -> AsyncIterator[Client]:
    """An MCP client that sends these headers, connected to the endpoint with this query."""
    options.setdefault("read_timeout_seconds", 30)
    if sse:
        async with Client(
            sse_client(f"{url}/sse{query}", headers=dict(headers)), **options
        ) as client:
            yield client
        return
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(
            streamable_http_client(f"{url}/mcp{query}", http_client=http), **options
        ) as client,
    ):
        yield client


async def called(client: Client, tool: str, **arguments: Any) -> Any:
    """Return what a tool answers."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """Return the error of a tool that must fail."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.content
    return str(answer.content[0].text)  # type: ignore[union-attr]


def root(library: MemoryContext) -> Person:
    """The owner of the server, who needs no token."""
    return Person(library, name="root", now=datetime.now(UTC))


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@asynccontextmanager
async def library_at(
    dsn: str, embedder: Embedder | None = None
) -> AsyncIterator[MemoryContext]:
    """The context of a database, for changes that the server does not see; without a model, embeddings are pending."""
    async with Database(dsn) as database:
        yield MemoryContext.of(database, embedder)
