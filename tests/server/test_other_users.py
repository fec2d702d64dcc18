"""Without tokens, a server on loopback works for the user that started it, and for no other user of the machine."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from mcp import Client

from folklore.server.application import peers
from tests.servers import HttpServer, a_session_of_work, on_http, watched
from tests.stranger import Seen, Sent, as_nobody, needs_root
from tests.visitor import visiting
from tests.wire import INITIALIZE, MCP

JSON = {"Content-Type": "application/json"}
INITIALIZED = json.dumps(INITIALIZE)


@pytest.fixture(scope="module")
async def server(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    settings = watched(tmp_path_factory.mktemp("own"), database_url=address)
    async with on_http(settings) as running:
        yield running
        assert not running.crashes()


def refused(answer: Seen) -> bool:
    return answer.status == 401 and "user id 65534 sent this" in answer.text


@needs_root
async def test_another_user_gets_nothing_and_a_sentence_that_says_what_to_do(
    server: HttpServer,
) -> None:
    url = server.url
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": url}
    asked = [
        Sent("POST", f"{url}/mcp", INITIALIZED, MCP),
        Sent("POST", f"{url}/api/list", "{}", JSON),
        Sent("POST", f"{url}/api/create_link", "{}", JSON),
        Sent("GET", f"{url}/sse", None, {"Accept": "text/event-stream"}),
        Sent("POST", f"{url}/messages/?session_id=1", "{}", JSON),
    ]
    *machines, page, signed_in = await as_nobody(
        *asked,
        Sent("GET", f"{url}/sign-in", None, {"Accept": "text/html"}),
        Sent("POST", f"{url}/sign-in", "token=&next=", form),
    )

    assert [refused(answer) for answer in machines] == [True] * len(asked)
    assert "folklore tokens create" in machines[0].text
    assert "Open the console" not in page.text
    assert "user id 65534" in page.text
    assert (signed_in.status, signed_in.headers.get("set-cookie")) == (403, None)


async def test_the_user_that_started_it_needs_no_token(server: HttpServer) -> None:
    async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
        await a_session_of_work(client)
    async with visiting(server.url) as visitor:
        assert (await visitor.get("/team")).status_code == 200


@needs_root
async def test_the_session_of_its_user_is_of_no_use_to_another(
    server: HttpServer,
) -> None:
    async with visiting(server.url) as visitor:
        cookie = "; ".join(
            f"{one.name}={one.value}" for one in visitor.http.cookies.jar
        )
        headers = {"Accept": "text/html", "Cookie": cookie}
        [answer] = await as_nobody(Sent("GET", f"{server.url}/search", None, headers))

    assert (answer.status, answer.headers["location"]) == (303, "./sign-in?next=search")


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via"])
async def test_what_a_proxy_passes_on_is_not_taken_for_the_user(
    server: HttpServer, name: str
) -> None:
    async with httpx.AsyncClient(base_url=server.url) as client:
        answer = await client.post(
            "/mcp", json=INITIALIZE, headers=MCP | {name: "203.0.113.7"}
        )

    assert answer.status_code == 401
    assert "a proxy has passed this request on" in answer.text


@needs_root
async def test_on_request_it_admits_every_user(address: str, tmp_path: Path) -> None:
    listed = "/api/list_namespaces"
    settings = watched(tmp_path, database_url=address)
    async with on_http(settings, "--insecure") as running:
        [answer] = await as_nobody(Sent("POST", running.url + listed, "{}", JSON))
        log = running.log_text()

    assert answer.status == 200
    assert "EVERY client" in log


async def test_where_the_system_does_not_tell_a_token_is_made_and_kept_for_commands(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(tmp_path, database_url=database_url)
    async with on_http(settings, module="tests.untold") as running:
        async with httpx.AsyncClient(base_url=running.url) as client:
            without = await client.post("/api/list", json={})
        command = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "folklore", "--server", running.url, "status"),
            env=dict(settings.environment),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(60):
            _, err = await command.communicate()
    [kept] = (tmp_path / "home" / "credentials").iterdir()

    assert without.status_code == 401
    assert (command.returncode, err) == (0, b"")
    assert kept.stat().st_mode & 0o777 == 0o600


# The kernel's answer


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell it")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_the_user_of_an_open_connection_is_told_and_of_a_closed_one_not(
    host: str,
) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listens = "127.0.0.1" if host.startswith("::ffff:") else host
    listening_family = socket.AF_INET6 if ":" in listens else socket.AF_INET
    with (
        socket.create_server((listens, 0), family=listening_family) as listening,
        socket.socket(family) as client,
    ):
        client.connect((host, listening.getsockname()[1]))
        accepted, peer = listening.accept()
        with accepted:
            ends = (peer[:2], accepted.getsockname()[:2])
            during = peers.user_at(*ends)
            client.close()
            after = peers.user_at(*ends)

    assert (during is not None, after) == (True, None)
