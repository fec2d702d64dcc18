"""The time zone of a request's caller: in the header Folklore-Time-Zone."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import tzinfo

from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.errors import InvalidInput
from folklore.text.dates.zones import zone_named

HEADER = "Folklore-Time-Zone"

_HEADER = HEADER.lower().encode()
_values: ContextVar[tuple[str, ...]] = ContextVar("folklore_time_zone", default=())


def requested_zone() -> tzinfo | None:
    """Return the time zone that the current request names, or None. Raises InvalidInput if there is no such zone."""
    values = _values.get()
    if len(values) > 1:
        raise InvalidInput(HEADER, f"must be given once, got {len(values)} values.")
    return zone_named(values[0], HEADER) if values else None


class RequestedTimeZone:
    """ASGI middleware that keeps the time zone which a request names, for the call that the request makes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on. An empty value names nothing."""
        given = [value.decode("latin-1").strip() for name, value in scope.get("headers", ()) if name == _HEADER]
        token = _values.set(tuple(filter(None, given)))
        try:
            await self._app(scope, receive, send)
        finally:
            _values.reset(token)
