"""Folklore with the conformance suite's fixtures, as a process of its own.

    python -m tests.conformance.product serve --http --port 8765      (any arguments of `folklore`)

It is the product's own command line; only the server object that it builds is given the fixtures before it is served.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from mcp.server import MCPServer

from folklore.mcp import server as production
from tests.conformance.answering import add_answering
from tests.conformance.asking import add_asking


def with_fixtures(server: MCPServer[Any]) -> MCPServer[Any]:
    """The same server, which also has what the suite asks for by name."""
    warnings.simplefilter("ignore")  # logging, sampling and roots are deprecated, and asked for
    add_answering(server)
    add_asking(server)
    return server


def main() -> None:
    """Run the command line over servers with fixtures."""
    build = production.build_server

    def build_with_fixtures(*arguments: Any, **options: Any) -> MCPServer[Any]:
        return with_fixtures(build(*arguments, **options))

    production.build_server = build_with_fixtures
    # Imported only now: whoever imports `build_server` by name must find this one.
    from folklore.cli.main import main as command_line

    sys.argv[0] = "folklore"
    command_line()


if __name__ == "__main__":
    main()
