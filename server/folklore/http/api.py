"""The HTTP API: POST /api/<operation> with a request as JSON, answered by its result as JSON; an export by its lines.

Host and Origin of the requests have been checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from folklore.errors import Conflict, FolkloreError, NotFound
from folklore.http.error_responses import Path, failure
from folklore.memory.context import RequestContext
from folklore.memory.requests import OPERATIONS, ExportRequest, Returns, read_request, result_json
from folklore.memory.service import Service
from folklore.memory.transfer.export import export_lines

# Each export holds a connection to the database for as long as its reader takes.
_EXPORTS = 2
_LINES = 200


def api_routes(service: Service, security: TransportSecuritySettings) -> list[Route]:
    """Return the routes of the API."""
    checks = TransportSecurityMiddleware(security)
    exports = asyncio.Semaphore(_EXPORTS)

    async def call(request: Request) -> Response:
        if (refused := await checks.validate_request(request, is_post=True)) is not None:  # the content type
            return refused
        name = request.path_params["operation"]
        try:
            if name not in OPERATIONS:
                raise NotFound(f"There is no operation {name[:60]!r}.", hint=f"There are {', '.join(OPERATIONS)}.")
            parsed = read_request(OPERATIONS[name], await request.body())
        except FolkloreError as error:
            service.denied("api", error)
            return failure(error)
        try:
            result: object = await service.call(cast("Returns[object]", parsed))
        except FolkloreError as error:
            return failure(error)
        return JSONResponse({"result": result_json(parsed, result)})

    async def export(request: Request) -> Response:
        try:
            lines = await _begin_export(service, await request.body(), exports)
        except FolkloreError as error:
            service.denied("export", error)
            return failure(error)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    return [Path("/api/export", export, methods=["POST"]), Path("/api/{operation}", call, methods=["POST"])]


async def _begin_export(service: Service, body: bytes, exports: asyncio.Semaphore) -> AsyncIterator[str]:
    """Return the lines once the first ones exist: an error before them can still have its own status."""
    request = read_request(ExportRequest, body)
    if exports.locked():
        raise Conflict(f"{_EXPORTS} exports are running already.", hint="Try again when one of them has ended.")
    batches = _batches(await service.open(), request, exports)
    first = await anext(batches)

    async def whole() -> AsyncIterator[str]:
        async with aclosing(batches):
            yield first
            async for batch in batches:
                yield batch

    return whole()


async def _batches(
    context: RequestContext, request: ExportRequest, exports: asyncio.Semaphore
) -> AsyncGenerator[str, None]:
    """Yield the lines of an export, joined in batches."""
    async with exports:
        batch: list[str] = []
        async with aclosing(export_lines(context, request)) as lines:
            async for line in lines:
                batch.append(line)
                if len(batch) == _LINES:
                    yield "\n".join(batch) + "\n"
                    batch = []
        if batch:
            yield "\n".join(batch) + "\n"
