"""The HTTP server: streamable HTTP at /mcp, SSE at /sse, health, on one port of its own uvicorn."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from folklore.app import App
from folklore.config import Settings
from folklore.errors import ConfigInvalid
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
    from folklore.http.watch import Watch  # here, in a worker: see there

    settings = app.settings
    server = build_server(app.host, offered=settings.tools, read_only=settings.read_only)
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
    watch = Watch(app, security)
    starlette.router.routes.extend(watch.routes)
    inner = starlette.router.lifespan_context

    @asynccontextmanager
    async def lifespan(outer: Starlette) -> AsyncIterator[None]:
        app.start()
        app.start_upkeep()
        try:
            async with watch.running(), inner(outer):
                yield
        finally:
            await app.close()

    starlette.router.lifespan_context = lifespan
    starlette.user_middleware.insert(0, watch.middleware(starlette.router.routes))
    return starlette


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
