"""Operations of a Folklore server over HTTP: the same requests and results as in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, cast

import httpx

from folklore import __version__
from folklore.cli.context import request_headers, token_for
from folklore.config import Settings
from folklore.errors import FolkloreError, Unavailable, error_from_code
from folklore.memory.requests import ExportRequest, Request, Result, Returns, read_result, request_json

_SECONDS = 60.0


class HttpClient:
    """Calls operations of the server that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self._server = str(settings.server)
        headers = {"user-agent": f"folklore/{__version__}", "content-type": "application/json"}
        if (token := token_for(settings)) is not None:
            headers["authorization"] = f"Bearer {token}"
        headers |= request_headers(settings)
        self._client = httpx.AsyncClient(base_url=self._server, headers=headers, timeout=_SECONDS)

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._client.aclose()

    async def call(self, request: Returns[Result]) -> Result:
        """Run an operation. Raises the error that the server reports, or Unavailable."""
        sent = cast("Request", request)
        try:
            response = await self._client.post(f"/api/{sent.operation}", content=request_json(sent))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        value = _json(response)
        if response.status_code == httpx.codes.OK and isinstance(value, dict) and "result" in value:
            return cast("Result", read_result(sent, value["result"]))
        raise _error(response, value)

    async def export(self, request: ExportRequest) -> AsyncGenerator[str, None]:
        """Yield the lines of an export. Raises the error that the server reports, or Unavailable."""
        try:
            async with self._client.stream("POST", "/api/export", content=request_json(request)) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise _error(response, _json(response))
                async for line in response.aiter_lines():
                    yield line
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.HTTPError) -> Unavailable:
        return Unavailable(
            f"The server {self._server} cannot be reached, or closed the connection ({type(error).__name__}).",
            hint="Check its address and that it runs.",
        )


def _json(response: httpx.Response) -> Any:
    with suppress(ValueError):
        return response.json()
    return None


def _error(response: httpx.Response, value: Any) -> FolkloreError:
    """Return the error that the server reports."""
    reported = value.get("error") if isinstance(value, dict) else None
    if not isinstance(reported, dict) or not isinstance(reported.get("message"), str):
        return Unavailable(
            f"The server answered {response.status_code} with an unreadable body.",
            hint="Is it a Folklore server of this version?",
        )
    return error_from_code(str(reported.get("code")), reported["message"], reported.get("hint"))
