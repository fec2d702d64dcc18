"""Bodies of requests: received whole before anything runs, within a size, a time and a budget for all together.

Halves of characters that a client's JSON spells are taken out, since readers of JSON differ in what they make of them.
"""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from folklore.http.error_responses import refusal
from folklore.text.clean import replace_lone_surrogates


class _Refused(Exception):
    """A body that is not taken; `answer` is None when the client left, so that nobody would read one."""

    def __init__(self, answer: Response | None) -> None:
        super().__init__()
        self.answer = answer


class Body:
    """Receives each body whole; what is inside begins when it is there, so a slow client takes nobody's place.

    413 for more than `most` bytes, declared or in pieces; 408 when it takes more than `seconds`; 503 when the bodies of
    all requests that arrive, wait or run would be more than `together` bytes. A client that leaves half way is dropped.
    """

    def __init__(self, app: ASGIApp, *, most: int, seconds: float, together: int) -> None:
        self.app = app
        self._most = most
        self._seconds = seconds
        self._together = together
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its body, or refuse it."""
        if scope["type"] != "http" or not _brings_one(headers := Headers(scope=scope)):
            return await self.app(scope, receive, send)
        pieces: list[bytes] = []
        try:
            # What does not declare its length in digits has been refused by the protocol already.
            body = await self._whole(int(headers.get("content-length", "0")), receive, pieces)
        except _Refused as refused:
            if refused.answer is not None:
                await refused.answer(scope, receive, send)
        else:
            await self.app(scope, _again(body, receive), send)
        finally:
            self._held -= sum(map(len, pieces))
        return None

    async def _whole(self, declared: int, receive: Receive, pieces: list[bytes]) -> bytes:
        if declared > self._most:
            raise _Refused(self._large())
        try:
            async with asyncio.timeout(self._seconds):
                await self._pieces(receive, pieces)
        except TimeoutError:
            raise _Refused(self._late()) from None
        return replace_lone_surrogates(b"".join(pieces))

    async def _pieces(self, receive: Receive, pieces: list[bytes]) -> None:
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise _Refused(None)
            piece = message.get("body", b"")
            size += len(piece)
            if size > self._most:
                raise _Refused(self._large())
            if self._held + len(piece) > self._together:
                raise _Refused(_no_room())
            self._held += len(piece)
            pieces.append(piece)
            more = message.get("more_body", False)

    def _large(self) -> Response:
        return refusal(
            413,
            "too_large",
            f"The request's body has more than {self._most} bytes.",
            "Send fewer memories in a call, or raise http.max_body_bytes.",
        )

    def _late(self) -> Response:
        return refusal(
            408,
            "too_slow",
            f"The request's body was not there within {self._seconds:g} seconds.",
            "Send it again, in smaller parts if the connection is slow.",
        )


def _no_room() -> Response:
    return refusal(
        503,
        "overloaded",
        "Too many bodies of requests are being received at once.",
        "Try again when retry_after is over.",
        retry_after=1,
    )


def _brings_one(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _again(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body at once, then whatever the client does next."""
    given = False

    async def once() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return once
