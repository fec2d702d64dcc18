"""HTTP as bytes on a socket, for requests that no client library sends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

MCP = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
}


def message(method: str, **parameters: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A call of a tool."""
    return message("tools/call", name=tool, arguments=arguments)


INITIALIZE = message(
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={},
    clientInfo={"name": "test", "version": "1"},
)


def head(
    method: str = "POST", path: str = "/mcp", *more: str, host: str = "localhost"
) -> bytes:
    """The head of a request for MCP."""
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}",
        *(f"{name}: {value}" for name, value in MCP.items()),
        *more,
    ]
    return "\r\n".join([*lines, "", ""]).encode()


def posted(body: dict[str, Any], *more: str) -> bytes:
    """A whole request with a JSON body."""
    sent = json.dumps(body).encode()
    return head("POST", "/mcp", f"Content-Length: {len(sent)}", *more) + sent


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection and the bytes that it received."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def status(self) -> int | None:
        """Return the status of the next answer, or None if the server closes without one."""
        try:
            line = await self.reader.readline()
        except ConnectionError:
            return None
        return int(line.split()[1]) if line else None

    async def closed(self) -> bytes:
        """Return the bytes received until the server closed the connection."""
        with suppress(ConnectionError):
            return await self.reader.read()
        return b""


@asynccontextmanager
async def wire(port: int, *, seconds: float = 120.0) -> AsyncIterator[Wire]:
    """Connect to a port on loopback; the block fails when it takes longer than so many seconds."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield Wire(reader, writer)
        finally:
            writer.transport.abort()
