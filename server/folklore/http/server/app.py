"""The ASGI application: its routes, and the middleware that each request passes."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from functools import partial
from typing import Any

from mcp.server import Server
from mcp.server.auth.routes import (
    build_resource_metadata_url,
    create_protected_resource_routes,
)
from mcp.server.sse import SseServerTransport
from mcp.server.transport_security import TransportSecuritySettings
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
from folklore.errors import NotFound, Unauthenticated
from folklore.http.auth import AuthenticationMiddleware
from folklore.http.console.guard import ConsoleGuard
from folklore.http.console.pages.routes import console_routes, is_console, missing_page
from folklore.http.error_responses import Path, refusal
from folklore.http.limits import (
    STREAM_PATH,
    BodyLimit,
    ConcurrencyLimit,
    Limits,
    RateLimit,
)
from folklore.http.mcp_clients import (
    MCP_PATH,
    OAUTH_PATHS,
    McpReplies,
    Negotiated,
    OneSpelling,
    no_oauth,
)
from folklore.http.oauth import JwtIssuer
from folklore.http.requested import RequestedNames
from folklore.http.server.api import api_routes
from folklore.http.server.connections import (
    RequestTracking,
    TrimmedHeaders,
    current_peer,
)
from folklore.http.server.health import Health
from folklore.http.server.metrics import Metrics
from folklore.http.server.peers import RequestPeer, require_own_user
from folklore.http.server.request_log import RequestLog
from folklore.http.team import Team
from folklore.http.transfers import Exports
from folklore.http.trusted_hosts import TrustedHosts, transport_security
from folklore.mcp.server import build_server
from folklore.memory.auth.console_sessions import ConsoleSessions
from folklore.memory.auth.current_caller import current_caller
from folklore.memory.auth.token_watch import TokenWatch


def build_app(
    app: App,
    host: str,
    limits: Limits | None = None,
    *,
    open_to_all: bool = False,
    beside: Callable[[App], AbstractAsyncContextManager[None]] | None = None,
    on_shutdown: Callable[[], None] = lambda: None,
) -> Starlette:
    """Return the ASGI application over `app`, which it starts and closes.

    `host` is the address it listens on; `beside` is entered while the application runs; `on_shutdown` is called before
    anything is closed. Where no token is needed, it admits this user's processes alone, or whoever reaches it if it is
    `open_to_all`.
    """
    settings = app.settings
    limits = limits or Limits()
    oauth = settings.oauth
    security = transport_security(host, settings.http.allowed_hosts)
    team = Team.of(
        app,
        None if oauth.issuer is None else JwtIssuer(oauth),
        (lambda: None) if open_to_all else require_own_user,
    )
    sessions = ConsoleSessions(
        app.memory, team.authenticator, lambda: app.caller, app.now
    )
    health = Health(app)
    metrics = Metrics(app)
    exports = Exports(team.service, team.watch)
    app.usage.metrics = metrics
    server = build_server(team.service, offered=settings.tools)
    streamable = streamable_http(server, host, security, limits)
    routes: list[BaseRoute] = [
        Path("/healthz", health.alive),
        Path("/readyz", health.ready),
        Path("/metrics", metrics.endpoint),
        *_metadata(oauth),
        *api_routes(team.service, exports),
        Path(
            MCP_PATH, Negotiated(streamable), methods=["POST"]
        ),  # without sessions there is no stream to GET and none to DELETE
        *_sse_routes(
            server,
            team.watch,
            security,
            limits,
            several_workers=settings.http.workers > 1,
        ),
        *console_routes(team, sessions, exports),
    ]

    @asynccontextmanager
    async def lifespan(outer: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:  # what is entered last is closed first
            telemetry.start(os.environ)
            stack.push_async_callback(telemetry.stop)
            stack.push_async_callback(app.close)
            stack.push_async_callback(team.close)
            stack.push_async_callback(health.close)
            app.start()
            app.start_jobs()
            if beside is not None:
                await stack.enter_async_context(beside(app))
            await stack.enter_async_context(metrics.publishing())
            await stack.enter_async_context(
                streamable.router.lifespan_context(streamable)
            )
            stack.callback(on_shutdown)
            stack.callback(setattr, outer.state, "ended", True)
            yield

    middleware = [
        Middleware(RequestTracking),
        Middleware(TrimmedHeaders),
        Middleware(OneSpelling),
        Middleware(RequestLog, metrics=metrics, routes=routes),
        Middleware(McpReplies, bare_address=_bare_address),
        Middleware(RequestPeer, peer_of=current_peer),
        Middleware(TrustedHosts, security=security),
        Middleware(
            AuthenticationMiddleware,
            team=team,
            metadata_url=_metadata_url(oauth),
            is_console=is_console,
        ),
        Middleware(ConsoleGuard, team=team, sessions=sessions, is_console=is_console),
        Middleware(RequestedNames),
        Middleware(RateLimit, per_minute=settings.http.rate_per_minute),
        Middleware(BodyLimit, limits=limits),
        Middleware(ConcurrencyLimit, limits=limits),
    ]
    return Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={404: missing_page(team.service, _no_such_path)},
    )


def build_console(app: App, host: str, limits: Limits) -> Starlette:
    """Return the console alone, over a running `app`: for the person who got a one-time link, and nobody else."""
    team = Team.of(app, require_local=_refuse_without_link)
    sessions = ConsoleSessions(
        app.memory, team.authenticator, lambda: app.caller, app.now, by_link_alone=True
    )
    health = Health(app)
    metrics = Metrics(app)
    exports = Exports(team.service, team.watch)
    routes: list[BaseRoute] = [
        Path("/healthz", health.alive),  # by which a server that starts names it
        *console_routes(team, sessions, exports),
    ]

    @asynccontextmanager
    async def lifespan(_outer: Starlette) -> AsyncIterator[None]:
        async with metrics.publishing():
            yield
        await team.close()
        await health.close()

    security = transport_security(host, ())
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(RequestTracking),
            Middleware(TrimmedHeaders),
            Middleware(RequestLog, metrics=metrics, routes=routes),
            Middleware(McpReplies, bare_address=_only_pages),
            Middleware(TrustedHosts, security=security),
            Middleware(
                ConsoleGuard, team=team, sessions=sessions, is_console=is_console
            ),
            Middleware(RequestedNames),
            Middleware(BodyLimit, limits=limits),
            Middleware(ConcurrencyLimit, limits=limits),
        ],
        lifespan=lifespan,
        exception_handlers={404: missing_page(team.service, _only_pages)},
    )


def _refuse_without_link() -> None:
    raise Unauthenticated(
        "missing",
        "This is the console of one person.",
        hint="`folklore open` makes a link that signs in.",
    )


def streamable_http(
    server: Server[Any], host: str, security: TransportSecuritySettings, limits: Limits
) -> Starlette:
    """Return MCP over streamable HTTP, without sessions: any worker may answer any request."""
    return server.streamable_http_app(
        host=host,
        stateless_http=True,
        # An event stream carries progress, and ends the call when the client disconnects. At 2026-07-28 the SDK answers
        # in plain JSON unless there is a message before the result.
        json_response=False,
        max_request_body_size=limits.body_size,
        transport_security=security,
    )


def _sse_routes(
    server: Server[Any],
    watch: TokenWatch,
    security: TransportSecuritySettings,
    limits: Limits,
    *,
    several_workers: bool,
) -> Sequence[Route]:
    """Return the paths of SSE.

    A session lives in one process, so several workers, any of which may get the next message, do not offer SSE.
    """
    transport = SseServerTransport("/messages/", security, limits.body_size)

    # Starlette calls as an ASGI application what an endpoint returns.
    async def session(_request: Request) -> ASGIApp:
        if several_workers:
            return _needs_one_worker()
        return partial(_serve_session, server, transport, watch)

    async def message(_request: Request) -> ASGIApp:
        if several_workers:
            return _needs_one_worker()
        return transport.handle_post_message

    stream = Path(STREAM_PATH, session)
    stream.methods = {
        "GET"
    }  # without HEAD, which Starlette adds: a stream has no head without its body
    return [stream, Path("/messages/", message, methods=["POST"])]


def _needs_one_worker() -> Response:
    message = "This server has several workers, and an SSE session lives in one."
    return refusal(
        501,
        "sse_needs_one_worker",
        message,
        "Connect to /mcp by streamable HTTP, or set http.workers to 1.",
    )


async def _serve_session(
    server: Server[Any],
    transport: SseServerTransport,
    watch: TokenWatch,
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Serve one session until the client or its token ends, and end its stream.

    The SDK leaves the stream open when the server ends, which uvicorn reports.
    """
    is_open = False

    async def observe(message: Message) -> None:
        nonlocal is_open
        is_open = message["type"] == "http.response.start" or bool(
            message.get("more_body")
        )
        await send(message)

    with suppress(TimeoutError):
        async with asyncio.timeout(None) as until:  # ends the block when the token ends
            with watch.watching(current_caller().token, partial(until.reschedule, 0)):
                async with transport.connect_sse(scope, receive, observe) as (
                    incoming,
                    outgoing,
                ):
                    await server.run(
                        incoming, outgoing, server.create_initialization_options()
                    )
    if is_open:
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _metadata(oauth: OAuthSettings) -> list[Route]:
    """Return the routes where clients look for the issuer (RFC 9728), and for OAuth that is not here."""

    async def nothing(_request: Request) -> Response:
        return no_oauth(oauth.issuer)

    methods = ["GET", "POST", "OPTIONS"]
    elsewhere = [
        Route(path, nothing, methods=methods)
        for path in (
            "/.well-known/{rest:path}",
            "/mcp/.well-known/{rest:path}",
            "/sse/.well-known/{rest:path}",
            *OAUTH_PATHS,
        )
    ]
    if _metadata_url(oauth) is None:
        return elsewhere
    routes = create_protected_resource_routes(
        resource_url=AnyHttpUrl(str(oauth.audience)),
        authorization_servers=[AnyHttpUrl(str(oauth.issuer))],
    )
    return [*routes, *elsewhere]


_no_such_path = NotFound(
    "There is nothing at this path.",
    hint="MCP is at /mcp, for clients that know SSE only at /sse; the console is at /.",
)
_bare_address = NotFound(
    "MCP is not at this address.",
    hint="Add /mcp to the address in the client's settings (/sse for clients that know SSE only).",
)
_only_pages = NotFound(
    "This port has the pages of the console alone.",
    hint="`folklore install` connects assistants; `folklore serve --http` serves MCP on a port.",
)


def _metadata_url(oauth: OAuthSettings) -> str | None:
    if oauth.issuer is None or not str(oauth.audience).startswith(
        ("http://", "https://")
    ):
        return None
    return str(build_resource_metadata_url(AnyHttpUrl(str(oauth.audience))))
