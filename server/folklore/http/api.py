"""The HTTP API: POST /api/<operation> with a request as JSON, answered by its result as JSON."""

from __future__ import annotations

from typing import cast

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from folklore.errors import FolkloreError, NotFound
from folklore.http.error_responses import failure
from folklore.http.paths import Path
from folklore.memory.requests import OPERATIONS, Returns, read_request, result_json
from folklore.memory.service import Service


def api_routes(service: Service, security: TransportSecuritySettings) -> list[Route]:
    """Return the routes. Host, Origin and content type are checked like those of the protocol."""
    checks = TransportSecurityMiddleware(security)

    async def call(request: Request) -> Response:
        if (refused := await checks.validate_request(request, is_post=True)) is not None:
            return refused
        name = request.path_params["operation"]
        try:
            if name not in OPERATIONS:
                raise NotFound(f"There is no operation {name[:60]!r}.", hint=f"There are {', '.join(OPERATIONS)}.")
            asked = read_request(OPERATIONS[name], await request.body())
        except FolkloreError as error:
            service.denied("api", error)
            return failure(error)
        try:
            result: object = await service.call(cast("Returns[object]", asked))
        except FolkloreError as error:
            return failure(error)
        return JSONResponse({"result": result_json(asked, result)})

    return [Path("/api/{operation}", call, methods=["POST"])]
