"""The HTTP server: streamable HTTP at /mcp, SSE at /sse, health, on one port of its own uvicorn."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import socket

import structlog
from mcp.server import Server
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.sse import SseServerTransport
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from folklore import log
from folklore.app import App, running
from folklore.config import HttpSettings, OAuthSettings, Settings
from folklore.errors import ConfigInvalid, NotFound
from folklore.http.address import bound, is_loopback
from folklore.http.api import api_routes
from folklore.http.auth import AuthenticationMiddleware, is_owner
from folklore.http.body import Body
from folklore.http.certificate import certificate_of
from folklore.http.concurrency_limit import ConcurrencyLimit
from folklore.http.disconnect import DisconnectCancellation
from folklore.http.error_responses import failure
from folklore.http.export import export_route
from folklore.http.namespace import RequestedNamespace
from folklore.http.oauth import JwtIssuer
from folklore.http.rate_limit import RateLimit
from folklore.http.stream_end import Stream
from folklore.http.team import Team
from folklore.http.trusted_hosts import TrustedHosts, transport_security
from folklore.http.uvicorn_server import CLOSING_SECONDS, serve
from folklore.http.worker_metrics import shared_between
from folklore.http.worker_proxy import WorkerProxy
from folklore.http.workers import Workers
from folklore.mcp.server import build_server

said = structlog.get_logger(__name__)

# All bodies that are held at once, in bytes; or so many of the largest size, if that is more.
_BODIES_TOGETHER = 64 * 2**20
_BODIES_AT_LEAST = 16


@dataclass(frozen=True, slots=True)
class Seat:
    """Which of several workers this is."""

    siblings: WorkerProxy
    number: int


def build_app(app: App, host: str, seat: Seat | None = None) -> Starlette:
    """The ASGI application over a running (or starting) application, which it starts and closes.

    `seat` says which of several workers it is for.
    """
    from folklore.http.observability import Watch  # here, in a worker: see there

    oauth, http = app.settings.oauth, app.settings.http
    security = transport_security(host, http.allowed_hosts)
    team = Team.of(app, None if oauth.issuer is None else JwtIssuer(oauth))
    protocol = _protocol(team, host, seat)
    watch = Watch(app, security, owner=is_owner)
    routes: list[BaseRoute] = [
        *watch.routes,
        *_metadata(oauth),
        export_route(team.service),
        *api_routes(team.service, security),
    ]

    @asynccontextmanager
    async def lifespan(_outer: Starlette) -> AsyncIterator[None]:
        app.start()
        app.start_jobs()
        try:
            async with (
                watch.running(),
                protocol.router.lifespan_context(protocol),
            ):
                yield
        finally:
            await team.close()
            await app.close()

    return Starlette(
        routes=[
            *routes,
            *([] if seat is None else seat.siblings.routes(seat.number)),
            Mount("/", protocol),
        ],
        middleware=[
            watch.middleware([*routes, *protocol.routes]),
            Middleware(TrustedHosts, security=security),
            Middleware(
                AuthenticationMiddleware,
                keeper=team.authenticator,
                refused=team.denied,
                metadata_url=_metadata_url(oauth),
            ),
            Middleware(RequestedNamespace),
            *limits(http),
        ],
        lifespan=lifespan,
    )


def limits(settings: HttpSettings) -> list[Middleware]:
    """What a request passes, in this order, once it is known who asks: nothing runs for one that is refused."""
    largest = settings.max_body_bytes
    together = max(_BODIES_TOGETHER, _BODIES_AT_LEAST * largest)
    return [
        Middleware(RateLimit, per_minute=settings.rate_per_minute),
        Middleware(Body, most=largest, seconds=settings.body_seconds, together=together),
        Middleware(DisconnectCancellation),
        Middleware(
            ConcurrencyLimit,
            calls=settings.max_calls,
            waiting=settings.max_waiting,
            seconds=settings.wait_seconds,
            streams=settings.max_streams,
        ),
        Middleware(Stream),
    ]


def _metadata(oauth: OAuthSettings) -> list[Route]:
    """Who vouches for callers, for clients that look for it (RFC 9728); what else they look for there is not there."""
    nothing = Route("/.well-known/{rest:path}", _not_there, methods=["GET", "OPTIONS"])
    if _metadata_url(oauth) is None:
        return [nothing]
    found = create_protected_resource_routes(
        resource_url=AnyHttpUrl(str(oauth.audience)), authorization_servers=[AnyHttpUrl(str(oauth.issuer))]
    )
    return [*found, nothing]


async def _not_there(_request: Request) -> Response:
    return failure(NotFound("Nobody but this server itself vouches for callers here."))


def _metadata_url(oauth: OAuthSettings) -> str | None:
    if oauth.issuer is None or not str(oauth.audience).startswith(("http://", "https://")):
        return None
    return str(build_resource_metadata_url(AnyHttpUrl(str(oauth.audience))))


def _protocol(team: Team, host: str, seat: Seat | None) -> Starlette:
    """MCP over streamable HTTP and SSE."""
    settings = team.app.settings
    server = build_server(team.service, offered=settings.tools)
    security = transport_security(host, settings.http.allowed_hosts)
    starlette = server.streamable_http_app(
        host=host,
        stateless_http=True,  # no session lives in a worker, so any worker may answer
        # A stream carries progress and ends the call when the client disconnects. At 2026-07-28 it is plain JSON unless
        # there is a message before the result.
        json_response=False,
        max_request_body_size=settings.http.max_body_bytes,
        transport_security=security,
    )
    message_path = "/messages/" if seat is None else seat.siblings.message_path(seat.number)
    transport = SseServerTransport(
        message_path, security_settings=security, max_request_body_size=settings.http.max_body_bytes
    )
    stream = Route("/sse", SseEndpoint(server, transport), methods=["GET"])
    assert stream.methods is not None
    stream.methods.discard("HEAD")  # starlette adds it, but the head of a stream needs its body
    starlette.router.routes += [
        stream,
        Mount(message_path, app=transport.handle_post_message),
    ]
    return starlette


class SseEndpoint:
    """The stream of an SSE session, which lasts as long as its connection."""

    def __init__(self, server: Server[None], transport: SseServerTransport) -> None:
        self._server = server
        self._transport = transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one session."""
        async with self._transport.connect_sse(scope, receive, send) as (arriving, leaving):
            await self._server.run(arriving, leaving, self._server.create_initialization_options())


