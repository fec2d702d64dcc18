"""Errors as HTTP responses: one JSON shape with the next step, for every status."""

import math
from collections.abc import Mapping

from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from folklore import errors

_STATUS: Mapping[type[errors.FolkloreError], int] = {
    errors.InvalidInput: 400, errors.Unauthenticated: 401, errors.RateLimited: 429,
    errors.Refused: 403, errors.NotFound: 404, errors.Conflict: 409, errors.Unavailable: 503,
}  # fmt: skip


def refusal(
    status: int, code: str, message: str, hint: str, *, retry_after: float | None = None
) -> Response:
    """Return a response that refuses; `retry_after` in seconds goes into its header and its body.

    It leaves the connection open: closed while the client still sends, the connection would lose the response.
    """
    error: dict[str, object] = {"code": code, "message": message, "hint": hint}
    headers = {}
    if retry_after is not None:
        error["retry_after"] = max(1, math.ceil(retry_after))
        headers["retry-after"] = str(error["retry_after"])
    return JSONResponse({"error": error}, status, headers)


def too_often(message: str, wait: float, advice: str = "") -> Response:
    """Return the answer to a client that sends too much; it may go on after `wait` seconds."""
    return refusal(
        429,
        "rate_limited",
        message,
        f"Wait as long as retry_after says{advice}.",
        retry_after=wait,
    )


def failure(
    error: errors.FolkloreError, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return an error as a response."""
    content = {"code": error.code, "message": error.message}
    if error.hint:
        content["hint"] = error.hint
    return JSONResponse({"error": content}, _status(error), headers)


def _status(error: errors.FolkloreError) -> int:
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            return status
    return 500


class Path(Route):
    """A route that answers a wrong method with 405 itself, where Starlette would go on to the next route."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the path, whatever the method."""
        match, child = super().matches(scope)
        if match is Match.PARTIAL:
            match = Match.FULL
        return match, child

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse its method, or what arrives when the server has ended."""
        if getattr(scope["app"].state, "ended", False):
            answer = refusal(
                503,
                "unavailable",
                "The server ends.",
                "Repeat the request later.",
                retry_after=1,
            )
            return await answer(scope, receive, send)
        allowed = self.methods or set()
        if scope["method"] in allowed:
            return await super().handle(scope, receive, send)
        listed = ", ".join(sorted(allowed))
        hint = "docs/how-to/http-server.md lists the paths."
        answer = refusal(405, "wrong_method", f"This path takes {listed} only.", hint)
        answer.headers["allow"] = listed
        return await answer(scope, receive, send)
