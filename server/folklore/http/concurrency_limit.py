"""How many calls run at once, how many wait for their turn, and how many streams are open."""

from __future__ import annotations

import asyncio

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.http.error_responses import refusal
from folklore.http.stream_end import is_stream

# Whoever watches over the server must get an answer when nobody else does.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})


class ConcurrencyLimit:
    """Lets `calls` requests run at once and as many as `waiting` wait for `seconds`; the rest get 503 and a time.

    A GET on /sse or /mcp is a stream that stays open for hours; streams have `streams` places of their own and no
    queue. Probes are never held up.
    """

    def __init__(self, app: ASGIApp, *, calls: int, waiting: int, seconds: float, streams: int) -> None:
        self.app = app
        self._places = asyncio.Semaphore(calls)
        self._calls = calls
        self._waiting = waiting
        self._seconds = seconds
        self._streams = streams
        self._queued = 0
        self._streaming = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request in its turn, or refuse it."""
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self.app(scope, receive, send)
        elif is_stream(scope):
            await self._stream(scope, receive, send)
        elif await self._turn():
            try:
                await self.app(scope, receive, send)
            finally:
                self._places.release()
        else:
            await _full(f"{self._calls} calls run and others wait already.", self._seconds)(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streaming >= self._streams:
            answer = _full(f"{self._streams} streams are open already.", self._seconds)
            return await answer(scope, receive, send)
        self._streaming += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._streaming -= 1
        return None

    async def _turn(self) -> bool:
        """Whether a place was got; it is to be released."""
        if not self._places.locked():
            return await self._places.acquire()  # does not wait
        if self._queued >= self._waiting:
            return False
        self._queued += 1
        try:
            async with asyncio.timeout(self._seconds):
                return await self._places.acquire()
        except TimeoutError:
            return False
        finally:
            self._queued -= 1


def _full(why: str, seconds: float) -> Response:
    return refusal(
        503,
        "overloaded",
        why,
        "Try again when retry_after is over; if this goes on, raise http.max_calls, http.max_streams or http.workers.",
        retry_after=max(1.0, seconds / 2),
    )
