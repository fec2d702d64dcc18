"""How the HTTP edge says no: one JSON shape, with the next step, for every status."""

from __future__ import annotations

import json
import math

from starlette.responses import JSONResponse, Response


def refusal(status: int, code: str, message: str, hint: str, *, retry_after: float | None = None) -> Response:
    """An answer that refuses; `retry_after` in seconds goes into header and body.

    It does not close the connection: what a client is still sending then would make the answer be lost.
    """
    headers = {} if retry_after is None else {"retry-after": str(_whole(retry_after))}
    return JSONResponse(_said(code, message, hint, retry_after), status, headers)


def on_the_wire(status: int, phrase: str, code: str, message: str, hint: str) -> bytes:
    """The same as bytes, for a connection on which no request could be read; it ends with it."""
    body = json.dumps(_said(code, message, hint, None)).encode()
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return f"{head}connection: close\r\n\r\n".encode("ascii") + body


def _said(code: str, message: str, hint: str, retry_after: float | None) -> dict[str, object]:
    said: dict[str, object] = {"code": code, "message": message, "hint": hint}
    if retry_after is not None:
        said["retry_after"] = _whole(retry_after)
    return {"error": said}


def _whole(seconds: float) -> int:
    return max(1, math.ceil(seconds))
