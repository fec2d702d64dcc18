"""POST /api/export: an export of what the caller may read, line by line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from folklore.errors import Conflict, FolkloreError
from folklore.http.error_responses import failure
from folklore.http.paths import Path
from folklore.memory.context import RequestContext
from folklore.memory.requests import ExportRequest
from folklore.memory.service import Service
from folklore.memory.transfer.export import export_lines
from folklore.memory.wire import read_request

# Exports at once: each holds a connection for as long as its reader takes.
_AT_ONCE = 2
_LINES = 200


def export_route(service: Service) -> Route:
    """Return the route; Host and Origin were checked."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def export(request: Request) -> Response:
        try:
            lines = await _begun(service, await request.body(), places)
        except FolkloreError as error:
            service.denied("export", error)
            return failure(error)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    return Path("/api/export", export, methods=["POST"])


async def _begun(service: Service, body: bytes, places: asyncio.Semaphore) -> AsyncIterator[str]:
    """Return the lines once the first one exists: an error before it can still have its own status."""
    asked = read_request(ExportRequest, body)
    if places.locked():
        raise Conflict(f"{_AT_ONCE} exports are running already.", hint="Try again when one of them has ended.")
    context = await service.open()
    pieces = _pieces(context, asked, places)
    first = await anext(pieces)

    async def whole() -> AsyncIterator[str]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return whole()


async def _pieces(
    context: RequestContext, asked: ExportRequest, places: asyncio.Semaphore
) -> AsyncGenerator[str, None]:
    async with places:
        held: list[str] = []
        async with aclosing(export_lines(context, asked)) as lines:
            async for line in lines:
                held.append(line)
                if len(held) == _LINES:
                    yield "\n".join(held) + "\n"
                    held = []
        if held:
            yield "\n".join(held) + "\n"
