"""Our errors as HTTP responses: one status a branch of the family, and the same body everywhere."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import JSONResponse

from folklore.errors import Conflict, FolkloreError, InvalidInput, NotFound, Refused, Unauthenticated, Unavailable

_STATUS: tuple[tuple[type[FolkloreError], int], ...] = (
    (InvalidInput, 400),
    (Unauthenticated, 401),
    (Refused, 403),
    (NotFound, 404),
    (Conflict, 409),
    (Unavailable, 503),
)


def failure(error: FolkloreError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as a response."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    said = {"code": error.code, "message": error.message} | ({"hint": error.hint} if error.hint else {})
    return JSONResponse({"error": said}, status, headers)
