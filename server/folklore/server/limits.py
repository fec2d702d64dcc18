"""Limits on requests: the size of bodies, the number of calls at once, the rate of one principal's calls."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import LRUCache
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.server.error_responses import refusal, too_often
from folklore.server.listener import listener_of
from folklore.text.clean import replace_lone_surrogates

# Monitoring must get an answer when nothing else does.
PROBES = frozenset({"/healthz", "/readyz", "/metrics"})
# A GET on these paths opens a stream that stays open for hours: of the protocol, of the console.
STREAM_PATH = "/sse"
LIVE_PATH = "/live"
# A POST on this path has a body of any size, which is worked on as it arrives, for hours too.
IMPORT_PATH = "/api/import"
_STREAMS = {("GET", STREAM_PATH), ("GET", LIVE_PATH), ("POST", IMPORT_PATH)}

# Keys whose calls are counted: the principals with tokens, and the addresses that send codes of invitations.
_KEYS = 100_000
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one worker; times are in seconds, sizes in bytes.

    Constants, not settings: a limit that is too low for one deployment is too low for all. Tests pass smaller ones.
    """

    body_size: int = 4 * 2**20
    body_seconds: float = 30.0
    bodies_size: int = 64 * 2**20  # of all bodies that arrive, wait or are worked on
    calls: int = 64
    waiting: int = 256
    wait_seconds: float = 5.0
    streams: int = 500
    connections: int = 2000
    head_seconds: float = 10.0
    idle_seconds: float = (
        75.0  # longer than the 60 of common proxies, so that the proxy closes first
    )
    unread_seconds: float = 30.0


