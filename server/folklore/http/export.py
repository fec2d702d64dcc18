"""POST /api/export: what `folklore export` writes, line by line, of what the caller may read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from folklore.db.stores.transfer import Transfers
from folklore.errors import Conflict, FolkloreError
from folklore.http.error_responses import Path, failure
from folklore.memory.operations import wrong
from folklore.memory.request_context import RequestContext
from folklore.memory.requests import ExportRequest
from folklore.memory.transfer.streams import export_lines

# Each has a connection of its own for as long as its reader takes.
_AT_ONCE = 2
_LINES = 200
_REQUEST = TypeAdapter(ExportRequest)


def export_route(host: RequestContext) -> Route:
    """The route; Host and Origin have been checked."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def export(request: Request) -> Response:
        try:
            lines = await _begun(host, await request.body(), places)
        except FolkloreError as error:
            host.refused("export", error)
            return failure(error)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    return Path("/api/export", export, methods=["POST"])


async def _begun(host: RequestContext, body: bytes, places: asyncio.Semaphore) -> AsyncIterator[str]:
    """The lines, once the first is there: what goes wrong until then is told as an error."""
    try:
        asked = _REQUEST.validate_json(body or b"{}")
    except ValidationError as error:
        raise wrong(error) from None
    if places.locked():
        raise Conflict(f"{_AT_ONCE} exports run already.", hint="Try again when one has ended.")
    library = await host.library()
    pieces = _pieces(Transfers(library.database), asked, host, places)
    first = await anext(pieces)

    async def whole() -> AsyncIterator[str]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return whole()


async def _pieces(
    transfers: Transfers, asked: ExportRequest, host: RequestContext, places: asyncio.Semaphore
) -> AsyncGenerator[str, None]:
    async with places:
        held: list[str] = []
        lines = export_lines(transfers, asked.namespaces, now=host.now(), embeddings=asked.embeddings)
        async with aclosing(lines):
            async for line in lines:
                held.append(line)
                if len(held) == _LINES:
                    yield "\n".join(held) + "\n"
                    held = []
        if held:
            yield "\n".join(held) + "\n"
