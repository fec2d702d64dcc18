"""Deadlines of connections, around the protocol that uvicorn speaks on them.

uvicorn times idle connections between requests only. Without more, a client that sends half a head, or that never reads
its response, keeps its connection until the process has no file descriptors left. A slow body is BodyLimit's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from time import monotonic
from typing import Any, cast

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from folklore.server.application.peers import Peer
from folklore.server.limits import Limits

# Greatest size of a head, in bytes.
_HEAD_SIZE = 2**16
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def _accept_every_one(_transport: asyncio.BaseTransport) -> bool:
    return True  # a lambda could not be passed to workers


class ConnectionGuard:
    """The connections of one process: at most `limits.connections`, none without a deadline.

    A connection for which `is_accepted` returns false is ended at once.
    """

    def __init__(
        self,
        limits: Limits,
        is_accepted: Callable[[asyncio.BaseTransport], bool] = _accept_every_one,
    ) -> None:
        self.limits = limits
        self.is_accepted = is_accepted
        self.used_at = monotonic()  # when a request last began or ended
        self._open: dict[_GuardedConnection, None] = {}  # the oldest first

    def protocol(self, **arguments: Any) -> asyncio.Protocol:
        """Make the protocol of a new connection; `arguments` are uvicorn's."""
        return _GuardedConnection(self, AutoHTTPProtocol(**arguments))

    async def close_overdue(self) -> None:
        """Abort the connections whose clients are too slow; called every second."""
        now = monotonic()
        for connection in list(self._open):
            if connection.check(now):
                connection.abort()

    def is_idle(self, seconds: float) -> bool:
        """Return true if no request is worked on, and none was within this time."""
        if monotonic() - self.used_at <= seconds:
            return False
        return all(connection.deadline is not None for connection in self._open)

    def add(self, connection: _GuardedConnection) -> None:
        """Take a connection. If there are too many, abort the one that is silent for longest, or else the new one."""
        self._open[connection] = None
        if len(self._open) > self.limits.connections:
            silent = [other for other in self._open if other.deadline is not None]
            min(silent, key=_deadline, default=connection).abort()

    def discard(self, connection: _GuardedConnection) -> None:
        """Forget a connection."""
        self._open.pop(connection, None)


class _GuardedConnection(asyncio.Protocol):
    """A connection; `deadline` is when a request must have begun, None while one is worked on.

    It passes everything on to uvicorn's protocol, and learns from RequestTracking which requests begin and end.
    """

    def __init__(self, guard: ConnectionGuard, protocol: asyncio.Protocol) -> None:
        self._guard = guard
        self._protocol = protocol
        self.deadline: float | None = monotonic() + guard.limits.head_seconds
        self._head: bytes | None = (
            b""  # what arrived of a head; None while its request begins or is worked on
        )
        self._body = 0  # bytes that arrived since the head of a request; below 0, those that are left of a refused one
        self._unread = 0
        self._unread_since = 0.0
        self.peer: Peer | None = None  # of a connection by TCP

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # that of uvloop is of no class of asyncio
        self._transport = cast("asyncio.Transport", transport)
        if not self._guard.is_accepted(transport):
            # What follows is the same for all: the loop ends an aborted connection by connection_lost.
            self._transport.abort()
        client = transport.get_extra_info("peername")
        server = transport.get_extra_info("sockname")
        if isinstance(client, tuple) and isinstance(server, tuple):
            self.peer = Peer(client[:2], server[:2])
        self._protocol.connection_made(transport)
        self._guard.add(self)

    def data_received(self, data: bytes) -> None:
        self._body += len(data)
        if self._head is not None and self._body > 0:
            self._head = (self._head + data[-self._body :]).lstrip(b"\r\n")
            before, end, body = self._head.partition(b"\r\n\r\n")
            if len(before) > _HEAD_SIZE:
                self._transport.write(_TOO_LARGE)
                self._transport.close()
                return
            if end:
                self._head = None
                self._body = len(body)
        # uvicorn starts the request's task here, and the task keeps this
        _connection.set(self)
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.discard(self)
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def begin_request(self) -> None:
        """Stop waiting for the client."""
        self._guard.used_at = monotonic()
        self._head = self.deadline = None

    def end_request(self, declared: int) -> None:
        """Wait for the next request, after what is left of a body of `declared` bytes; 0 for one in chunks."""
        limits = self._guard.limits
        self._head = b""
        self._body = min(0, self._body - declared)
        self._guard.used_at = monotonic()
        # uvicorn closes idle ones before
        self.deadline = monotonic() + limits.idle_seconds + limits.head_seconds

    def check(self, now: float) -> bool:
        """Return true if no head arrived in time, or if the client has read nothing of its response for too long."""
        unread = self._transport.get_write_buffer_size()
        if not 0 < self._unread <= unread:
            self._unread_since = now
        self._unread = unread
        is_stuck = (
            unread > 0 and now - self._unread_since > self._guard.limits.unread_seconds
        )
        return is_stuck or (self.deadline is not None and now > self.deadline)

    def abort(self) -> None:
        """Close the connection without sending what is left."""
        self._guard.discard(self)
        self._transport.abort()


def _deadline(connection: _GuardedConnection) -> float:
    assert connection.deadline is not None
    return connection.deadline


_connection: ContextVar[_GuardedConnection | None] = ContextVar(
    "folklore_connection", default=None
)


def current_peer() -> Peer | None:
    """Return the other end of the connection of the current request, if it is known."""
    connection = _connection.get()
    if connection is None:
        return None
    return connection.peer


class RequestTracking:
    """ASGI middleware that marks on its connection when a request begins and ends."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = _connection.get()
        if scope["type"] != "http" or connection is None:
            return await self.app(scope, receive, send)
        connection.begin_request()
        try:
            return await self.app(scope, receive, send)
        finally:
            connection.end_request(int(Headers(scope=scope).get("content-length", "0")))


class TrimmedHeaders:
    """ASGI middleware that removes the blanks around the values of headers, which belong to no value (RFC 9110, 5.5).

    The parser leaves those after a value.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [
                (name, value.strip(b" \t")) for name, value in scope["headers"]
            ]
        await self.app(scope, receive, send)
