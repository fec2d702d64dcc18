"""The end of a server under load: in time, with every acknowledged memory kept and no batch stored in part."""

import asyncio
import json
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

from folklore.db.database import Database, PoolLimits
from folklore.embedding.protocol import Embedder
from folklore.errors import DatabaseUnavailable
from folklore.memory.context import MemoryContext
from folklore.server import error_responses
from tests.person import Person, contents
from tests.servers import HttpServer, Watched, on_http, watched
from tests.wire import MCP, call, head, posted, wire

pytestmark = pytest.mark.strain

BATCH = 20


async def storing(url: str, name: str, acknowledged: list[str]) -> None:
    """Store batches one after the other until the server is gone; collect those it acknowledged."""
    # what the client raises when its server goes
    with suppress(Exception, BaseExceptionGroup):
        async with Client(f"{url}/mcp", read_timeout_seconds=10) as client:
            for number in range(10_000):
                source = f"{name}-{number}"
                memories = [
                    {"content": f"{source}: fact {fact}", "source": source}
                    for fact in range(BATCH)
                ]
                if not (
                    await client.call_tool("memory_store", {"memories": memories})
                ).is_error:
                    acknowledged.append(source)


async def asking(url: str) -> None:
    """Recall until the server is gone."""
    with suppress(Exception, BaseExceptionGroup):
        async with Client(f"{url}/mcp", read_timeout_seconds=10) as client:
            while True:
                await client.call_tool(
                    "memory_recall", {"query": "which fact was stored"}
                )


async def exported(settings: Watched) -> Counter[str]:
    """Count the memories of each source, as the command line exports them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "folklore", "export"),
        env=dict(settings.environment),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    lines = [json.loads(line) for line in out.splitlines()]
    return Counter(line["source"] for line in lines if line.get("type") == "memory")


def unread(server: HttpServer) -> socket.socket:
    """Connect a client that asks for much and reads nothing."""
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    opened.connect(("127.0.0.1", server.port))
    opened.setblocking(False)
    with suppress(BlockingIOError):
        opened.send(posted(call("memory_list", limit=100)) * 100)
    return opened


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_the_server_ends_in_time_with_open_streams_and_calls_and_keeps_acknowledged_memories(
    database_url: str, tmp_path: Path, workers: str
) -> None:
    settings = watched(tmp_path, database_url=database_url, http__workers=workers)
    acknowledged: list[str] = []
    async with on_http(settings) as server, AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=server.url, timeout=30)
        )
        stream = await stack.enter_async_context(
            client.stream("GET", "/sse", headers=MCP)
        )
        work = [
            asyncio.create_task(storing(server.url, f"c{number}", acknowledged))
            for number in range(4)
        ]
        work += [asyncio.create_task(asking(server.url)) for _ in range(4)]
        half = await stack.enter_async_context(wire(server.port))
        half.send(head("POST", "/mcp", "Content-Length: 1000"))
        async with asyncio.timeout(120):
            while len(acknowledged) < 10:
                await asyncio.sleep(0.02)
        stack.callback(unread(server).close)
        await server.end()
        await asyncio.wait_for(asyncio.gather(*work), 120)
    kept = await exported(settings)

    assert stream.status_code == (200 if workers == "1" else 501)
    assert server.process.returncode == 0
    assert not server.crashes()
    assert {source: kept[source] for source in acknowledged} == dict.fromkeys(
        acknowledged, BATCH
    )
    assert set(kept.values()) == {BATCH}, (
        "a batch that was not acknowledged is whole or absent"
    )


async def test_a_call_that_cannot_finish_is_cancelled_and_leaves_nothing(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> None:
    async with on_http(watched(tmp_path, database_url=database_url)) as server:
        async with locked_out(server, connection) as calling:
            await server.end()
        await asyncio.wait_for(asyncio.gather(*calling), 120)

    assert server.process.returncode == 0
    assert not server.crashes()
    assert [
        row["content"] for row in await connection.fetch("select content from memories")
    ] == ["before"]


async def test_the_statement_of_a_client_that_disconnects_is_cancelled(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> None:
    async with on_http(watched(tmp_path, database_url=database_url)) as server:
        async with locked_out(server, connection) as calling:
            for call_ in calling:
                call_.cancel()
            await until_waiting(connection, 0)
        await asyncio.wait(calling)
        async with Client(f"{server.url}/mcp") as client:
            listed = await client.call_tool("memory_list", {})

    assert listed.structured_content is not None
    assert [one["content"] for one in listed.structured_content["memories"]] == [
        "before"
    ]


def both(server: HttpServer) -> list[Any]:
    """Return the server over both transports."""
    return [f"{server.url}/mcp", sse_client(f"{server.url}/sse")]


async def storing_one(over: Any, content: str) -> None:
    """Store a memory; the server may end meanwhile."""
    with suppress(Exception, BaseExceptionGroup):
        async with Client(over, read_timeout_seconds=10) as client:
            await client.call_tool("memory_store", {"content": content})


@asynccontextmanager
async def locked_out(
    server: HttpServer, connection: asyncpg.Connection
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Store one memory, and lock the table within the block; two calls wait to store another."""
    async with Client(f"{server.url}/mcp") as client:
        assert not (
            await client.call_tool("memory_store", {"content": "before"})
        ).is_error
    async with connection.transaction():
        await connection.execute("lock table memories in access exclusive mode")
        calling = [
            asyncio.create_task(storing_one(over, "never to be"))
            for over in both(server)
        ]
        await until_waiting(connection, 2)
        yield calling


async def test_a_statement_that_exceeds_its_limit_fails_and_the_next_one_succeeds(
    database_url: str, connection: asyncpg.Connection, embedder: Embedder
) -> None:
    database = Database(
        database_url, PoolLimits(minimum=0, maximum=4, statement_timeout=0.5)
    )
    await database.open()
    person = Person(MemoryContext.of(database, embedder))
    await person.store("before")
    async with connection.transaction():
        await connection.execute("lock table memories in access exclusive mode")
        with pytest.raises(DatabaseUnavailable, match="took too long"):
            await person.recall("before")
    after = await person.recall("before")
    await database.close()

    assert contents(after) == ["before"]


async def until_waiting(connection: asyncpg.Connection, count: int) -> None:
    """Wait until as many statements wait for a lock; within a transaction pg_stat_activity does not change."""
    async with asyncio.timeout(120):
        while count != await connection.fetchval(
            "select count(*) from pg_locks where not granted"
            " and database = (select oid from pg_database where datname = current_database())"
        ):
            await asyncio.sleep(0.02)


async def test_a_request_that_arrives_after_the_end_is_told_to_come_again() -> None:
    app = Starlette(
        routes=[
            error_responses.Path(
                "/mcp", PlainTextResponse("answered"), methods=["POST"]
            )
        ]
    )
    app.state.ended = True
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://folklore"
    ) as client:
        answer = await client.post("/mcp")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
