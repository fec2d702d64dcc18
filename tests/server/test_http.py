"""Folklore over HTTP: one port for streamable HTTP and SSE, closed to everybody who is not invited."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest
from mcp import Client
from mcp.client.sse import sse_client

from folklore.config import Settings
from folklore.errors import ConfigInvalid
from folklore.server.application.serve import run
from tests.servers import HttpServer, a_session_of_work, free_port, on_http, watched
from tests.waiting import STUCK
from tests.wire import INITIALIZE, MCP, message


@pytest.fixture(scope="module")
async def server(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    """One server for the tests that only ask."""
    settings = watched(tmp_path_factory.mktemp("http"), database_url=address)
    async with on_http(settings) as running:
        yield running
        assert settings.attempts() == ""


@pytest.fixture
async def client(server: HttpServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url) as opened:
        yield opened


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_session_of_work_over_streamable_http(
    server: HttpServer, mode: str
) -> None:
    async with Client(
        f"{server.url}/mcp", mode=mode, read_timeout_seconds=30
    ) as client:
        await a_session_of_work(client)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_session_of_work_over_sse(server: HttpServer, mode: str) -> None:
    async with Client(
        sse_client(f"{server.url}/sse"), mode=mode, read_timeout_seconds=30
    ) as client:
        await a_session_of_work(client)


async def test_names_and_origins_of_this_machine_pass(
    client: httpx.AsyncClient,
) -> None:
    hosts = ("127.0.0.1", "127.0.0.1:1", "localhost", "localhost:8765", "[::1]:8765")
    origins = ("http://localhost:3000", "http://127.0.0.1", "https://localhost")

    for headers in (
        *({"Host": host} for host in hosts),
        *({"Origin": origin} for origin in origins),
        {},
    ):
        assert (
            await client.post("/mcp", json=INITIALIZE, headers=MCP | headers)
        ).status_code == 200, headers


@pytest.mark.parametrize(
    ("body", "headers", "statuses"),
    [
        (b"{", MCP, {400}),
        (b"[]", MCP, {400}),
        (b"", MCP, {400}),
        (b"\xff\xfe", MCP, {400}),
        (
            json.dumps(INITIALIZE).encode(),
            {"Accept": MCP["Accept"], "Content-Type": "text/plain"},
            {400, 415},
        ),
    ],
)
async def test_an_unreadable_body_is_a_client_error(
    client: httpx.AsyncClient, body: bytes, headers: dict[str, str], statuses: set[int]
) -> None:
    assert (
        await client.post("/mcp", content=body, headers=headers)
    ).status_code in statuses


@pytest.mark.parametrize(("path", "allowed"), [("/sse", "GET"), ("/messages/", "POST")])
async def test_a_wrong_method_on_the_paths_of_sse_is_refused_without_a_crash(
    server: HttpServer, client: httpx.AsyncClient, path: str, allowed: str
) -> None:
    async with asyncio.timeout(120):
        for method in (
            "HEAD",
            "GET",
            "POST",
            "PUT",
            "DELETE",
            "PATCH",
            "OPTIONS",
            "PROPFIND",
        ):
            if method != allowed:
                answer = await client.request(method, path)
                assert (answer.status_code, answer.headers["allow"]) == (
                    405,
                    allowed,
                ), method

    assert (
        await client.request("BREW", path)
    ).status_code == 400  # no method of HTTP: the parser refuses it
    assert (await client.get("/healthz")).status_code == 200
    assert "[error" not in server.log_text()


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        *((path, "GET, HEAD") for path in ("/healthz", "/readyz", "/metrics")),
        *((path, "POST") for path in ("/api/recall", "/api/export", "/api/nothing")),
    ],
)
async def test_a_wrong_method_is_answered_with_the_allowed_ones(
    client: httpx.AsyncClient, path: str, allowed: str
) -> None:
    for method in (
        "HEAD",
        "GET",
        "POST",
        "PUT",
        "DELETE",
        "PATCH",
        "OPTIONS",
        "PROPFIND",
    ):
        answer = await client.request(method, path)
        if method in allowed.split(", "):
            assert answer.status_code != 405, method
        else:
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed), (
                method
            )
            assert method == "HEAD" or answer.json()["error"]["code"] == "wrong_method"


async def test_errors_show_no_traceback_and_responses_no_server_name(
    client: httpx.AsyncClient,
) -> None:
    missing = await client.get("/no/such/page")

    assert missing.status_code == 404
    assert "Traceback" not in missing.text
    assert "server" not in missing.headers


async def test_until_the_database_is_there_health_is_alive_and_not_ready(
    tmp_path: Path,
) -> None:
    settings = watched(
        tmp_path, database_url=f"postgresql://x:hunter2@127.0.0.1:{free_port()}/none"
    )
    async with (
        on_http(settings) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        alive = await client.get("/healthz")
        ready = await client.get("/readyz")
        async with Client(f"{server.url}/mcp") as assistant:
            listed = await assistant.list_tools()
            called = await assistant.call_tool("memory_recall", {"query": "x"})
        await server.end()
        text = server.log.read_text(encoding="utf-8")

    assert alive.status_code == 200
    assert (ready.status_code, ready.json()["missing"]) == (503, "database_unavailable")
    assert listed.tools
    assert called.is_error
    assert "hunter2" not in ready.text + text


WAITING = """
select count(*) from pg_stat_activity
where application_name = 'folklore' and datname = current_database() and wait_event_type = 'Lock'
"""


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_call_ends_when_its_client_hangs_up(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path, revision: str
) -> None:
    async def waiting(number: int) -> None:
        async with asyncio.timeout(120):
            while await connection.fetchval(WAITING) != number:
                await asyncio.sleep(0.02)

    store = message(
        "tools/call",
        name="memory_store",
        arguments={"content": "never heard", "namespace": "notes"},
    )
    headers = MCP | {"MCP-Protocol-Version": revision}
    if revision == "2026-07-28":
        prefix = "io.modelcontextprotocol"
        store["params"]["_meta"] = {
            f"{prefix}/protocolVersion": revision,
            f"{prefix}/clientCapabilities": {},
        }
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "memory_store"}
    async with on_http(watched(tmp_path, database_url=database_url)) as server:
        async with Client(f"{server.url}/mcp") as assistant:
            await assistant.call_tool(
                "memory_store", {"content": "heard", "namespace": "notes"}
            )
        async with connection.transaction():
            await connection.execute(
                "select 1 from namespaces where name = 'notes' for update"
            )
            async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
                call = asyncio.create_task(
                    client.post("/mcp", json=store, headers=headers)
                )
                await waiting(1)
                call.cancel()
            await waiting(0)

    assert await connection.fetchval("select array_agg(content) from memories") == [
        "heard"
    ]


@pytest.fixture
async def notes(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> AsyncIterator[HttpServer]:
    """A server with a memory in a namespace that is locked within the test."""
    async with on_http(watched(tmp_path, database_url=database_url)) as running:
        async with httpx.AsyncClient(base_url=running.url, timeout=30) as client:
            await client.post("/api/store", json=stored("heard"))
        async with connection.transaction():
            await connection.execute(
                "select 1 from namespaces where name = 'notes' for update"
            )
            yield running
        assert not running.crashes()


def stored(content: str) -> dict[str, object]:
    return {"memories": [{"content": content}], "namespace": "notes"}


async def test_a_call_of_the_api_ends_when_its_client_hangs_up(
    notes: HttpServer, connection: asyncpg.Connection
) -> None:
    async def waiting(number: int) -> None:
        async with asyncio.timeout(120):
            while await connection.fetchval(WAITING) != number:
                await asyncio.sleep(0.02)

    async with httpx.AsyncClient(base_url=notes.url, timeout=30) as client:
        call = asyncio.create_task(
            client.post("/api/store", json=stored("never heard"))
        )
        await waiting(1)
        call.cancel()
    await waiting(0)

    assert await connection.fetchval("select array_agg(content) from memories") == [
        "heard"
    ]
    async with asyncio.timeout(STUCK):
        while "status=499" not in (log := notes.log_text()):
            assert "status=503" not in log, "it waited for the lock as long as it may"
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_an_address_that_others_can_reach_is_refused(
    settings: Settings, host: str
) -> None:
    with pytest.raises(ConfigInvalid, match=r"http\.host"):
        run(settings, host, free_port())


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_and_its_open_stream_in_order_and_keeps_stored_memories(
    database_url: str,
    connection: asyncpg.Connection,
    tmp_path: Path,
    sign: signal.Signals,
) -> None:
    settings = watched(tmp_path, database_url=database_url)
    async with (
        on_http(settings) as server,
        httpx.AsyncClient(base_url=server.url) as client,
        client.stream("GET", "/sse", headers=MCP) as stream,
    ):
        lines = stream.aiter_lines()
        assert await anext(lines) == "event: endpoint"
        async with Client(f"{server.url}/mcp") as assistant:
            stored = await assistant.call_tool(
                "memory_store", {"content": "acknowledged"}
            )
        await server.end(sign)
        rest = [line async for line in lines]  # raises if the stream breaks off

    assert [line.partition("=")[0] for line in rest if line] == [
        "data: /messages/?session_id"
    ]
    assert "[error" not in server.log_text()
    assert not stored.is_error
    assert await connection.fetchval("select content from memories") == "acknowledged"
    assert (
        await connection.fetchval(
            "select count(*) from pg_stat_activity where application_name = 'folklore' and datname = current_database()"
        )
        == 0
    )
