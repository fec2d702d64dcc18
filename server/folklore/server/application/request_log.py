"""The log of requests: one line and one count for each, with nothing of their content.

Query strings, headers and bodies are not looked at, but for a request id.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.log import get_logger
from folklore.server.limits import PROBES
from folklore.server.listener import Area, listener_of, pattern_of

if TYPE_CHECKING:
    from folklore.server.application.metrics import Metrics

log = get_logger(__name__)

_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestLog:
    """ASGI middleware, the outermost: counts and logs each request, and gives it an id.

    The id is in `X-Request-Id` of the response and in every line that is logged meanwhile. A request is logged by the
    pattern of the route in `areas` that takes it, never by the path, which may hold ids and names and has no bounded
    set of values. An error that no part of the server expected is logged here with its request's id, and answered with
    500. What this user's sessions and commands send is not logged.
    """

    def __init__(
        self, app: ASGIApp, metrics: Callable[[], Metrics], areas: Sequence[Area]
    ) -> None:
        self._app = app
        self._make_metrics = metrics
        self._areas = areas

    @cached_property
    def _metrics(self) -> Metrics:
        return self._make_metrics()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or listener_of(scope).is_own:
            await self._app(scope, receive, send)
            return
        id_ = Headers(scope=scope).get("x-request-id", "")
        scope.setdefault("state", {})
        entry = _Entry(
            id_ if _REQUEST_ID.fullmatch(id_) else uuid4().hex,
            pattern_of(self._areas, scope) or "other",
            scope,
            self._metrics,
        )

        async def observe(message: Message) -> None:
            if message["type"] == "http.response.start":
                entry.status = int(message["status"])  # the SDK gives an enumeration
                MutableHeaders(scope=message)["X-Request-Id"] = entry.id
            elif not message.get("more_body", False):
                entry.close()  # before the client has its response, so that its next request finds this one counted
            await send(message)

        self._metrics.opened(entry.route)
        from structlog.contextvars import bound_contextvars

        with bound_contextvars(request_id=entry.id):
            try:
                await self._app(scope, receive, observe)
            except Exception as error:  # the outermost edge of a request
                log.exception("request_failed", route=entry.route, exc_info=error)
                # else uvicorn closes the connection, since the response lacks its end
                if entry.status is None:
                    message = (
                        "The server failed; its log shows why, under this request_id."
                    )
                    body = {
                        "code": "internal",
                        "message": message,
                        "request_id": entry.id,
                    }
                    await JSONResponse({"error": body}, 500)(scope, receive, observe)
            finally:
                entry.close()


@dataclass(slots=True)
class _Entry:
    """A request in the log; `status` is None until the response begins."""

    id: str
    route: str
    scope: Scope
    metrics: Metrics
    status: int | None = None
    began: float = field(default_factory=perf_counter)
    is_closed: bool = False

    def close(self) -> None:
        """Log and count the request, once."""
        if self.is_closed:
            return
        self.is_closed = True
        status = self.status or "aborted"
        method = self.scope["method"]
        if method not in _METHODS:
            method = "other"
        self.metrics.ended(method, self.route, str(status))
        values = {
            "method": method,
            "route": self.route,
            "status": status,
            "ms": round((perf_counter() - self.began) * 1e3, 1),
        }
        principal = self.scope["state"].get("principal")
        if principal is not None:
            values["principal"] = principal
        log.log(self._level(), "request", **values)

    def _level(self) -> int:
        if self.status is None:
            return logging.INFO
        is_probe = self.route in PROBES  # requested every few seconds by machines
        if is_probe and self.status < 400:
            return logging.DEBUG
        if self.status >= 500 and not is_probe:  # has its line at every log level
            return logging.ERROR
        return logging.INFO
