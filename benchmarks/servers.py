"""Servers to measure against: the bare SDK with one trivial tool, and Folklore with the same tool added."""

from __future__ import annotations

import asyncio
import sys


async def trivial(text: str) -> dict[str, str]:
    """Return the text."""
    return {"text": text}


def bare() -> None:
    """Serve the SDK alone over stdio."""
    from mcp.server import MCPServer

    server = MCPServer("bare", version="1")
    server.tool()(trivial)
    server.run("stdio")


def stdio() -> None:
    """Serve Folklore as `folklore serve` does, plus the trivial tool."""
    from folklore import log
    from folklore.app import App
    from folklore.config import load_settings
    from folklore.mcp.server import build_server

    log.first("error")

    async def serve() -> None:
        app = App(load_settings(log_level="error"), prepare=lambda: log.configure("error", "console"))
        server = build_server(app.host)
        server.tool()(trivial)
        app.start()
        try:
            await server.run_stdio_async()
        finally:
            await app.close()

    asyncio.run(serve())


def http(port: str) -> None:
    """Serve Folklore as `folklore serve --http` does, plus the trivial tool."""
    from typing import Any
    from unittest.mock import patch

    from mcp.server import MCPServer

    from folklore.cli.main import outcome
    from folklore.http import app
    from folklore.mcp.server import build_server
    from folklore.memory.request_context import RequestContext

    def with_trivial(host: RequestContext, **options: Any) -> MCPServer[RequestContext]:
        server = build_server(host, **options)
        server.tool()(trivial)
        return server

    with patch.object(app, "build_server", with_trivial):
        sys.exit(outcome(["serve", "--http", "--port", port]))


# The imports above are local so that the start of the bare server is not slower than the SDK.
if __name__ == "__main__":
    match sys.argv[1:]:
        case ["bare"]:
            bare()
        case ["stdio"]:
            stdio()
        case ["http", port]:
            http(port)
