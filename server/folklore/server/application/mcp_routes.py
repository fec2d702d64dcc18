"""MCP on the listeners' paths: over streamable HTTP, over SSE, and what clients look for beside it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
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
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.config import OAuthSettings
from folklore.memory import TokenWatch
from folklore.server.current_caller import current_caller
from folklore.server.error_responses import Path, refusal
from folklore.server.limits import STREAM_PATH, Limits
from folklore.server.mcp_clients import OAUTH_PATHS, no_oauth


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


def sse_routes(
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
    # without HEAD, which Starlette adds: a stream has no head without its body
    stream.methods = {"GET"}
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
        begins = message["type"] == "http.response.start"
        is_open = begins or bool(message.get("more_body"))
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


def metadata_routes(oauth: OAuthSettings) -> list[Route]:
    """Return the routes where clients look for the issuer (RFC 9728), and for OAuth that is not here."""

    async def nothing(_request: Request) -> Response:
        return no_oauth(oauth.issuer)

    paths = [
        "/.well-known/{rest:path}",
        "/mcp/.well-known/{rest:path}",
        "/sse/.well-known/{rest:path}",
        *OAUTH_PATHS,
    ]
    methods = ["GET", "POST", "OPTIONS"]
    elsewhere = [Route(path, nothing, methods=methods) for path in paths]
    if metadata_url(oauth) is None:
        return elsewhere
    routes = create_protected_resource_routes(
        resource_url=AnyHttpUrl(str(oauth.audience)),
        authorization_servers=[AnyHttpUrl(str(oauth.issuer))],
    )
    return [*routes, *elsewhere]


def metadata_url(oauth: OAuthSettings) -> str | None:
    """Return where clients find the issuer (RFC 9728); None if the audience is no address of this server."""
    audience = str(oauth.audience)
    if oauth.issuer is None or not audience.startswith(("http://", "https://")):
        return None
    return str(build_resource_metadata_url(AnyHttpUrl(audience)))
