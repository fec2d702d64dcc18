"""MCP over standard input and output.

The SDK drops a line that it cannot read, and its sender waits forever. Two kinds of such lines are read or answered
here: JSON with unpaired surrogates, and JSON that is nested too deeply.
"""

from __future__ import annotations

import contextvars
import json
from types import TracebackType
from typing import Any, Self

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from folklore.text.clean import replace_lone_surrogates


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until standard input ends."""
    async with stdio_server() as (arriving, leaving):
        await server.run(Readable(arriving, leaving), leaving, server.create_initialization_options())


class Readable:
    """Incoming messages, as a ReadStream of the SDK; an unreadable line is answered on `leaving`."""

    def __init__(self, inner: Any, leaving: Any) -> None:
        self._inner = inner
        self._leaving = leaving

    @property
    def last_context(self) -> contextvars.Context | None:
        """The context in which the last message was sent."""
        context: contextvars.Context | None = self._inner.last_context
        return context

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or the error in it."""
        return await self._repaired(await self._inner.receive())

    async def _repaired(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if not isinstance(item, ValidationError):
            return item
        problem = item.errors(include_url=False, include_context=False)[0]
        if problem["type"] != "json_invalid":
            return item
        line = replace_lone_surrogates(problem["input"].encode())
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValidationError as still:
            item = still
        if (request_id := _id_of(line)) is not None:
            problem = item.errors(include_url=False, include_context=False)[0]
            refusal = ErrorData(code=PARSE_ERROR, message=f"The request cannot be read. {problem['msg']}.")
            await self._leaving.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=refusal)))
        return item

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._repaired(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _id_of(line: bytes) -> str | int | None:
    """Return the id of a request that the standard JSON parser can read."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    id_ = message.get("id") if isinstance(message, dict) and "method" in message else None
    return id_ if isinstance(id_, str | int) and not isinstance(id_, bool) else None
