"""The ASGI application, one for all listeners of a process: its routes, and the middleware that each request passes."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from folklore import memory, telemetry
from folklore.app import App
from folklore.config import OAuthSettings
from folklore.errors import Unauthenticated
from folklore.server.application.api import api_routes
from folklore.server.application.connections import (
    RequestTracking,
    TrimmedHeaders,
    current_peer,
)
from folklore.server.application.health import Health
from folklore.server.application.later_mcp import BeforeMcp, LaterMcp
from folklore.server.application.peers import RequestPeer, require_own_user
from folklore.server.application.request_log import RequestLog
from folklore.server.auth import AuthenticationMiddleware
from folklore.server.console.guard import ConsoleGuard
from folklore.server.error_responses import Path, failure
from folklore.server.facts import Callers
from folklore.server.limits import BodyLimit, ConcurrencyLimit, Limits, RateLimit
from folklore.server.listener import Admits, Area, Entrance, Listener, listener_of
from folklore.server.mcp_clients import MCP_PATH, McpReplies, Negotiated, OneSpelling
from folklore.server.requested import RequestedNames
from folklore.server.server_context import ServerContext
from folklore.server.transfers import Exports
from folklore.server.trusted_hosts import TrustedHosts, transport_security

if TYPE_CHECKING:
    from folklore.server.application.metrics import Metrics

# The user's server, which is waited for, needs MCP, the console and metrics when somebody asks for them: the functions
# below import them.


@dataclass(frozen=True, slots=True)
class OwnSide:
    """The part of the application for the sessions and commands of this user.

    `routes` lead to the console; `namespace` is the setting for all projects of the user; `serving` is entered while
    the application runs, and left before anything is closed. `is_for_session` says that one session is all it serves.
    """

    routes: Sequence[Route]
    namespace: str | None
    serving: Callable[[Application], AbstractAsyncContextManager[object]]
    is_for_session: bool = False


class Application(Starlette):
    """The application. A request that no other listener has marked came by `network`."""

    def __init__(self, network: Listener, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._entrance = Entrance(super().__call__, network)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the life of the application."""
        await self._entrance(scope, receive, send)


def build_app(
    app: App,
    network: Listener,
    limits: Limits | None = None,
    *,
    own: OwnSide | None = None,
    on_shutdown: Callable[[], None] = lambda: None,
) -> Application:
    """Return the ASGI application over `app`, which it starts and closes.

    `network` is its listener for TCP; `own` adds what the listener of this user has. `on_shutdown` is called before
    anything is closed.
    """
    parts = _Parts(app, network, limits or Limits(), own)
    areas = _areas(parts)
    if parts.is_for_tokens:  # nobody waits for this server as a hook does
        for area in areas:
            area.prepare()
    if own is not None and own.is_for_session:
        # It waits for its tools: what they need comes before the start of what its calls need.
        parts.mcp.build()
    return Application(
        network,
        routes=areas,
        middleware=_middleware(parts, areas),
        lifespan=_lifespan(parts, on_shutdown),
        exception_handlers={404: _missing(parts.server)},
    )


@dataclass(frozen=True)
class _Parts:
    """The parts of an application that routes and middleware share."""

    app: App
    network: Listener
    limits: Limits
    own: OwnSide | None

    @property
    def is_for_tokens(self) -> bool:
        """True for `folklore serve --http`; else this is the user's server, whose port is for the console alone."""
        return self.network.admits is Admits.TOKENS

    @property
    def issuer_settings(self) -> OAuthSettings:
        """The issuer whose tokens are accepted, where tokens are."""
        if self.is_for_tokens:
            return self.app.settings.oauth
        return OAuthSettings()

    @cached_property
    def server(self) -> ServerContext:
        own_namespace = None if self.own is None else self.own.namespace
        return ServerContext.of(
            self.app, self._issuer(), _check_without_token(self.network), own_namespace
        )

    def _issuer(self) -> memory.Issuer | None:
        if self.issuer_settings.issuer is None:
            return None
        from folklore.server.oauth import JwtIssuer

        return JwtIssuer(self.issuer_settings)

    @cached_property
    def sessions(self) -> memory.ConsoleSessions:
        return memory.ConsoleSessions(
            self.app.memory,
            self.server.authenticator,
            lambda: self.app.caller,
            self.app.now,
            by_link_alone=not self.is_for_tokens,
        )

    @cached_property
    def health(self) -> Health:
        return Health(self.app)

    @cached_property
    def counters(self) -> Metrics:
        from folklore.server.application.metrics import Metrics

        return Metrics(self.app)

    @cached_property
    def mcp(self) -> LaterMcp:
        return LaterMcp(self.app, self.server.service, self.network, self.limits)


