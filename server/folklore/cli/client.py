"""Operations of a Folklore server over HTTP: the same requests and results as in this process."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from folklore import __version__
from folklore.app import working_copy
from folklore.cli.context import request_headers, token_for
from folklore.clients.authorities import trust_authorities
from folklore.clients.credentials import normalised
from folklore.config import Settings
from folklore.errors import FolkloreError, Unavailable, error_from_code
from folklore.lazy import Lazy
from folklore.local import LocalServer
from folklore.memory.requests import ExportRequest, Request, Result, Returns, read_result, request_json
from folklore.memory.service.code import mark, prepare
from folklore.phases import phase

if TYPE_CHECKING:
    import httpx
else:
    httpx = Lazy("httpx")

_SECONDS = 60.0
# How OpenSSL words an answer that is not of TLS, version by version.
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")


class NotCarriedOut(Unavailable, has_code=False):
    """Request that the server cannot have carried out: it was not sent, or what answered is no Folklore server."""


class HttpClient:
    """Calls operations of the server that the settings name; with `anonymous`, without a token."""

    def __init__(self, settings: Settings, *, anonymous: bool = False) -> None:
        self._server = normalised(str(settings.server))
        headers = {"user-agent": f"folklore/{__version__}", "content-type": "application/json"}
        if not anonymous and (token := token_for(settings)) is not None:
            headers["authorization"] = f"Bearer {token}"
        self.copy = working_copy(settings)
        headers |= request_headers(settings)
        self.http = httpx.AsyncClient(
            base_url=self._server,
            headers=headers,
            timeout=_SECONDS,
            verify=self._server.startswith("https:")
            and trust_authorities(httpx.create_ssl_context(), self._server, settings.home),
        )

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.http.aclose()

    async def call(self, request: Returns[Result]) -> Result:
        """Run an operation. Raises the error that the server reports, or Unavailable."""
        sent = cast("Request", await prepare(self.copy, request, self.call))
        status, body = await self.post(f"/api/{sent.operation}", request_json(sent))
        value = _json(body)
        if status == HTTPStatus.OK and isinstance(value, dict) and "result" in value:
            return cast("Result", await mark(self.copy, read_result(sent, value["result"])))
        raise _error(status, value)

    async def post(self, path: str, body: str) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request. Raises Unavailable."""
        try:
            with phase(f"Waiting for {self._server}"):
                response = await self.http.post(path, content=body)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        return response.status_code, response.content

    async def export(self, request: ExportRequest) -> AsyncGenerator[str, None]:
        """Yield the lines of an export. Raises the error that the server reports, or Unavailable."""
        try:
            async with self.http.stream("POST", "/api/export", content=request_json(request)) as response:
                if response.status_code != HTTPStatus.OK:
                    raise _error(response.status_code, _json(await response.aread()))
                async for line in response.aiter_lines():
                    yield line
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    async def probe(self, path: str) -> tuple[httpx.Response, float, Mapping[str, Any] | None]:
        """Return the answer to a GET, the seconds that it took, and the server's certificate. Raises Unavailable."""
        began = monotonic()
        try:
            async with self.http.stream("GET", path) as response:
                await response.aread()
                took = monotonic() - began
                stream = response.extensions.get("network_stream")
                tls = None if stream is None else stream.get_extra_info("ssl_object")
                return response, took, None if tls is None else tls.getpeercert()
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: httpx.HTTPError) -> Unavailable:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):  # httpx keeps the text of the error alone
            return NotCarriedOut(
                f"The certificate of {self._server} is not trusted here ({_reason(error)}).",
                hint="If an authority of your own issued it, join with --ca FILE, or add that file to this machine's.",
            )
        if any(sign in str(error) for sign in _PLAIN):
            return NotCarriedOut(
                f"{self._server} answers without TLS.", hint="Give its address with http://, or that of its TLS proxy."
            )
        unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)
        kind = NotCarriedOut if isinstance(error, unsent) else Unavailable
        return kind(
            f"The server {self._server} cannot be reached, or closed the connection ({type(error).__name__}).",
            hint="Check its address and that it runs.",
        )


class LocalClient(HttpClient):
    """Calls operations of the user's own server; blocks, since a command does nothing else meanwhile."""

    def __init__(self, settings: Settings, server: LocalServer) -> None:
        self._local = server
        self._headers = {"content-type": "application/json", **request_headers(settings)}
        self.copy = working_copy(settings)

    async def __aexit__(self, *_error: object) -> None:
        """Close nothing: each request has a connection of its own."""

    async def post(self, path: str, body: str) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request. Raises Unavailable."""
        try:
            with phase("Waiting for your server"), closing(HTTPConnection("localhost")) as connection:
                connection.sock = self._local.connect(_SECONDS)
                connection.request("POST", path, body.encode(), self._headers)
                response = connection.getresponse()
                return response.status, response.read()
        except (OSError, HTTPException) as error:
            raise Unavailable(
                f"Your server was lost, or did not answer in {_SECONDS:g} seconds ({error or type(error).__name__}).",
                hint=f"Its log is {self._local.log}. `folklore server restart` replaces it.",
            ) from error


def _reason(error: Exception) -> str:
    """Return the reason of an untrusted certificate, as OpenSSL words it."""
    return str(error).partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "verification failed"


def _json(body: bytes) -> Any:
    with suppress(ValueError):
        return json.loads(body)
    return None


def _error(status: int, value: Any) -> FolkloreError:
    """Return the error that the server reports."""
    reported = value.get("error") if isinstance(value, dict) else None
    if not isinstance(reported, dict) or not isinstance(reported.get("message"), str):
        kind = NotCarriedOut if status < HTTPStatus.INTERNAL_SERVER_ERROR else Unavailable
        return kind(
            f"The server answered {status} with an unreadable body.",
            hint="Is it a Folklore server of this version?",
        )
    return error_from_code(str(reported.get("code")), reported["message"], reported.get("hint"))