def run(
    settings: Settings,
    host: str,
    port: int,
    *,
    insecure: bool = False,
    announce: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serve until SIGTERM or SIGINT, then end within the graceful time; `announce` is told the URL before.

    Raises ConfigInvalid for an address that others can reach where nobody needs a token (unless `insecure`), or that
    cannot be listened on, and for a certificate that cannot be used; all that before anything listens.
    """
    http = settings.http
    protected = is_loopback(host) or (insecure is False and _everybody_needs_a_token(settings))
    if not protected and not insecure:
        raise ConfigInvalid(
            "http.host",
            f"{host} can be reached from other machines, and nobody needs a token.",
            hint="Make the first one (`folklore tokens create --name you --owner`), or listen on 127.0.0.1,"
            " or say --insecure.",
        )
    tls = certificate_of(http.tls_cert, http.tls_key)
    app = App(settings)
    sockets = bound(host, port)
    named = f"[{host}]" if ":" in host and not host.startswith("[") else host
    url = f"{'https' if tls else 'http'}://{named}:{sockets[0].getsockname()[1]}"
    announce(url)
    if not protected:
        said.warning("ANYBODY who reaches this address may be let in without a token (--insecure)", url=url)
    said.info("serving", url=f"{url}/mcp", sse=f"{url}/sse", workers=http.workers)
    if http.workers == 1:
        serve(build_app(app, host), http, sockets, tls)
    else:
        with shared_between(http.workers):
            _serve_by_several(settings, host, sockets)


def _everybody_needs_a_token(settings: Settings) -> bool:
    """Whether nobody is let in without one, now and later. Raises DatabaseUnavailable where that cannot be asked."""

    async def demanded() -> bool:
        async with running(settings) as app:
            return await Team.of(app).authenticator.demands_token()

    if settings.http.authentication != "auto" or settings.oauth.issuer is not None:
        return settings.http.authentication != "never"
    return asyncio.run(demanded())


def _serve_by_several(settings: Settings, host: str, sockets: list[socket]) -> None:
    http = settings.http
    with tempfile.TemporaryDirectory(prefix="folklore-") as folder:
        siblings = WorkerProxy(Path(folder), http.workers)
        doors = siblings.bound()
        portable = settings.portable()
        seats = [(Seat(siblings, number), portable, host, [*sockets, door]) for number, door in enumerate(doors)]
        Workers(seats, _work).run(grace=http.graceful_seconds + CLOSING_SECONDS + 0.5)


def _work(seat: Seat, settings: Settings, host: str, sockets: list[socket]) -> None:
    """What a worker does: the same as a single process."""
    log.configure(settings.log_level, settings.log_format)
    http = settings.http
    serve(build_app(App(settings), host, seat), http, sockets, certificate_of(http.tls_cert, http.tls_key))