def _areas(parts: _Parts) -> list[Area]:
    """Return the routes of all listeners."""
    server = parts.server
    exports = Exports(server.service, server.watch)

    def sse() -> Sequence[Route]:
        from folklore.server.application.mcp_routes import sse_routes

        network = parts.network
        return sse_routes(
            parts.mcp.server,
            server.watch,
            transport_security(network.host, network.allowed_hosts),
            parts.limits,
            several_workers=parts.app.settings.http.workers > 1,
        )

    def metadata() -> Sequence[Route]:
        from folklore.server.application.mcp_routes import metadata_routes

        return metadata_routes(parts.issuer_settings)

    def console() -> Sequence[BaseRoute]:
        from folklore.server.console.pages.routes import console_routes

        return console_routes(server, parts.sessions, exports)

    def mcp() -> Sequence[Route]:
        # Without sessions there is no stream to GET and none to DELETE.
        return [Path(MCP_PATH, Negotiated(parts.mcp), methods=["POST"])]

    return [
        Area("alive", lambda: [Path("/healthz", parts.health.alive)]),
        Area("ready", lambda: [Path("/readyz", parts.health.ready)]),
        Area("metrics", lambda: [Path("/metrics", parts.counters.endpoint)]),
        Area("metadata", metadata),
        Area("api", lambda: api_routes(server.service, exports)),
        Area("mcp", mcp),
        Area("sse", sse),
        Area("own", lambda: () if parts.own is None else parts.own.routes),
        Area("console", console),
    ]


def _middleware(parts: _Parts, areas: Sequence[Area]) -> list[Middleware]:
    """Return what each request passes, the outermost first."""
    server = parts.server
    callers = Callers(parts.app, lambda: server.authenticator, lambda: parts.sessions)
    per_minute = parts.app.settings.http.rate_per_minute
    return [
        Middleware(RequestTracking),
        Middleware(TrimmedHeaders),
        Middleware(OneSpelling),
        Middleware(RequestLog, metrics=lambda: parts.counters, areas=areas),
        Middleware(McpReplies),
        Middleware(RequestPeer, peer_of=current_peer),
        Middleware(TrustedHosts, network=parts.network),
        Middleware(RequestedNames),
        Middleware(
            AuthenticationMiddleware,
            server=server,
            callers=callers,
            metadata_url=_metadata_url(parts.issuer_settings),
            is_console=_is_console,
        ),
        Middleware(
            ConsoleGuard, server=server, callers=callers, is_console=_is_console
        ),
        Middleware(BeforeMcp, mcp=parts.mcp),
        Middleware(RateLimit, per_minute=per_minute),
        Middleware(BodyLimit, limits=parts.limits),
        Middleware(ConcurrencyLimit, limits=parts.limits),
    ]


def _metadata_url(settings: OAuthSettings) -> str | None:
    """Return the address at which a client learns of the issuer of tokens, if there is one."""
    if settings.issuer is None:
        return None
    from folklore.server.application.mcp_routes import metadata_url

    return metadata_url(settings)


def _lifespan(
    parts: _Parts, on_shutdown: Callable[[], None]
) -> Callable[[Application], AbstractAsyncContextManager[None]]:
    """Return what runs around the requests: what is entered last is closed first."""
    app = parts.app

    @asynccontextmanager
    async def lifespan(application: Application) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if not app.brief:
                telemetry.start(os.environ)
                stack.push_async_callback(telemetry.stop)
            stack.push_async_callback(app.close)
            stack.push_async_callback(parts.server.close)
            stack.push_async_callback(parts.health.close)
            if not app.brief:
                app.start()
                app.start_jobs()
            if parts.is_for_tokens:
                app.usage.metrics = parts.counters
                await stack.enter_async_context(parts.counters.publishing())
            await stack.enter_async_context(parts.mcp.running())
            stack.callback(setattr, application.state, "ended", True)
            if parts.own is not None:
                await stack.enter_async_context(parts.own.serving(application))
            if parts.is_for_tokens:  # after the socket, whose clients may wait already
                await parts.mcp.imported()
            stack.callback(on_shutdown)
            yield

    return lifespan


def _check_without_token(network: Listener) -> Callable[[], None]:
    """Return what raises Unauthenticated for a request that may not enter though no token is needed."""
    if network.admits is not Admits.TOKENS:
        return _refuse_without_link
    if network.open_to_all:
        return lambda: None
    return require_own_user


def _refuse_without_link() -> None:
    raise Unauthenticated(
        "missing",
        "This is the console of one person.",
        hint="`folklore open` makes a link that signs in.",
    )


def _is_console(scope: Scope) -> bool:
    from folklore.server.console.pages.routes import is_console

    return is_console(scope)


def _missing(
    server: ServerContext,
) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Return the handler of a path without a route: a page within the console, else an error as JSON."""

    async def answer(request: Request, error: Exception) -> Response:
        state = request.scope.get("state", {})
        if state.get("visitor") is None:
            return failure(listener_of(request.scope).no_such_path)
        from folklore.server.console.pages.routes import missing_page

        return await missing_page(server.service, request)

    return answer
