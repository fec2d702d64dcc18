"""How the HTTP edge says no: one JSON shape, with the next step, for every status."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping

from starlette.responses import JSONResponse, Response

from folklore.errors import Conflict, FolkloreError, InvalidInput, NotFound, Refused, Unauthenticated, Unavailable

_STATUS: tuple[tuple[type[FolkloreError], int], ...] = (
    (InvalidInput, 400),
    (Unauthenticated, 401),
    (Refused, 403),
    (NotFound, 404),
    (Conflict, 409),
    (Unavailable, 503),
)


def refusal(status: int, code: str, message: str, hint: str, *, retry_after: float | None = None) -> Response:
    """An answer that refuses; `retry_after` in seconds goes into header and body.

    It does not close the connection: what a client is still sending then would make the answer be lost.
    """
    headers = {} if retry_after is None else {"retry-after": str(_whole(retry_after))}
    return JSONResponse(_said(code, message, hint, retry_after), status, headers)


def wrong_method(allowed: Collection[str]) -> Response:
    """405: the path is ours, but takes other methods."""
    takes = ", ".join(sorted(allowed))
    said = _said("wrong_method", f"This path takes {takes} alone.", "docs/http.md tells the paths.", None)
    return JSONResponse(said, 405, {"allow": takes})


def failure(error: FolkloreError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as a response."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return JSONResponse(_said(error.code, error.message, error.hint, None), status, headers)


def on_the_wire(status: int, phrase: str, code: str, message: str, hint: str) -> bytes:
    """The same as bytes, for a connection on which no request could be read; it ends with it."""
    body = json.dumps(_said(code, message, hint, None)).encode()
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode("ascii") + body


def _said(code: str, message: str, hint: str | None, retry_after: float | None) -> dict[str, object]:
    said: dict[str, object] = {"code": code, "message": message}
    if hint:
        said["hint"] = hint
    if retry_after is not None:
        said["retry_after"] = _whole(retry_after)
    return {"error": said}


def _whole(seconds: float) -> int:
    return max(1, math.ceil(seconds))
