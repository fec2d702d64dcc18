"""A stream's end, told properly."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

STREAMS = frozenset({"/sse", "/mcp"})


def is_stream(scope: Scope) -> bool:
    """Whether the request opens a stream that stays open for hours."""
    return scope["type"] == "http" and scope["method"] == "GET" and scope["path"] in STREAMS


class Stream:
    """Ends a stream once, and in order, when it is the server that ends it.

    At its end the SDK leaves the one on /mcp unfinished and begins a second answer on /sse; uvicorn takes both for a
    crash, and would log a traceback for each stream that is open when a server ends.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and see its answer through."""
        if not is_stream(scope):
            return await self.app(scope, receive, send)
        started = second = finished = False

        async def once(message: Message) -> None:
            nonlocal started, second, finished
            starts = message["type"] == "http.response.start"
            second = second or (starts and started)
            if second:
                return
            started = True
            finished = not starts and not message.get("more_body", False)
            await send(message)

        await self.app(scope, receive, once)
        if started and not finished:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        return None
