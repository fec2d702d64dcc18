"""Servers to measure against: the bare SDK with one trivial tool, and Folklore with the same tool added."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from folklore.mcp.tools import ToolSpec


async def trivial(text: str) -> dict[str, str]:
    """Return the text."""
    return {"text": text}


def bare() -> None:
    """Serve the SDK alone over stdio."""
    from mcp.server import MCPServer

    server = MCPServer("bare", version="1")
    server.tool()(trivial)
    server.run("stdio")


def _trivial_tool() -> ToolSpec:
    """Return the trivial tool as one of Folklore's."""
    from mcp.types import ToolAnnotations

    from folklore.contract.requests import Part
    from folklore.mcp.tools import ToolSpec

    class Arguments(Part):
        text: str

    async def run(_service: object, arguments: Any, _meta: object) -> dict[str, str]:
        return await trivial(arguments.text)

    run.__name__ = "trivial"
    run.__doc__ = trivial.__doc__
    return ToolSpec(
        run,
        "Trivial",
        Arguments,
        ToolAnnotations(read_only_hint=True),
    )


def stdio() -> None:
    """Serve Folklore as `folklore serve --own` does, plus the trivial tool."""
    _with_trivial_tool("serve", "--own")


def http(port: str) -> None:
    """Serve Folklore as `folklore serve --http` does, plus the trivial tool."""
    _with_trivial_tool("serve", "--http", "--port", port)


def _with_trivial_tool(*command: str) -> None:
    from functools import partial
    from unittest.mock import patch

    from folklore.cli.main import outcome
    from folklore.mcp import server
    from folklore.mcp.tools import TOOLS

    tools = (*TOOLS, _trivial_tool())
    with_trivial = partial(server.build_server, every_tool=tools)
    with patch.object(server, "build_server", with_trivial):
        sys.exit(outcome(list(command)))


# The imports above are local so that the start of the bare server is not slower than the SDK.
if __name__ == "__main__":
    match sys.argv[1:]:
        case ["bare"]:
            bare()
        case ["stdio"]:
            stdio()
        case ["http", port]:
            http(port)
