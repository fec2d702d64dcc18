"""The ASGI application: its routes, and the middleware that each request passes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Protocol

from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore import telemetry
from folklore.app import App
from folklore.config import OAuthSettings
from folklore.errors import NotFound
from folklore.http.api import api_routes
from folklore.http.auth import METRICS, AuthenticationMiddleware
from folklore.http.connections import RequestTracking
from folklore.http.error_responses import Path, failure, refusal
from folklore.http.export import export_route
from folklore.http.health import Health
from folklore.http.limits import STREAM_PATH, Limits, limiting
from folklore.http.metrics import Metrics
from folklore.http.namespace import RequestedNamespace
from folklore.http.oauth import JwtIssuer
from folklore.http.request_log import CallLog, RequestLog
from folklore.http.team import Team
from folklore.http.trusted_hosts import TrustedHosts, transport_security
from folklore.mcp.server import build_server
from folklore.memory.auth.current_caller import present_caller
from folklore.memory.permissions import may_write_somewhere


def build_app(
    app: App,
    host: str,
    limits: Limits | None = None,
    *,
    on_shutdown: Callable[[], None] = lambda: None,
) -> Starlette:
    """Return the ASGI application over `app`, which it starts and closes; `host` is the address it listens on.

    `on_shutdown` is called before anything is closed.
    """
    settings, limits = app.settings, limits or Limits()
    oauth = settings.oauth
    security = transport_security(host, settings.http.allowed_hosts)
    team = Team.of(app, None if oauth.issuer is None else JwtIssuer(oauth))
    health, metrics = Health(app), Metrics(app)
    app.traces.meter = CallLog(metrics)
    protocols = [_protocol(team, host, limits, read_only=read_only) for read_only in (settings.read_only, True)]
    routes: list[BaseRoute] = [
        Path("/healthz", health.alive),
        Path("/readyz", health.ready),
        Path(METRICS, metrics.endpoint),
        *_metadata(oauth),
        export_route(team.host),
        *api_routes(team.host, security),
        *_mcp_routes(ByRole(*protocols), several_workers=settings.http.workers > 1),
    ]

    running = [metrics.publishing, *(partial(one.router.lifespan_context, one) for one in protocols)]
    lifespan = partial(_lifespan, app, (app, team, health), running, on_shutdown)
    middleware = [
        Middleware(RequestTracking),
        Middleware(RequestLog, metrics=metrics, routes=routes),
        Middleware(TrustedHosts, security=security),
        Middleware(
            AuthenticationMiddleware, keeper=team.keeper, refused=team.refused, metadata_url=_metadata_url(oauth)
        ),
        Middleware(RequestedNamespace),
        *limiting(limits, settings.http.rate_per_minute),
    ]
    return Starlette(routes=routes, middleware=middleware, lifespan=lifespan)


class _Closing(Protocol):
    async def close(self) -> None: ...


@asynccontextmanager
async def _lifespan(
    app: App,
    closing: Sequence[_Closing],
    running: Sequence[Callable[[], AbstractAsyncContextManager[object]]],
    on_shutdown: Callable[[], None],
    _outer: Starlette,
) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:  # what is entered last is closed first
        if (collector := telemetry.collect(os.environ)) is not None:
            stack.push_async_callback(collector.stop)
        for part in closing:
            stack.push_async_callback(part.close)
        app.start()
        app.start_upkeep()
        for block in running:
            await stack.enter_async_context(block())
        stack.callback(on_shutdown)
        yield


def _protocol(team: Team, host: str, limits: Limits, *, read_only: bool) -> Starlette:
    """Return MCP over streamable HTTP and SSE, with the tools that write or without them."""
    settings = team.app.settings
    server = build_server(team.host, offered=settings.tools, read_only=read_only)
    security = transport_security(host, settings.http.allowed_hosts)
    starlette = server.streamable_http_app(
        host=host,
        stateless_http=True,  # any worker may answer any request, since none holds a session
        # An event stream carries progress, and ends the call when the client disconnects. At 2026-07-28 the SDK answers
        # in plain JSON all the same, unless there is progress before the result.
        json_response=False,
        max_request_body_size=limits.body_size,
        transport_security=security,
    )
    sse = server.sse_app(host=host, transport_security=security, max_request_body_size=limits.body_size)
    starlette.router.routes.extend(sse.routes)
    return starlette


class ByRole:
    """Two servers as one: a caller who may write nowhere gets the one without the tools that write."""

    def __init__(self, writing: ASGIApp, reading: ASGIApp) -> None:
        self._writing = writing
        self._reading = reading

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request by the role of its caller."""
        await (self._writing if may_write_somewhere(present_caller()) else self._reading)(scope, receive, send)


def _mcp_routes(protocol: ASGIApp, *, several_workers: bool) -> Sequence[Route]:
    """Return the paths of the protocol.

    Streamable HTTP takes POST only: the server has no sessions, so there is no stream to GET and none to DELETE. An SSE
    session lives in one process, so several workers, of which any may get the next message, do not offer SSE.
    """
    sse = Path(STREAM_PATH, _not_with_workers if several_workers else OneResponse(protocol), methods=["GET"])
    if sse.methods:
        sse.methods.discard("HEAD")  # Starlette adds it to GET, but a stream has no head without its body
    return [
        Path("/mcp", protocol, methods=["POST"]),
        sse,
        Path("/messages/", _not_with_workers if several_workers else protocol, methods=["POST"]),
    ]


async def _not_with_workers(_request: Request) -> Response:
    return refusal(
        501,
        "sse_needs_one_worker",
        "This server has several workers, and an SSE session lives in one.",
        "Connect to /mcp by streamable HTTP, or set http.workers to 1.",
    )


class OneResponse:
    """ASGI middleware for /sse that ends a stream once.

    The SDK begins a second response after the stream has ended, or leaves the stream without its end when the server
    ends. uvicorn logs both as crashes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its first response back."""
        started = repeated = finished = False

        async def send_first(message: Message) -> None:
            nonlocal started, repeated, finished
            repeated = repeated or (started and message["type"] == "http.response.start")
            if repeated:
                return
            started = True
            finished = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        await self.app(scope, receive, send_first)
        if started and not finished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _metadata(oauth: OAuthSettings) -> list[Route]:
    """Return the routes where clients look for the issuer (RFC 9728); the rest below /.well-known/ is 404."""
    nothing = Route("/.well-known/{rest:path}", _no_metadata, methods=["GET", "OPTIONS"])
    if _metadata_url(oauth) is None:
        return [nothing]
    found = create_protected_resource_routes(
        resource_url=AnyHttpUrl(str(oauth.audience)), authorization_servers=[AnyHttpUrl(str(oauth.issuer))]
    )
    return [*found, nothing]


async def _no_metadata(_request: Request) -> Response:
    return failure(NotFound("This server has no such metadata; it takes tokens of its own."))


def _metadata_url(oauth: OAuthSettings) -> str | None:
    if oauth.issuer is None or not str(oauth.audience).startswith(("http://", "https://")):
        return None
    return str(build_resource_metadata_url(AnyHttpUrl(str(oauth.audience))))
