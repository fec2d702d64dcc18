"""A span for each message of a client.

The SDK's own spans also have the names of unknown tools and the messages of errors, which may repeat what a client wrote.
"""

from collections.abc import Set
from typing import Any

from mcp.server.context import (
    CallNext,
    HandlerResult,
    ServerMiddleware,
    ServerRequestContext,
)
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, methods, version

from folklore import telemetry

_METHODS = methods.SPEC_CLIENT_METHODS | methods.SPEC_CLIENT_NOTIFICATION_METHODS

_NAMED_BY = {
    "tools/call": "gen_ai.tool.name",
    "prompts/get": "gen_ai.prompt.name",
}


class Spans(ServerMiddleware[Any]):
    """Records the method of a message, and the name of a tool or a prompt that this server has."""

    def __init__(self, names: Set[str]) -> None:
        self._names = names

    async def __call__(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Answer a message within its span."""
        if not telemetry.collects():
            return await call_next(ctx)
        attributes = self._attributes(ctx)
        words = [attributes.get("mcp.method.name", "other")]
        key = _NAMED_BY.get(ctx.method)
        if key is not None and key in attributes:
            words.append(attributes[key])
        traceparent = (ctx.meta or {}).get("traceparent")
        above = traceparent if isinstance(traceparent, str) else None
        with telemetry.message(" ".join(words), attributes, above) as span:
            try:
                result = await call_next(ctx)
            except MCPError as error:
                span.set_attribute("rpc.response.status_code", str(error.error.code))
                raise
            if isinstance(result, CallToolResult):
                failed = bool(result.is_error)
            else:
                failed = isinstance(result, dict) and result.get("isError") is True
            if failed:
                telemetry.set_error(span, "tool_error")
            return result

    def _attributes(self, ctx: ServerRequestContext[Any, Any]) -> dict[str, str]:
        """Return the attributes that are words of the protocol or of this server, or numbers."""
        attributes: dict[str, str] = {}
        if ctx.method in _METHODS:
            attributes["mcp.method.name"] = ctx.method
        if ctx.protocol_version in version.KNOWN_PROTOCOL_VERSIONS:
            attributes["mcp.protocol.version"] = ctx.protocol_version
        if isinstance(ctx.request_id, int):
            attributes["jsonrpc.request.id"] = str(ctx.request_id)
        if ctx.method == "tools/call":
            attributes["gen_ai.operation.name"] = "execute_tool"
        name = ctx.params.get("name") if ctx.params else None
        key = _NAMED_BY.get(ctx.method)
        if key is not None and isinstance(name, str) and name in self._names:
            attributes[key] = name
        return attributes
