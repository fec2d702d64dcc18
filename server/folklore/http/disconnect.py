"""A client that leaves before its answer takes its work with it."""

from __future__ import annotations

from collections import deque

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class DisconnectCancellation:
    """Cancels a call whose client has disconnected, so that its connection to the database and its place are free.

    The SDK lets such a call run on, for as long as a statement may take. What it had not committed is rolled back. It
    stands inside of `Body`: the body is there, so all that can still be received is that the client is gone.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the call for as long as somebody waits for it."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        body: deque[Message] = deque([await receive()])
        while body[-1].get("more_body", False):
            body.append(await receive())
        gone = anyio.Event()
        answered = False

        async def then() -> Message:
            if body:
                return body.popleft()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def note(message: Message) -> None:
            nonlocal answered
            answered = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                gone.set()
                if not answered:  # the end of an answer looks the same, and there may be work to do behind it
                    group.cancel_scope.cancel()

            group.start_soon(watch)
            await self.app(scope, then, note)
            group.cancel_scope.cancel()
        return None
