"""deploy/nginx.conf before a server with several workers and one for SSE, as docs/how-to/reverse-proxy.md describes."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from tests import ROOT
from tests.certificates import Issued, issued
from tests.servers import HttpServer, a_session_of_work, free_port, on_http, watched
from tests.wire import INITIALIZE, MCP, head

CONFIGURATION = ROOT / "deploy" / "nginx.conf"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NAME = "memory.example.com"

pytestmark = pytest.mark.proxy


@dataclass(frozen=True, slots=True)
class Proxied:
    """nginx on loopback, and the server with several workers behind it."""

    port: int
    trusting: ssl.SSLContext
    server: HttpServer

    @property
    def url(self) -> str:
        return f"https://localhost:{self.port}"


@pytest.fixture(scope="module")
async def proxied(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Proxied]:
    files = issued(tmp_path_factory.mktemp("tls"))
    settings = {"database_url": address, "http__allowed_hosts": f'["{NAME}"]'}
    settings["http__trusted_proxies"] = '["127.0.0.1"]'
    several = watched(tmp_path_factory.mktemp("several"), http__workers="2", **settings)
    single = watched(tmp_path_factory.mktemp("single"), **settings)
    # Without it a server that has no token admits nobody that a proxy passes on.
    async with (
        on_http(several, "--insecure") as main,
        on_http(single, "--insecure") as sse,
        nginx(tmp_path_factory.mktemp("nginx"), files, main, sse) as port,
    ):
        yield Proxied(
            port, ssl.create_default_context(cafile=str(files.certificate)), main
        )


@asynccontextmanager
async def nginx(
    folder: Path, files: Issued, main: HttpServer, sse: HttpServer
) -> AsyncIterator[int]:
    """Run nginx with the configuration that is shipped, but for addresses, files and two shorter times."""
    port = free_port()
    replaced = {
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        f"server_name {NAME}": f"server_name {NAME} localhost",
        f"/etc/letsencrypt/live/{NAME}/fullchain.pem": str(files.certificate),
        f"/etc/letsencrypt/live/{NAME}/privkey.pem": str(files.key),
        "folklore {\n    server 127.0.0.1:8765;": f"folklore {{\n    server 127.0.0.1:{main.port};",
        "folklore_sse {\n    server 127.0.0.1:8765;": f"folklore_sse {{\n    server 127.0.0.1:{sse.port};",
        "client_header_timeout 10s": "client_header_timeout 1s",
        "client_body_timeout 30s": "client_body_timeout 1s",
        "limit_conn folklore_clients 100": "limit_conn folklore_clients 10",
    }
    text = CONFIGURATION.read_text(encoding="utf-8")
    for shipped, tested in replaced.items():
        assert text.count(shipped) == 1, shipped
        text = text.replace(shipped, tested)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    whole = folder / "nginx.conf"
    whole.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{text}\n}}\n"
    )
    assert NGINX is not None, "these tests need nginx: apt-get install nginx"
    process = await asyncio.create_subprocess_exec(
        NGINX, "-p", str(folder), "-c", str(whole), "-e", f"{folder}/start.log"
    )
    try:
        async with asyncio.timeout(120):
            while not await listens(port):
                assert process.returncode is None, (folder / "start.log").read_text()
                await asyncio.sleep(0.05)
        yield port
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.transport.abort()
    return True


@asynccontextmanager
async def sending(proxied: Proxied, data: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """Send bytes over TLS and give what comes back."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", proxied.port, ssl=proxied.trusting, server_hostname="localhost"
    )
    try:
        writer.write(data)
        async with asyncio.timeout(120):
            yield reader
    finally:
        writer.transport.abort()


async def test_a_client_does_a_session_of_work_by_streamable_http(
    proxied: Proxied,
) -> None:
    async with (
        httpx2.AsyncClient(verify=proxied.trusting, timeout=30) as http,
        Client(
            streamable_http_client(f"{proxied.url}/mcp", http_client=http),
            read_timeout_seconds=30,
        ) as client,
    ):
        await a_session_of_work(client)


async def test_a_client_does_a_session_of_work_by_sse_at_the_process_with_one_worker(
    proxied: Proxied,
) -> None:
    def client_of(
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            verify=proxied.trusting, headers=headers, timeout=timeout, auth=auth
        )

    transport = sse_client(f"{proxied.url}/sse", httpx_client_factory=client_of)
    async with Client(transport, read_timeout_seconds=30) as client:
        await a_session_of_work(client)


async def test_a_head_or_a_body_that_is_too_slow_is_closed_by_the_proxy(
    proxied: Proxied,
) -> None:
    for sent in (
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
        head("POST", "/mcp", "Content-Length: 100") + b"{",
    ):
        async with sending(proxied, sent) as reader:
            with suppress(ConnectionError):  # reset_timedout_connection
                assert await reader.read() == b""


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (head("POST", "/mcp", "Content-Length: 5000000"), 413),
        (
            head("POST", "/mcp", "Content-Length: 5", "Transfer-Encoding: chunked")
            + b"0\r\n\r\n",
            400,
        ),
        (head("GET", "/metrics"), 403),
        (head("GET", "/healthz", host="evil.example"), 421),
        (head("GET", "/healthz", host=NAME), 200),
    ],
)
async def test_requests_are_answered_as_without_the_proxy(
    proxied: Proxied, request_head: bytes, status: int
) -> None:
    async with sending(proxied, request_head) as reader:
        assert int((await reader.readline()).split()[1]) == status


async def test_an_import_of_any_length_passes(proxied: Proxied) -> None:
    lines = (
        b'[%d, "", 0, null]\t{"content": "%d %s"}\n' % (place, place, b"word " * 5000)
        for place in range(200)
    )
    body = b'{"namespace": "imported", "dry_run": true}\n' + b"".join(lines)

    async with httpx.AsyncClient(
        base_url=proxied.url, verify=proxied.trusting, timeout=60
    ) as client:
        answer = await client.post(
            "/api/import", content=body, headers={"content-type": "application/json"}
        )

    assert answer.json()["result"]["stored"] == 200


async def test_connections_of_one_address_are_limited(proxied: Proxied) -> None:
    async with httpx.AsyncClient(
        base_url=proxied.url, verify=proxied.trusting, timeout=60
    ) as client:
        streams = [client.stream("GET", "/sse") for _ in range(20)]
        statuses = [(await stream.__aenter__()).status_code for stream in streams]
        for stream in streams:
            await stream.__aexit__(None, None, None)

    assert sorted(statuses) == [200] * 10 + [503] * 10


async def test_the_proxy_gives_each_request_an_id_that_the_log_has(
    proxied: Proxied,
) -> None:
    async with httpx.AsyncClient(
        base_url=proxied.url, verify=proxied.trusting, timeout=30
    ) as client:
        answer = await client.post("/mcp", json=INITIALIZE, headers=MCP)

    assert answer.status_code == 200
    assert f"request_id={answer.headers['x-request-id']}" in proxied.server.log_text()
