"""One application, several listeners: each has its own paths, and each admits its own callers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from folklore.app import App
from folklore.config import Settings
from folklore.contract.people import CreateTokenRequest
from folklore.server.application.app import Application, OwnSide, build_app
from folklore.server.error_responses import Path
from folklore.server.listener import (
    OWN,
    Entrance,
    Listener,
    by_link,
    by_token,
    listener_of,
)
from tests.doors import own_service
from tests.wire import INITIALIZE, MCP

NETWORK = {
    "tokens": by_token("127.0.0.1"),
    "open": by_token("127.0.0.1", open_to_all=True),
    "links": by_link("127.0.0.1"),
}
JSON = {"Content-Type": "application/json"}
# What only the clients of this user state, and what a proxy states.
FORGED = {
    "Folklore-Author": "mallory",
    "Folklore-Directory": "/",
    "Folklore-Listener": "own",
    "X-Forwarded-For": "127.0.0.1",
}
REQUESTS = [
    ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/sse"), ("POST", "/messages/"),
    ("POST", "/mcp"), ("POST", "/mcp/"), ("POST", "/api/caller"), ("POST", "/api/export"), ("POST", "/api/import"),
    ("POST", "/api/join"), ("POST", "/console"), ("POST", "/console/"), ("DELETE", "/console/port"),
    ("GET", "/.well-known/oauth-authorization-server"), ("POST", "/register"),
    ("GET", "/search"), ("GET", "/"), ("POST", "/sign-in"),
]  # fmt: skip


async def _address(_request: Request) -> Response:
    return JSONResponse({"url": "opened"})


async def _port(_request: Request) -> Response:
    return JSONResponse({"port": "given up"})


@asynccontextmanager
async def _serving(_application: Application) -> AsyncIterator[None]:
    yield


def built(app: App, network: Listener) -> Application:
    """The application of a process that has all listeners."""
    routes = [
        Path("/console", _address, methods=["POST"]),
        Path("/console/port", _port, methods=["DELETE"]),
    ]
    return build_app(app, network, own=OwnSide(routes, "notes", _serving))


@asynccontextmanager
async def clients(
    app: App, network: Listener
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """A client on TCP, and one of this user's socket."""
    application = built(app, network)
    async with (
        application.router.lifespan_context(application),
        httpx.AsyncClient(
            base_url="http://127.0.0.1", transport=httpx.ASGITransport(application)
        ) as tcp,
        httpx.AsyncClient(
            base_url="http://localhost",
            transport=httpx.ASGITransport(Entrance(application, OWN)),
        ) as own,
    ):
        yield tcp, own


async def status(
    client: httpx.AsyncClient, method: str, path: str, headers: Mapping[str, str]
) -> int:
    async with client.stream(
        method, path, headers={**JSON, **headers}, content=b"{}"
    ) as answer:
        return answer.status_code


@pytest.mark.parametrize("forged", [{}, FORGED], ids=["plain", "forged"])
async def test_the_consoles_port_has_nothing_but_pages_whatever_a_request_holds(
    settings: Settings, forged: Mapping[str, str]
) -> None:
    app = App(settings)
    async with clients(app, NETWORK["links"]) as (tcp, _own):
        made = await own_service(app).call(
            CreateTokenRequest(name="ada", owner=True, expires="never")
        )
        tokens = [{}, {"Authorization": f"Bearer {made.secret}"}]
        found = {
            (method, path)
            for method, path in REQUESTS
            for token in tokens
            if await status(tcp, method, path, {**forged, **token}) not in (404, 405)
        }
        page = await tcp.get("/search", headers={"Accept": "text/html"})
        signed_in = await tcp.post(
            "/sign-in",
            headers={"Origin": "http://127.0.0.1"},
            data={"token": made.secret},
        )

    # Without a session a page leads to the sign-in page, and a form from elsewhere is refused.
    pages = {("GET", "/search"), ("GET", "/"), ("POST", "/sign-in")}
    assert found == {("GET", "/healthz"), *pages}
    assert page.headers["location"] == "./sign-in?next=search"
    assert signed_in.status_code == 405


@pytest.mark.parametrize("forged", [{}, FORGED], ids=["plain", "forged"])
async def test_a_port_with_tokens_admits_nothing_without_one_that_the_socket_admits(
    settings: Settings, forged: Mapping[str, str]
) -> None:
    app = App(settings)
    async with clients(app, NETWORK["tokens"]) as (tcp, own):
        await own_service(app).call(
            CreateTokenRequest(name="ada", owner=True, expires="never")
        )
        without = {
            (method, path): await status(tcp, method, path, forged)
            for method, path in REQUESTS
        }
        by_socket = await own.post("/api/caller", headers=JSON, content=b"{}")

    admitted = {request for request, code in without.items() if code == 200}
    probes = {("GET", "/healthz"), ("GET", "/readyz")}
    assert admitted - {("GET", "/metrics")} <= probes  # which this machine may read
    assert {without[request] for request in without if "/api/" in request[1]} <= {
        400,  # of an invitation that is none
        401,
    }
    assert without["POST", "/mcp"] == without["GET", "/sse"] == 401
    assert by_socket.json()["result"]["owner"] is True


async def test_only_the_socket_leads_to_the_console_and_believes_who_calls(
    settings: Settings,
) -> None:
    app = App(settings)
    async with clients(app, NETWORK["open"]) as (tcp, own):
        opened = {
            name: [
                (await client.post("/console", headers=JSON)).status_code,
                (await client.delete("/console/port")).status_code,
            ]
            for name, client in (("tcp", tcp), ("own", own))
        }
        names = {
            name: (
                await client.post(
                    "/api/caller", headers={**JSON, **FORGED}, content=b"{}"
                )
            ).json()["result"]["principal"]
            for name, client in (("tcp", tcp), ("own", own))
        }

    assert opened == {"tcp": [404, 404], "own": [200, 200]}
    assert names == {"tcp": settings.author, "own": "mallory"}


async def test_the_socket_has_no_pages_no_metrics_and_no_streams_of_the_old_protocol(
    settings: Settings,
) -> None:
    async with clients(App(settings), NETWORK["tokens"]) as (_tcp, own):
        missing = {
            (method, path)
            for method, path in REQUESTS
            if await status(own, method, path, {"Accept": "text/html"}) == 404
        }
        initialized = await own.post("/mcp", json=INITIALIZE, headers=MCP)

    assert missing == {
        ("GET", "/metrics"), ("GET", "/sse"), ("POST", "/messages/"), ("GET", "/search"), ("GET", "/"),
        ("GET", "/.well-known/oauth-authorization-server"), ("POST", "/register"), ("POST", "/sign-in"),
    }  # fmt: skip
    assert initialized.status_code == 200


@pytest.mark.parametrize("network", NETWORK)
async def test_a_web_page_of_another_origin_reaches_no_port(
    settings: Settings, network: str
) -> None:
    async with clients(App(settings), NETWORK[network]) as (tcp, _own):
        answers = {
            name: [
                await status(tcp, method, path, headers) for method, path in REQUESTS
            ]
            for name, headers in (
                ("Host", {"Host": "evil.example"}),
                ("Origin", {"Origin": "http://evil.example"}),
            )
        }

    assert set(answers["Host"]) == {421}
    assert set(answers["Origin"]) == {403}


def test_nobody_enters_by_a_listener_that_is_not_known() -> None:
    with pytest.raises(KeyError):
        listener_of({"type": "http"})
