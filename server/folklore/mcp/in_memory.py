"""MCP without a transport: answers of a server in this process."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from mcp.server import Server
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import ValidationError

from folklore.errors import InvalidInput

_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def answer(
    server: Server[Any], requests: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the answer to the last of some requests, which the server gets on one connection. Raises InvalidInput."""
    async with create_client_server_memory_streams() as (
        (arriving, leaving),
        (reading, writing),
    ):
        serving = asyncio.create_task(
            server.run(reading, writing, server.create_initialization_options())
        )
        try:
            for request in requests:
                messages = [
                    request,
                    *([_INITIALIZED] if request["method"] == "initialize" else []),
                ]
                for message in messages:
                    try:
                        parsed = jsonrpc_message_adapter.validate_python(
                            message, by_name=False
                        )
                    except ValidationError:
                        raise InvalidInput(
                            "message", "is nested too deeply, or not of the protocol."
                        ) from None
                    await leaving.send(SessionMessage(parsed))
                    if message is request:
                        received = await arriving.receive()
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
    if isinstance(received, Exception):
        raise received
    result: dict[str, Any] = json.loads(
        received.message.model_dump_json(by_alias=True, exclude_unset=True)
    )
    return result
