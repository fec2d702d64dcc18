"""The SDK's own server with nothing but the conformance suite's fixtures, as a process of its own.

    python -m tests.conformance.reference serve --http --port 8765

It has every feature of the SDK: sessions, streams that can be resumed, subscriptions, logging. A check that it passes
and Folklore does not is a failure of Folklore, unless not_offered.yml lists the feature with a reason.
"""

import sys
from typing import Any

from mcp.server import MCPServer
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.types import (
    EmptyResult,
    JSONRPCMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)

from tests.conformance.product import with_fixtures


class Events(EventStore):
    """Sent messages, for a client that lost its stream and resumes it."""

    def __init__(self) -> None:
        self._sent: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._sent.append((stream_id, message))
        return str(len(self._sent))

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        last = int(last_event_id)
        stream = self._sent[last - 1][0]
        for number, (owner, message) in enumerate(self._sent[last:], start=last + 1):
            if owner == stream and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


async def accepted(_context: Any, _parameters: Any) -> EmptyResult:
    return EmptyResult()


def main(port: int) -> None:
    """Serve until the process ends."""
    server = with_fixtures(MCPServer[Any]("reference", version="1"))
    for method, parameters in (
        ("logging/setLevel", SetLevelRequestParams),
        ("resources/subscribe", SubscribeRequestParams),
        ("resources/unsubscribe", UnsubscribeRequestParams),
    ):
        server._lowlevel_server.add_request_handler(method, parameters, accepted)
    server.run("streamable-http", port=port, event_store=Events(), retry_interval=100)


if __name__ == "__main__":
    main(int(sys.argv[sys.argv.index("--port") + 1]))
