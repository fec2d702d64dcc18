"""Operations of a Folklore server over HTTP: the same requests and results as in this process."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, cast
from urllib.parse import quote

import httpx

from folklore import __version__
from folklore.app import local_zone
from folklore.config import Settings
from folklore.errors import ConfigInvalid, FolkloreError, Unavailable, error_from_code
from folklore.memory.requests import ExportRequest, Request, Result, Returns, read_result, request_json
from folklore.phases import phase
from folklore.project import project_namespace, working_directory

_SECONDS = 60.0


class HttpClient:
    """Calls operations of the server that the settings name."""

    def __init__(self, settings: Settings) -> None:
        self._server = str(settings.server)
        headers = {"user-agent": f"folklore/{__version__}", "content-type": "application/json"}
        if settings.token is not None:
            token = settings.token.get_secret_value()
            if not (token.isascii() and token.isprintable()):  # such as "fk_…", copied with the ellipsis
                raise ConfigInvalid("token", "is not a token.", hint="`folklore tokens create` shows one, once.")
            headers["authorization"] = f"Bearer {token}"
        # The current namespace of every request: the setting, else this directory's project.
        namespace = settings.namespace or project_namespace(working_directory(os.environ))
        headers["folklore-namespace"] = quote(namespace, safe="")
        headers["folklore-time-zone"] = str(local_zone(settings))
        self._client = httpx.AsyncClient(base_url=self._server, headers=headers, timeout=_SECONDS)

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._client.aclose()

    async def call(self, request: Returns[Result]) -> Result:
        """Run an operation. Raises the error that the server reports, or Unavailable."""
        sent = cast("Request", request)
        try:
            with phase(f"Waiting for {self._server}"):
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
