"""Answers as the model reads them."""

from __future__ import annotations

import json

from mcp.types import CallToolResult, TextContent

from folklore.memory.serializers import JsonDict


def result_of(value: JsonDict) -> CallToolResult:
    """One JSON object, as structure and as the same text for clients that read only text."""
    return CallToolResult(
        content=[TextContent(type="text", text=json.dumps(value, ensure_ascii=False, separators=(",", ":")))],
        structured_content=value,
    )
