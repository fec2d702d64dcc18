"""MCP over standard input and output.

The SDK drops a line that it cannot read, and its sender waits forever; and it reads lines of any length. Three kinds of
lines are read or answered here: JSON with unpaired surrogates, JSON that is nested too deeply, lines over the limit.
"""

import asyncio
import contextvars
import json
import os
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, cast

from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from folklore.text.clean import replace_lone_surrogates
from folklore.text.lines import LineReader, LongLine

_CHUNK = 65_536
# Lines that are read before the server has taken the first of them.
_AHEAD = 16


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until standard input ends."""
    lines = _InputLines()
    async with stdio_server(cast("Any", lines)) as (arriving, leaving):  # the SDK only iterates over it
        lines.leaving = leaving
        await server.run(Readable(arriving, leaving), leaving, server.create_initialization_options())


class _InputLines:
    """The lines of standard input. One that is too long is answered on `leaving`, and not kept in memory.

    A thread reads them, which as a daemon does not keep the process alive.
    """

    leaving: Any

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | LongLine | None] = asyncio.Queue(_AHEAD)

    async def __aiter__(self) -> AsyncIterator[str]:
        threading.Thread(target=self._read, args=(_claimed_input(),), name="folklore-stdin", daemon=True).start()
        while (line := await self._lines.get()) is not None:
            if isinstance(line, LongLine):
                refusal = ErrorData(code=INVALID_REQUEST, message=line.message)
                await self.leaving.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=line.id, error=refusal)))
            else:
                yield line.decode("utf-8", "replace")

    def _read(self, file: int) -> None:
        reader = LineReader()
        with suppress(RuntimeError, CancelledError):  # the loop is closed
            with suppress(OSError):
                while chunk := os.read(file, _CHUNK):
                    for line in reader.feed(chunk):
                        self._put(line)
            for line in reader.end():
                self._put(line)
            self._put(None)

    def _put(self, line: bytes | LongLine | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


def _claimed_input() -> int:
    """Return a file with standard input. Whatever else in this process or its children reads it finds nothing."""
    file = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return file


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
