"""Hostile and broken clients: each is refused or closed in time, and the server goes on for the others."""

import asyncio
import json
import os
import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.servers import HttpServer, limited, on_http, watched
from tests.wire import INITIALIZE, MCP, Wire, call, head, message, posted, wire

PATHS = [
    ("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/sse"), ("POST", "/messages/"), ("GET", "/healthz"),
    ("GET", "/readyz"), ("GET", "/nothing/here"), ("OPTIONS", "/mcp"),
]  # fmt: skip


@pytest.fixture(scope="module")
async def server(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    """A server that waits a second for a head, two for a body or the next request, and takes 100,000 bytes."""
    settings = limited(
        watched(tmp_path_factory.mktemp("hostile"), database_url=address),
        body_size=100_000, body_seconds=2, head_seconds=1, idle_seconds=2, unread_seconds=2,
    )  # fmt: skip
    async with on_http(settings, module="tests.limited") as running:
        yield running
        assert running.process.returncode is None
        assert not running.crashes()
        assert settings.attempts() == ""


@pytest.fixture
async def client(server: HttpServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as opened:
        yield opened


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_a_wrong_host_or_origin_is_refused_on_every_path(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    async def status(**headers: str) -> int:
        return (await client.request(method, path, headers=MCP | headers)).status_code

    for host in (
        "evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8765", "xlocalhost", "169.254.169.254",
    ):  # fmt: skip
        assert await status(Host=host) == 421, host
    for origin in (
        "http://evil.example", "null", "http://localhost.evil.example", "file://", "https://evil.example:443",
    ):  # fmt: skip
        assert await status(Origin=origin) == 403, origin
    assert await status(Host="evil.example", Origin="http://evil.example") == 421


async def test_a_refusal_names_the_next_step(client: httpx.AsyncClient) -> None:
    answer = await client.get("/healthz", headers={"Host": "evil.example"})
    typed = await client.post(
        "/api/status", content="{}", headers={"Content-Type": "text/plain"}
    )

    assert (typed.status_code, typed.json()["error"]["code"]) == (
        400,
        "wrong_content_type",
    )
    assert answer.json()["error"]["code"] == "wrong_host"
    assert "http.allowed_hosts" in answer.json()["error"]["hint"]
    assert "evil" not in answer.text


@pytest.mark.parametrize(
    ("request_line", "headers", "status"),
    [
        ("GET /healthz HTTP/1.1", [], 400),
        ("GET /healthz HTTP/1.1", ["Host: localhost", "Host: evil.example"], 400),
        ("GET /healthz HTTP/1.1", ["Host:"], 421),
        ("GET /healthz HTTP/1.0", [], 421),
        ("GET http://evil.example/healthz HTTP/1.1", ["Host: evil.example"], 421),
        ("GET /healthz HTTP/1.0", ["Host: localhost"], 200),
        ("GET /healthz HTTP/1.1", ["Host: \t localhost \t"], 200),
    ],
)
async def test_a_missing_repeated_or_wrong_host_is_refused(
    server: HttpServer, request_line: str, headers: list[str], status: int
) -> None:
    async with wire(server.port) as connection:
        connection.send("\r\n".join([request_line, *headers, "", ""]).encode())

        assert await connection.status() == status


async def test_blanks_around_the_value_of_a_header_belong_to_no_value(
    server: HttpServer,
) -> None:
    async with wire(server.port) as connection:
        body = message(
            "tools/call",
            name="memory_status",
            arguments={},
            _meta={
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        )
        headers = (
            "MCP-Protocol-Version: 2026-07-28 \t",
            "Mcp-Method: \t tools/call  ",
            "Mcp-Name:   memory_status\t ",
        )
        connection.send(posted(body, *headers))

        assert await connection.status() == 200


@pytest.mark.parametrize("path", ["/mcp", "/messages/", "/healthz", "/nothing/here"])
async def test_a_body_over_the_limit_is_refused_on_every_path_declared_or_not(
    client: httpx.AsyncClient, server: HttpServer, path: str
) -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b"x" * 10_000

    # more than the buffers of a socket hold
    declared = await client.post(path, content=b"x" * 10_000_000, headers=MCP)
    chunked = await client.post(path, content=in_pieces(), headers=MCP)
    async with wire(
        server.port
    ) as connection:  # refused by what it declares, before any of it is sent
        connection.send(
            head("POST", path, "Content-Length: 1000000000000", "Expect: 100-continue")
        )
        announced = await connection.status()

    assert (declared.status_code, chunked.status_code, announced) == (413, 413, 413)
    error = declared.json()["error"]
    assert error.get("data", error)["code"] == "too_large"


async def test_a_body_of_the_largest_size_passes(client: httpx.AsyncClient) -> None:
    body = json.dumps(INITIALIZE).encode()

    assert (
        await client.post("/mcp", content=body.ljust(100_000), headers=MCP)
    ).status_code == 200


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_half_a_surrogate_pair_in_the_json_is_removed(
    client: httpx.AsyncClient, era: str
) -> None:
    asked = call(
        "memory_store",
        content=f"In {era} the launch is go \ud83d",
        tags=["\ud83d\ude80go\udc4d"],
    )
    headers = MCP | {"MCP-Protocol-Version": era}
    if era == "2026-07-28":
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": "memory_store"}
        of_client = {
            "protocolVersion": era,
            "clientInfo": {"name": "t", "version": "1"},
            "clientCapabilities": {},
        }
        asked["params"]["_meta"] = {
            f"io.modelcontextprotocol/{name}": value
            for name, value in of_client.items()
        }
    answer = await client.post("/mcp", content=json.dumps(asked), headers=headers)
    listed = await client.post(
        "/mcp", json=call("memory_list", filters={"tags": ["🚀go"]}), headers=MCP
    )

    assert answer.status_code == 200
    assert f"In {era} the launch is go" in listed.text


async def test_a_client_that_keeps_sending_a_refused_body_is_cut_off(
    server: HttpServer,
) -> None:
    async with wire(server.port) as connection:
        connection.send(head("POST", "/mcp", "Transfer-Encoding: chunked"))
        with suppress(ConnectionError):
            while not connection.writer.is_closing():
                connection.send(b"2710\r\n" + b"x" * 10_000 + b"\r\n")
                await connection.writer.drain()
                await asyncio.sleep(0.01)
        received = await connection.closed()

    assert not received or received.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "sent",
    [
        posted(INITIALIZE)[:-10],
        head("POST", "/mcp", "Transfer-Encoding: chunked") + b'5\r\n{"js',
        b"POST /mcp HTTP/1.1\r\nHost: local",
        b"P",
    ],
)
async def test_a_request_that_ends_before_it_is_whole_is_dropped(
    server: HttpServer, sent: bytes
) -> None:
    async with wire(server.port) as connection:
        connection.send(sent)
        connection.writer.write_eof()

        assert await connection.closed() == b""


async def test_a_connection_without_a_whole_head_in_time_is_closed_whatever_trickles_in(
    server: HttpServer,
) -> None:
    async def trickle(connection: Wire) -> None:
        with suppress(ConnectionError):
            for number in range(1_000):
                connection.send(b"X-%d: y\r\n" % number)
                await asyncio.sleep(0.05)

    async with (
        wire(server.port) as silent,
        wire(server.port) as half,
        wire(server.port) as slow,
    ):
        half.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        slow.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        trickling = asyncio.create_task(trickle(slow))
        received = [await connection.closed() for connection in (silent, half, slow)]
        trickling.cancel()

    assert received == [b""] * 3


async def test_a_connection_with_half_of_its_next_head_is_closed(
    server: HttpServer,
) -> None:
    async with wire(server.port) as connection:
        connection.send(
            head("GET", "/healthz")
            + head("GET", "/healthz")
            + b"POST /mcp HTTP/1.1\r\nHost: lo"
        )
        received = await connection.closed()

    assert received.count(b"HTTP/1.1 200 ") == 2
    assert received.count(b"HTTP/1.1 ") == 2


@pytest.mark.strain
async def test_a_body_that_does_not_come_in_time_is_timed_out_whatever_trickles_in(
    server: HttpServer,
) -> None:
    async with wire(server.port) as declared, wire(server.port) as chunked:
        declared.send(head("POST", "/mcp", "Content-Length: 90000"))
        chunked.send(head("POST", "/messages/", "Transfer-Encoding: chunked"))
        with suppress(ConnectionError):
            for _ in range(30):
                declared.send(b" ")
                chunked.send(b"1\r\n \r\n")
                await asyncio.sleep(0.1)
        answers = [await declared.closed(), await chunked.closed()]

    for answer in answers:
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"too_slow"' in answer


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /nowhere HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nno colon here\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "
        + b"y" * 100_000
        + b"\r\n\r\n",
        head("POST", "/mcp", "Content-Length: -1"),
        head("POST", "/mcp", "Content-Length: ten"),
        head("POST", "/mcp", "Content-Length: 5", "Content-Length: 6") + b"{}   ",
        head("POST", "/mcp", "Content-Length: 12", "Transfer-Encoding: gzip")
        + b"2\r\n{}\r\n0\r\n\r\n",
        head("POST", "/mcp", "Transfer-Encoding: gzip"),
        b"\r\n\r\n\r\n\x00\x00\x00",
    ],
)
async def test_bytes_that_are_not_http_are_refused(
    server: HttpServer, sent: bytes
) -> None:
    async with wire(server.port) as connection:
        connection.send(sent)

        assert await connection.status() in (400, 404, 421, 431, 501)


async def test_a_malformed_chunk_ends_the_connection(server: HttpServer) -> None:
    async with wire(server.port) as connection:
        connection.send(
            head("POST", "/mcp", "Transfer-Encoding: chunked")
            + b"zz\r\n{}\r\n0\r\n\r\n"
        )

        assert await connection.status() == 400


async def test_a_request_with_both_lengths_is_refused_and_its_connection_closed(
    server: HttpServer,
) -> None:
    smuggled = head("GET", "/healthz")
    async with wire(server.port) as connection:
        # At once: what arrives after the refusal resets the connection, which may cost the client the answer.
        refused = head(
            "POST", "/mcp", "Content-Length: 5", "Transfer-Encoding: chunked"
        )
        connection.send(refused + b"2\r\n{}\r\n0\r\n\r\n" + smuggled)
        received = await connection.closed()

    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1


async def test_a_client_that_never_reads_its_responses_is_cut_off(
    server: HttpServer,
) -> None:
    async with httpx.AsyncClient(base_url=server.url, timeout=30) as client:
        memories = [{"content": f"{number} " + "wave " * 5_000} for number in range(3)]
        assert (
            await client.post(
                "/mcp", json=call("memory_store", memories=memories), headers=MCP
            )
        ).status_code == 200
    unread = socket.socket()
    unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    unread.setblocking(False)
    ask = posted(call("memory_list", limit=3))

    async with asyncio.timeout(120):
        await asyncio.get_running_loop().sock_connect(
            unread, ("127.0.0.1", server.port)
        )
        with suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(unread, ask * 200)
        while connected(server, unread):
            await asyncio.sleep(0.1)
    unread.close()


def connected(server: HttpServer, client: socket.socket) -> bool:
    """Say whether the server still has its end of the connection."""
    here = client.getsockname()[1]
    there = server.port
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *_ = line.split()
        ports = int(local.rpartition(":")[2], 16), int(remote.rpartition(":")[2], 16)
        if ports == (there, here) and state == "01":
            return True
    return False


@pytest.fixture
def many_files() -> Iterator[None]:
    """Enough file descriptors for both ends of the connections that a test opens."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_096)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident(process: int) -> int:
    """Return the memory of a process in megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20


async def until_served(server: HttpServer) -> None:
    """Wait until the server has answered the calls of others that came before."""
    async with (
        httpx.AsyncClient(base_url=server.url, timeout=120) as client,
        asyncio.timeout(120),
    ):
        while (
            await client.post("/mcp", json=message("tools/list"), headers=MCP)
        ).status_code == 503:
            await asyncio.sleep(0.1)


async def calls(server: HttpServer, count: int) -> None:
    """Make so many calls, all of which must succeed."""
    async with httpx.AsyncClient(base_url=server.url, timeout=120) as client:
        for number in range(count):
            for asked in (
                call("memory_store", content=f"call {number}"),
                call("memory_recall", query="call"),
            ):
                answer = await client.post("/mcp", json=asked, headers=MCP)
                assert answer.status_code == 200, answer.text
                assert '"isError":false' in answer.text


@pytest.mark.strain
@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="looks at memory by /proc"
)
async def test_a_thousand_abandoned_connections_stop_neither_calls_nor_the_end(
    database_url: str, tmp_path: Path, many_files: None
) -> None:
    """With the limits of production, so that all of them are open until the server ends."""
    kinds = [
        b"",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
        head("POST", "/mcp", "Content-Length: 90000") + b"x" * 80_000,
        posted(message("tools/list")) * 4,  # and reads nothing
    ]
    async with on_http(
        watched(tmp_path, database_url=database_url), alone=True
    ) as server:
        await calls(server, 5)
        before = resident(server.process.pid)
        async with AsyncExitStack() as stack:
            for number in range(1_000):
                connection = await stack.enter_async_context(
                    wire(server.port, seconds=300)
                )
                connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
                connection.send(kinds[number % len(kinds)])
            await until_served(server)
            await calls(server, 10)
            grown = resident(server.process.pid) - before
            await server.end()

    print(f"memory grew by {grown} MB")
    assert grown < 100
    assert server.process.returncode == 0


async def test_connections_beyond_the_most_replace_silent_ones(
    database_url: str, tmp_path: Path
) -> None:
    settings = limited(
        watched(tmp_path, database_url=database_url), connections=20, head_seconds=60
    )
    async with (
        on_http(settings, module="tests.limited") as server,
        AsyncExitStack() as stack,
    ):
        silent = [
            await stack.enter_async_context(wire(server.port, seconds=60))
            for _ in range(50)
        ]
        await calls(server, 3)
        first = await silent[0].closed()
        busy = [
            await stack.enter_async_context(wire(server.port, seconds=60))
            for _ in range(20)
        ]
        for connection in busy:
            connection.send(
                head("POST", "/mcp", "Content-Length: 100", "Expect: 100-continue")
            )
            assert await connection.status() == 100, (
                "its call is begun and waits for the body"
            )
        async with wire(server.port, seconds=60) as late:
            received = await late.closed()

    assert (first, received) == (b"", b"")
