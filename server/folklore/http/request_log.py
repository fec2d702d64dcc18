"""What is told of requests and calls: a line in the log and a count for each, and nothing of what they hold.

Neither query strings nor headers nor bodies are looked at; a request id is taken over if it is one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.http.metrics import CONTENT_TYPE, Metrics
from folklore.memory.usage import CallMetrics

if TYPE_CHECKING:
    from folklore.model import Answer

log = structlog.get_logger(__name__)

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
# Asked every few seconds by machines; told at debug while all is well.
_ROUTINE = frozenset({"/healthz", "/readyz", "/metrics"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")
# Put in by proxies: who is on this machine is then not who asks.
_PROXIED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")

# The request that a tool call came with.
_request: ContextVar[Scope | None] = ContextVar("folklore_request", default=None)


class Observer(CallMetrics):
    """Counts what the use cases and tools tell, and writes a line for each call."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """A tool was called."""
        self._metrics.called(tool, outcome, seconds)
        log.info("call", tool=tool, outcome=outcome, ms=round(seconds * 1e3, 1), **_who(_request.get()))

    def answered(self, answer: Answer) -> None:
        """A recall or a search found this."""
        self._metrics.answered(answer)

    def stored(self, memories: int) -> None:
        """A batch was stored."""
        self._metrics.stored(memories)


class Observed:
    """ASGI middleware, to be the outermost: counts each request, writes its line, and gives it an id.

    The id stands in `X-Request-Id` of the answer, and in every line that is logged meanwhile. A request is told by the
    pattern of `routes` that it is for, also if it never gets there, and never by its path: that may hold ids and names,
    and there is no end of them.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._metrics = metrics
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get("x-request-id", "")
        id_ = given if _REQUEST_ID.fullmatch(given) else uuid4().hex
        route = self._route(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        scope.setdefault("state", {})
        status = "aborted"  # until an answer begins
        told = False

        def tell() -> None:
            nonlocal told
            if told:
                return
            told = True
            self._metrics.ended(method, route, status)
            line = log.debug if route in _ROUTINE and status < "400" else log.info
            line("request", method=method, route=route, status=_number(status),
                 ms=round((perf_counter() - began) * 1e3, 1), **_who(scope))  # fmt: skip

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
                MutableHeaders(scope=message)["X-Request-Id"] = id_
            elif not message.get("more_body", False):
                tell()  # before the client has its answer, so that it counts when he asks again
            await send(message)

        began = perf_counter()
        self._metrics.opened(route)
        here = _request.set(scope)
        try:
            with structlog.contextvars.bound_contextvars(request_id=id_):
                try:
                    await self._app(scope, receive, noting)
                except Exception:
                    status = "500"
                    raise
                finally:
                    tell()
        finally:
            _request.reset(here)

    def _route(self, scope: Scope) -> str:
        for route in self._routes:
            path = getattr(route, "path", "")
            if path and route.matches(scope)[0] is not Match.NONE:
                return str(path)
        return "other"


def metrics_endpoint(
    metrics: Metrics,
    setting: str,
    security: TransportSecuritySettings,
    owner: Callable[[Request], bool] = lambda _request: False,
) -> Callable[[Request], Awaitable[Response]]:
    """GET /metrics under `http.metrics`: loopback, open or off. Where it is not off, `owner` may look from anywhere."""
    browser = TransportSecurityMiddleware(security)

    async def endpoint(request: Request) -> Response:
        if setting == "off":
            return JSONResponse({"error": {"code": "not_found", "message": "Metrics are off."}}, 404)
        if setting == "loopback" and not owner(request):
            if not from_this_machine(request.scope):
                message = "Metrics are read on this machine only."
                hint = "Ask with an owner's token, or set http.metrics: open if only your monitoring reaches the port."
                return JSONResponse({"error": {"code": "refused", "message": message, "hint": hint}}, 403)
            if (refusal := await browser.validate_request(request)) is not None:
                return refusal  # a web page that calls itself by a name of its own
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return endpoint


def from_this_machine(scope: Scope) -> bool:
    """Whether who asks is on the loopback himself, and not a proxy for somebody else."""
    client = scope.get("client")
    if client is None or any(name in Headers(scope=scope) for name in _PROXIED):
        return False
    try:
        address = ipaddress.ip_address(client[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback


def _who(scope: Scope | None) -> dict[str, str]:
    principal = None if scope is None else scope.get("state", {}).get("principal")
    return {} if principal is None else {"principal": str(principal)}


def _number(status: str) -> int | str:
    return int(status) if status.isdigit() else status
