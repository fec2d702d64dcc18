"""The desk over HTTP: POST /api/<call> with its arguments as a JSON object; as whoever the request is from."""

from __future__ import annotations

from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from folklore.errors import FolkloreError, NotFound
from folklore.http.error_responses import Path, failure
from folklore.memory.operations import CALLS
from folklore.memory.request_context import RequestContext
from folklore.memory.service import Service


def api_routes(host: RequestContext, security: TransportSecuritySettings) -> list[Route]:
    """The routes; Host, Origin and content type are checked as those of the protocol are."""
    desk = Service(host)
    checks = TransportSecurityMiddleware(security)

    async def call(request: Request) -> Response:
        if (refused := await checks.validate_request(request, is_post=True)) is not None:
            return refused
        name = request.path_params["call"]
        found = CALLS.get(name)
        try:
            if found is None:
                raise NotFound(f"There is no call {name[:60]!r}.", hint=f"There are {', '.join(CALLS)}.")
            result = await getattr(desk, name)(**found.unpack(await request.body()))
        except FolkloreError as error:
            host.refused(name if found else "api", error)
            return failure(error)
        return JSONResponse({"result": found.give(result)})

    return [Path("/api/{call}", call, methods=["POST"])]
