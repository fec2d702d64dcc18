"""Servers to measure against: the bare SDK with one trivial tool, and ours with the same tool beside its own."""

from __future__ import annotations

import asyncio
import sys


async def trivial(text: str) -> dict[str, str]:
    """Give the text back."""
    return {"text": text}


def bare() -> None:
    """The SDK alone."""
    from mcp.server import MCPServer

    server = MCPServer("bare", version="1")
    server.tool()(trivial)
    server.run("stdio")


def ours() -> None:
    """Folklore as `folklore serve` runs it, plus the trivial tool."""
    from folklore.app import App
    from folklore.config import load_settings
    from folklore.tools.server import build_server

    async def serve() -> None:
        app = App(load_settings(log_level="error"))
        server = build_server(app.host)
        server.tool()(trivial)
        app.start()
        try:
            await server.run_stdio_async()
        finally:
            await app.close()

    asyncio.run(serve())


def http(port: str) -> None:
    """`folklore serve --http`, and the trivial tool beside the others."""
    from typing import Any

    from mcp.server import MCPServer

    from folklore.cli.main import main
    from folklore.http import serve
    from folklore.memory.host import Host

    build = serve.build_server

    def with_trivial(host: Host, **options: Any) -> MCPServer[Host]:
        server = build(host, **options)
        server.tool()(trivial)
        return server

    serve.build_server = with_trivial
    sys.argv[1:] = ["serve", "--http", "--port", port]
    main()


if __name__ == "__main__":
    {"bare": bare, "ours": ours, "http": http}[sys.argv[1]](*sys.argv[2:])