class Rate:
    """Calls a minute of each key: the generic cell rate algorithm, a token bucket in one number.

    Every call uses up one interval of time, and the time used may be ahead of the clock by a fifth of a minute's calls.
    """

    def __init__(
        self, per_minute: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._interval = 60 / per_minute
        self._tolerance = max(1.0, per_minute / 5) * self._interval
        self._clock = clock
        self._used_until: LRUCache[str, float] = LRUCache(_KEYS)

    def take(self, key: str) -> float:
        """Count a call. Return 0, or in how many seconds the next call is allowed."""
        now = self._clock()
        used_until = max(self._used_until.get(key, 0.0), now) + self._interval
        if used_until - now > self._tolerance + 1e-9:  # the sum of floats
            return used_until - now - self._tolerance
        self._used_until[key] = used_until
        return 0.0


class RateLimit:
    """ASGI middleware that answers 429 to a principal that calls too often; 0 calls a minute means no limit.

    The principal is `scope["state"]["principal"]`, which authentication sets; other requests are not counted. A fifth
    of a minute's calls may come at once. Each worker counts for itself.
    """

    def __init__(self, app: ASGIApp, *, per_minute: int) -> None:
        self.app = app
        self._per_minute = per_minute
        self._rate = Rate(per_minute) if per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = None
        if scope["type"] == "http":
            principal = scope.get("state", {}).get("principal")
        if principal is None or self._rate is None:
            return await self.app(scope, receive, send)
        wait = self._rate.take(principal)
        if wait == 0:
            return await self.app(scope, receive, send)
        message = (
            f"{principal} calls more often than {self._per_minute} times a minute."
        )
        answer = too_often(
            message, wait, "; store memories in batches, up to 500 in a call"
        )
        return await answer(scope, receive, send)


class _BodyRefused(Exception):
    """A body that is not accepted; `answer` is None if the client has disconnected."""

    def __init__(self, answer: Response | None) -> None:
        super().__init__()
        self.answer = answer


class BodyLimit:
    """ASGI middleware that receives each body whole before the call runs: a slow client keeps no call waiting.

    413 for a body over the size, declared or in chunks; 408 for one that is too slow; 503 if all bodies in memory would
    be too large together. Lone surrogates in the JSON are replaced, since JSON readers differ in how they handle them.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits) -> None:
        self.app = app
        self._limits = limits
        self._size_in_memory = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the call with its body, or refuse the body."""
        is_unlimited = (
            scope["type"] != "http"
            or listener_of(scope).is_own
            or scope["method"] in _WITHOUT_BODY
            or scope["path"] == IMPORT_PATH
        )
        if is_unlimited:
            return await self.app(scope, receive, send)
        # The HTTP parser has refused a length that is not a number.
        declared = int(Headers(scope=scope).get("content-length", "0"))
        chunks: list[bytes] = []
        try:
            await self._receive_body(declared, receive, chunks)
            body = replace_lone_surrogates(b"".join(chunks))
            await self.app(scope, replayed(body, receive), send)
        except _BodyRefused as refused:
            if refused.answer is not None:
                await refused.answer(scope, receive, send)
        finally:
            self._size_in_memory -= sum(map(len, chunks))
        return None

    async def _receive_body(
        self, declared: int, receive: Receive, chunks: list[bytes]
    ) -> None:
        if declared > self._limits.body_size:
            raise _BodyRefused(self._too_large())
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                await self._receive_chunks(receive, chunks)
        except TimeoutError:
            message = f"The request's body did not arrive within {self._limits.body_seconds:g} seconds."
            hint = "Send it again, in smaller parts if the connection is slow."
            raise _BodyRefused(refusal(408, "too_slow", message, hint)) from None

    async def _receive_chunks(self, receive: Receive, chunks: list[bytes]) -> None:
        size = 0
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise _BodyRefused(None)
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            size += len(chunk)
            if size > self._limits.body_size:
                continue  # a client that still sends would not read the answer
            if self._size_in_memory + len(chunk) > self._limits.bodies_size:
                raise _BodyRefused(
                    _overloaded("Too many request bodies arrive at once.", 1)
                )
            self._size_in_memory += len(chunk)
            chunks.append(chunk)
        if size > self._limits.body_size:
            raise _BodyRefused(self._too_large())

    def _too_large(self) -> Response:
        message = f"The request's body has more than {self._limits.body_size} bytes."
        return refusal(413, "too_large", message, "Send fewer memories in a call.")


def replayed(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the whole body, and then whatever follows: that the client disconnects."""
    is_next = True

    async def replay() -> Message:
        nonlocal is_next
        if not is_next:
            return await receive()
        is_next = False
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class ConcurrencyLimit:
    """ASGI middleware that bounds the calls that run, those that wait for their turn, and the streams; others get 503.

    Streams are counted by themselves and do not queue. Probes are never held up, nor is what this user sends.
    """

    def __init__(self, app: ASGIApp, *, limits: Limits) -> None:
        self.app = app
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.calls)
        self._queued = 0
        self._streaming = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request in its turn, or refuse it."""
        is_unlimited = (
            scope["type"] != "http"
            or listener_of(scope).is_own
            or scope["path"] in PROBES
        )
        if is_unlimited:
            await self.app(scope, receive, send)
        elif (scope["method"], scope["path"]) in _STREAMS:
            await self._stream(scope, receive, send)
        elif await self._take_slot():
            try:
                await self.app(scope, receive, send)
            finally:
                self._slots.release()
        else:
            message = f"{self._limits.calls} calls run and others wait already."
            await self._full(message)(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._streaming >= self._limits.streams:
            message = f"{self._limits.streams} streams are open already."
            return await self._full(message)(scope, receive, send)
        self._streaming += 1
        try:
            return await self.app(scope, receive, send)
        finally:
            self._streaming -= 1

    async def _take_slot(self) -> bool:
        """Take a slot of the calls that run, if one is free in time."""
        if not self._slots.locked():
            return await self._slots.acquire()  # does not wait
        if self._queued >= self._limits.waiting:
            return False
        self._queued += 1
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                return await self._slots.acquire()
        except TimeoutError:
            return False
        finally:
            self._queued -= 1

    def _full(self, message: str) -> Response:
        return _overloaded(message, max(1.0, self._limits.wait_seconds / 2))


def _overloaded(message: str, retry_after: float) -> Response:
    hint = "Try again after retry_after seconds; if this goes on, raise http.workers."
    return refusal(503, "overloaded", message, hint, retry_after=retry_after)
