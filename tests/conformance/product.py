"""Folklore with the conformance suite's fixtures, as a process of its own.

    python -m tests.conformance.product serve --http --port 8765      (any arguments of `folklore`)

It is the product's own command line. The server that it builds also answers for the fixtures: an MCPServer holds them,
and its handlers serve the names that the product does not have.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer, Server, ServerRequestContext
from mcp.server.lowlevel.server import HandlerEntry
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from folklore.mcp import server as production
from folklore.memory import Service
from tests.conformance.answering import add_answering
from tests.conformance.asking import add_asking

# The lists of the protocol, by method, and the field that holds their entries.
_LISTS = {
    "tools/list": "tools", "prompts/list": "prompts", "resources/list": "resources",
    "resources/templates/list": "resource_templates",
}  # fmt: skip


def with_fixtures(server: MCPServer[Any]) -> MCPServer[Any]:
    """Add the tools, prompts and resources that the suite requests by name."""
    # logging, sampling and roots are deprecated, and requested
    warnings.simplefilter("ignore")
    add_answering(server)
    add_asking(server)
    return server


def combined(product: Server[Any], fixtures: Server[Any]) -> Server[Any]:
    """Return the product's server, which lists and serves the fixtures too."""
    for method, field in _LISTS.items():
        _combine_lists(product, fixtures, method, field)
    _choose(
        product,
        fixtures,
        "tools/call",
        lambda params: _schema_of(fixtures, params.name) is not None,
    )
    _choose(
        product, fixtures, "prompts/get", lambda params: params.name.startswith("test_")
    )
    _choose(
        product, fixtures, "resources/read", lambda params: _is_fixture(str(params.uri))
    )
    completing = _handler(fixtures, "completion/complete")
    product.add_request_handler(
        "completion/complete", completing.params_type, completing.handler
    )
    of_product = product.get_tool_input_schema
    assert of_product is not None
    product.get_tool_input_schema = lambda name: (
        of_product(name) or _schema_of(fixtures, name)
    )
    # An MCPServer has this by itself: it seals the state that some fixtures give to the client.
    product.middleware.append(
        RequestStateBoundary(
            RequestStateSecurity.ephemeral(), default_audience=product.name
        )
    )
    return product


def _handler(server: Server[Any], method: str) -> HandlerEntry[Any]:
    entry = server.get_request_handler(method)
    assert entry is not None, method
    return entry


def _schema_of(fixtures: Server[Any], tool: str) -> Any:
    assert fixtures.get_tool_input_schema is not None
    return fixtures.get_tool_input_schema(tool)


def _is_fixture(uri: str) -> bool:
    """Return True for a URI of a fixture. An unknown one is the product's to refuse."""
    names = ("static-text", "static-binary", "watched-resource")
    return uri in [f"test://{name}" for name in names] or uri.startswith(
        "test://template/"
    )


def _combine_lists(
    product: Server[Any], fixtures: Server[Any], method: str, field: str
) -> None:
    ours = _handler(product, method)
    theirs = _handler(fixtures, method)

    async def both(ctx: ServerRequestContext[Any], params: Any) -> Any:
        first: Any = await ours.handler(ctx, params)
        second: Any = await theirs.handler(ctx, params)
        return first.model_copy(
            update={field: [*getattr(first, field), *getattr(second, field)]}
        )

    product.add_request_handler(method, ours.params_type, both)


def _choose(
    product: Server[Any],
    fixtures: Server[Any],
    method: str,
    is_fixture: Callable[[Any], bool],
) -> None:
    ours = _handler(product, method)
    theirs = _handler(fixtures, method)

    async def chosen(ctx: ServerRequestContext[Any], params: Any) -> Any:
        return await (theirs if is_fixture(params) else ours).handler(ctx, params)

    product.add_request_handler(method, ours.params_type, chosen)


def main() -> None:
    """Run the command line over servers with fixtures."""
    build = production.build_server

    def build_with_fixtures(service: Service, **options: Any) -> Server[None]:
        fixtures = with_fixtures(MCPServer[Any]("fixtures", subscriptions=False))
        return combined(build(service, **options), fixtures._lowlevel_server)

    production.build_server = build_with_fixtures
    # Imported after the replacement, so that an import of `build_server` by name finds it.
    from folklore.cli.main import main as command_line

    sys.argv[0] = "folklore"
    command_line()


if __name__ == "__main__":
    main()
