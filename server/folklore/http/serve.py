"""The HTTP server: streamable HTTP at /mcp, SSE at /sse, health, on one port of its own uvicorn."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import structlog
import uvicorn
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore import __version__
from folklore.app import App
from folklore.config import OAuthSettings, Settings
from folklore.errors import ConfigInvalid, FolkloreError
from folklore.http.api import api_routes
from folklore.http.auth import Door
from folklore.http.oauth import JwtIssuer
from folklore.http.team import Team
from folklore.memory.access import may_write_somewhere
from folklore.memory.callers import present_caller
from folklore.tools.server import build_server

log = structlog.get_logger(__name__)


def transport_security(host: str, extra: Sequence[str]) -> TransportSecuritySettings:
    """Host and Origin checks, always on: only this machine's names, the bound address and the configured names pass."""
    bound = f"[{host}]" if ":" in host else host
    names = list(dict.fromkeys(["127.0.0.1", "localhost", "[::1]", bound, *extra]))
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        # A pattern `name:*` does not match the bare name, so both stand.
        allowed_hosts=[form for name in names for form in (name, f"{name}:*")],
        allowed_origins=[
            f"{scheme}://{name}{port}" for name in names for scheme in ("http", "https") for port in ("", ":*")
        ],
    )


def build_app(app: App, host: str) -> Starlette:
    """The ASGI application over a running (or starting) application, which it starts and closes."""
    oauth = app.settings.oauth
    team = Team.of(app, None if oauth.issuer is None else JwtIssuer(oauth))
    writing, reading = (_protocol(team, host, read_only=read_only) for read_only in (app.settings.read_only, True))

    @asynccontextmanager
    async def lifespan(_outer: Starlette) -> AsyncIterator[None]:
        app.start()
        app.start_upkeep()
        try:
            async with writing.router.lifespan_context(writing), reading.router.lifespan_context(reading):
                yield
        finally:
            await team.close()
            await app.close()

    return Starlette(
        routes=[
            Route("/healthz", _alive),
            Route("/readyz", _ready_of(app)),
            *_metadata(oauth),
            *api_routes(team.host, transport_security(host, app.settings.http.allowed_hosts)),
            Mount("/", ByRole(writing, reading)),
        ],
        middleware=[
            Middleware(Door, keeper=team.keeper, refused=team.refused, metadata_url=_metadata_url(oauth)),
        ],
        lifespan=lifespan,
    )


def _metadata(oauth: OAuthSettings) -> list[Route]:
    """Who vouches for callers, for clients that look for it (RFC 9728)."""
    if _metadata_url(oauth) is None:
        return []
    return create_protected_resource_routes(
        resource_url=AnyHttpUrl(str(oauth.audience)), authorization_servers=[AnyHttpUrl(str(oauth.issuer))]
    )


def _metadata_url(oauth: OAuthSettings) -> str | None:
    if oauth.issuer is None or not str(oauth.audience).startswith(("http://", "https://")):
        return None
    return str(build_resource_metadata_url(AnyHttpUrl(str(oauth.audience))))


def _protocol(team: Team, host: str, *, read_only: bool) -> Starlette:
    """MCP over streamable HTTP and SSE, with the tools that write or without them."""
    settings = team.app.settings
    server = build_server(team.host, offered=settings.tools, read_only=read_only)
    security = transport_security(host, settings.http.allowed_hosts)
    starlette = server.streamable_http_app(
        host=host,
        stateless_http=True,  # no session lives in a worker, so any worker may answer
        json_response=True,
        max_request_body_size=settings.http.max_body_bytes,
        transport_security=security,
    )
    sse = server.sse_app(host=host, transport_security=security, max_request_body_size=settings.http.max_body_bytes)
    starlette.router.routes.extend(sse.routes)
    return starlette


class ByRole:
    """Two servers as one: who may write nowhere gets the one that does not show the writing tools."""

    def __init__(self, writing: ASGIApp, reading: ASGIApp) -> None:
        self._writing = writing
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request as whoever it is from."""
        await (self._writing if may_write_somewhere(present_caller()) else self._reading)(scope, receive, send)


async def _alive(_request: Request) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


def _ready_of(app: App) -> Callable[[Request], Awaitable[Response]]:
    async def ready(_request: Request) -> Response:
        try:
            running = await app.ready()
            await running.library.namespaces.notebooks([])
        except FolkloreError as error:
            return JSONResponse({"status": "unavailable", "missing": error.code, "message": error.message}, 503)
        return JSONResponse({"status": "ready", "engine": running.where})

    return ready


def run(settings: Settings, host: str, port: int) -> None:
    """Serve until SIGTERM or SIGINT, then end within the graceful time. Raises ConfigInvalid for an open address."""
    if not _loopback(host):
        raise ConfigInvalid(
            "http.host",
            f"{host} can be reached from other machines, and this version has no tokens.",
            hint="Listen on 127.0.0.1 and put an authenticating proxy before it.",
        )
    app = App(settings)
    config = uvicorn.Config(
        build_app(app, host),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=settings.http.graceful_seconds,
        server_header=False,
    )
    log.info("serving", url=f"http://{host}:{port}/mcp", sse=f"http://{host}:{port}/sse")
    uvicorn.Server(config).run()


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
