"""The HTTP API: POST /api/<operation> with a request as JSON, answered by its result as JSON; an export by its lines.

Host and Origin of the requests have been checked.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any, cast

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from folklore.errors import FolkloreError, NotFound
from folklore.http.error_responses import Path, failure
from folklore.http.exports import Exports
from folklore.memory.requests import (
    OPERATIONS,
    ExportRequest,
    Request as AnyRequest,
    Returns,
    RunJobsRequest,
    read_request,
    result_json,
)
from folklore.memory.service import Service

# A client gives up after a minute of silence.
_SIGN_SECONDS = 10.0


def api_routes(service: Service, exports: Exports, security: TransportSecuritySettings) -> list[Route]:
    """Return the routes of the API."""
    checks = TransportSecurityMiddleware(security)

    async def call(request: Request) -> Response:
        if (refusal := await checks.validate_request(request, is_post=True)) is not None:  # the content type
            return refusal
        name = request.path_params["operation"]
        try:
            if name not in OPERATIONS:
                raise NotFound(f"There is no operation {name[:60]!r}.", hint=f"There are {', '.join(OPERATIONS)}.")
            parsed = read_request(OPERATIONS[name], await request.body())
        except FolkloreError as error:
            service.on_denial("api", error)
            return failure(error)
        return await (_alive(answer(parsed)) if isinstance(parsed, RunJobsRequest) else answer(parsed))

    async def answer(parsed: AnyRequest) -> Response:
        try:
            result: object = await service.call(cast("Returns[object]", parsed))
        except FolkloreError as error:
            return failure(error)
        return JSONResponse({"result": result_json(parsed, result)})

    async def export(request: Request) -> Response:
        try:
            return await exports.answer(read_request(ExportRequest, await request.body()))
        except FolkloreError as error:
            service.on_denial("export", error)
            return failure(error)

    return [Path("/api/export", export, methods=["POST"]), Path("/api/{operation}", call, methods=["POST"])]


async def _alive(answering: Coroutine[Any, Any, Response]) -> Response:
    """Return an answer that may take hours: after a second a stream of spaces, which JSON allows before a value.

    The stream shows the client and its proxies that the server works. Ending it cancels the work.
    """
    task = asyncio.create_task(answering)
    if (await asyncio.wait({task}, timeout=1))[0]:
        return task.result()

    async def whole() -> AsyncIterator[bytes]:
        try:
            while not (await asyncio.wait({task}, timeout=_SIGN_SECONDS))[0]:
                yield b" "
            yield bytes(task.result().body)
        finally:
            task.cancel()

    return StreamingResponse(whole(), media_type="application/json")
