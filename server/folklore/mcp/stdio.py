"""MCP over standard input and output: the SDK's transport, which every request gets an answer from.

The SDK drops a line it cannot read, and who sent it waits for ever. Two kinds of lines are read or answered here: JSON
that spells half of a character (text/clean.py), and JSON that is nested too deep.
"""

from __future__ import annotations

import contextvars
import json
from types import TracebackType
from typing import Any, Self

from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from folklore.text.clean import replace_lone_surrogates


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve until standard input ends."""
    low = server._lowlevel_server  # run_stdio_async() lets nobody between the two streams and the server
    async with stdio_server() as (arriving, leaving):
        await low.run(Arriving(arriving, leaving), leaving, low.create_initialization_options())


class Arriving:
    """The messages that arrive, a ReadStream of the SDK; a line that cannot be read is answered on `leaving`."""

    def __init__(self, inner: Any, leaving: Any) -> None:
        self._inner = inner
        self._leaving = leaving

    @property
    def last_context(self) -> contextvars.Context | None:
        """In which context the last one was sent."""
        context: contextvars.Context | None = self._inner.last_context
        return context

    async def receive(self) -> SessionMessage | Exception:
        """The next message, or what is wrong with it."""
        return await self._read_again(await self._inner.receive())

    async def _read_again(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
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
        if (asked := _id_of(line)) is not None:
            problem = item.errors(include_url=False, include_context=False)[0]
            refusal = ErrorData(code=PARSE_ERROR, message=f"The request cannot be read. {problem['msg']}.")
            await self._leaving.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=asked, error=refusal)))
        return item

    async def aclose(self) -> None:
        """Take no more."""
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._read_again(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _id_of(line: bytes) -> str | int | None:
    """The number of a request that a more patient reader of JSON can read."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    asked = message.get("id") if isinstance(message, dict) and "method" in message else None
    return asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
