"""Clients as they are: what they accept is what they get, and what is wrong is one sentence in the form that they read."""

import json
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.types import UNSUPPORTED_PROTOCOL_VERSION

from folklore.server.mcp_clients import UNSUPPORTED_VERSION, VERSIONS
from tests.servers import HttpServer, on_http, watched
from tests.wire import INITIALIZE, MCP, call, message

JSON = "application/json"
EVENTS = "text/event-stream"
NEWEST = "2026-07-28"
LIST = message("tools/list")


@pytest.fixture(scope="module")
async def server(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    settings = watched(tmp_path_factory.mktemp("clients"), database_url=address)
    async with on_http(settings) as running:
        yield running
        assert not running.crashes()


@pytest.fixture
async def client(server: HttpServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=server.url, headers={"Content-Type": JSON}, timeout=60
    ) as opened:
        del opened.headers["accept"]
        yield opened


def newest(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A request of the newest version, and its headers."""
    prefix = "io.modelcontextprotocol"
    meta = {f"{prefix}/protocolVersion": NEWEST, f"{prefix}/clientCapabilities": {}}
    asked = {**request, "params": {**request["params"], "_meta": meta}}
    headers = {"MCP-Protocol-Version": NEWEST, "Mcp-Method": request["method"]}
    name = request["params"].get("name")
    return asked, headers | ({} if name is None else {"Mcp-Name": name})


def answer_of(response: httpx.Response) -> Any:
    """The message in a response, of either type."""
    if response.headers["content-type"].startswith(EVENTS):
        [data] = [
            line for line in response.text.splitlines() if line.startswith("data:")
        ]
        return json.loads(data.removeprefix("data:"))
    return response.json()


def sentence(response: httpx.Response) -> str:
    """The message of a JSON-RPC error: short, and of us."""
    assert response.headers["content-type"] == JSON
    error = response.json()
    assert error["jsonrpc"] == "2.0"
    assert isinstance(error["error"]["code"], int)
    text = str(error["error"]["message"])
    assert len(text) < 300
    assert "pydantic" not in response.text
    return text


def said(error: BaseException) -> str:
    """What the client of the SDK raises."""
    if isinstance(error, BaseExceptionGroup):
        return " ".join(map(said, error.exceptions))
    return str(error)


@pytest.mark.parametrize("era", ["handshake", "newest"])
@pytest.mark.parametrize(
    ("accept", "gets"),
    [
        (JSON, {JSON}),
        (EVENTS, {EVENTS}),
        ("TEXT/event-stream;q=0.5, application/json;q=0", {EVENTS}),
        ("application/*", {JSON}),
        (f"{JSON}, {EVENTS}", {JSON, EVENTS}),
        ("*/*", {JSON, EVENTS}),
        (None, {JSON, EVENTS}),
    ],
)
async def test_the_answer_is_of_the_type_that_the_client_accepts(
    client: httpx.AsyncClient, era: str, accept: str | None, gets: set[str]
) -> None:
    headers = {} if accept is None else {"Accept": accept}
    for request in (LIST, call("memory_status"), call("search_keywords", query="tide")):
        body, more = newest(request) if era == "newest" else (request, {})
        response = await client.post("/mcp", json=body, headers=headers | more)

        assert response.status_code == 200, response.text
        assert response.headers["content-type"].partition(";")[0] in gets
        assert answer_of(response)["result"]


async def test_a_client_that_takes_neither_type_is_told_both(
    client: httpx.AsyncClient,
) -> None:
    for body, headers in ((LIST, {}), newest(LIST)):
        response = await client.post(
            "/mcp", json=body, headers=headers | {"Accept": "text/html"}
        )

        assert response.status_code == 406
        assert JSON in sentence(response)
        assert EVENTS in sentence(response)


@pytest.mark.parametrize("accept", [JSON, EVENTS, None])
async def test_a_notification_is_accepted_whatever_the_client_accepts(
    client: httpx.AsyncClient, accept: str | None
) -> None:
    response = await client.post(
        "/mcp",
        json={"jsonrpc": "2.0", "method": "notifications/initialized"},
        headers={} if accept is None else {"Accept": accept},
    )

    assert response.status_code == 202


async def test_an_address_with_a_slash_at_its_end_is_the_same(
    server: HttpServer,
) -> None:
    async with Client(f"{server.url}/mcp/", read_timeout_seconds=30) as client:
        assert (await client.list_tools()).tools
    async with Client(
        sse_client(f"{server.url}/sse/"), read_timeout_seconds=30
    ) as client:
        assert (await client.list_tools()).tools


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([LIST], "Batches are not served"),
        ([], "Batches are not served"),
        ({}, 'jsonrpc must be "2.0"'),
        ("tools/list", "one JSON-RPC message"),
        (None, "one JSON-RPC message"),
        ({"method": "tools/list", "id": 1}, 'jsonrpc must be "2.0"'),
        ({"jsonrpc": "1.0", "method": "tools/list", "id": 1}, 'jsonrpc must be "2.0"'),
        ({"jsonrpc": "2.0", "id": 1}, "method is missing"),
        ({"jsonrpc": "2.0", "id": 1, "method": 7}, "method must be a text"),
        ({**LIST, "id": None}, "id must be"),
        ({**LIST, "id": True}, "id must be"),
        ({**LIST, "id": 1.5}, "id must be"),
        ({**LIST, "id": {"a": 1}}, "id must be"),
        ({**LIST, "params": [1]}, "params must be an object"),
        ({**LIST, "params": "x"}, "params must be an object"),
    ],
)
async def test_what_is_no_message_is_answered_with_one_sentence(
    client: httpx.AsyncClient, body: Any, words: str
) -> None:
    for version in ({}, {"MCP-Protocol-Version": NEWEST}):
        content = json.dumps(body)
        response = await client.post("/mcp", content=content, headers=MCP | version)

        assert response.status_code == 400
        assert words in sentence(response)


def test_the_code_of_an_unknown_version_is_that_of_the_sdk() -> None:
    assert UNSUPPORTED_VERSION == UNSUPPORTED_PROTOCOL_VERSION


def test_the_known_versions_are_those_of_the_sdk() -> None:
    sdk = import_module("mcp_types.version")

    known = (*sdk.HANDSHAKE_PROTOCOL_VERSIONS, *sdk.MODERN_PROTOCOL_VERSIONS)
    assert known == VERSIONS


async def test_what_is_no_json_is_answered_with_one_sentence(
    client: httpx.AsyncClient,
) -> None:
    for content in (b"{", b"", b"\xff\xfe", b"[" * 100_000):
        response = await client.post("/mcp", content=content, headers=MCP)

        assert response.status_code == 400
        assert "cannot be read as JSON" in sentence(response)


@pytest.mark.parametrize("version", ["1999-01-01", "2099-01-01", "latest", "x" * 5000])
async def test_an_unknown_version_is_named_with_the_known_ones(
    client: httpx.AsyncClient, version: str
) -> None:
    headers = MCP | {"MCP-Protocol-Version": version}
    listed = await client.post("/mcp", json=LIST, headers=headers)
    begun = await client.post("/mcp", json=INITIALIZE, headers=headers)

    assert listed.status_code == 400
    assert version[:40] in sentence(listed)
    assert NEWEST in sentence(listed)
    assert begun.status_code == 200  # the version is negotiated by the message


@pytest.mark.parametrize("path", ["/", "/mcp/mcp", "/v1/messages"])
async def test_another_address_names_that_of_mcp(
    client: httpx.AsyncClient, server: HttpServer, path: str
) -> None:
    response = await client.post(path, json=INITIALIZE, headers=MCP)

    assert response.status_code == 404
    assert "/mcp" in sentence(response)
    with pytest.raises(ExceptionGroup) as caught:
        async with Client(f"{server.url}{path}", mode="legacy") as wrong:
            await wrong.list_tools()
    assert "Add /mcp" in said(caught.value) or "MCP is at /mcp" in said(caught.value)


async def test_a_client_of_sse_at_the_bare_address_gets_the_same(
    client: httpx.AsyncClient,
) -> None:
    response = await client.get("/", headers={"Accept": EVENTS})

    assert response.status_code == 404
    assert "/sse" in response.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/register"),
        ("POST", "/token"),
        ("GET", "/authorize?response_type=code"),
        ("GET", "/.well-known/oauth-protected-resource/mcp"),
        ("GET", "/.well-known/oauth-authorization-server"),
        ("GET", "/mcp/.well-known/openid-configuration"),
        ("GET", "/sse/.well-known/oauth-authorization-server"),
    ],
)
async def test_a_client_that_looks_for_oauth_reads_what_to_send(
    client: httpx.AsyncClient, method: str, path: str
) -> None:
    response = await client.request(method, path, headers={"Accept": JSON})

    assert response.status_code == 404
    assert isinstance(response.json()["error"], str)
    assert "Authorization: Bearer fk_" in response.json()["error_description"]


async def test_a_web_page_of_another_origin_is_told_that_it_is_not_served(
    client: httpx.AsyncClient,
) -> None:
    for origin in ("http://localhost:6274", "https://example.com"):
        for path in ("/mcp", "/sse", "/api/list", "/"):
            response = await client.options(
                path,
                headers={
                    "Origin": origin,
                    "Access-Control-Request-Method": "POST",
                    "Access-Control-Request-Headers": "content-type",
                },
            )

            assert response.status_code == 405
            assert "CORS" in response.json()["error"]["message"]
            assert "access-control-allow-origin" not in response.headers


async def test_refusals_before_the_protocol_are_errors_of_the_protocol(
    client: httpx.AsyncClient, server: HttpServer
) -> None:
    wrong = [
        ({"Authorization": "fk_abc"}, 401, "lacks the word Bearer"),
        ({"Host": "elsewhere.example.com"}, 421, "http.allowed_hosts"),
        ({"Origin": "https://elsewhere.example.com"}, 403, "http.allowed_hosts"),
        ({"Content-Type": "text/plain"}, 400, "Content-Type"),
    ]
    for headers, status, words in wrong:
        response = await client.post("/mcp", json=LIST, headers=MCP | headers)

        assert response.status_code == status
        assert words in sentence(response)
    log = server.log_text()

    assert "status=401" in log
    assert "HTTPStatus" not in log
