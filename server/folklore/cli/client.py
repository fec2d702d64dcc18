"""Operations of a Folklore server over HTTP: the same requests and results as in this process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any, cast

import httpx

from folklore import __version__
from folklore.app import working_copy
from folklore.cli.context import request_headers, token_for
from folklore.clients.authorities import trust_authorities
from folklore.clients.credentials import normalised
from folklore.config import Settings
from folklore.errors import FolkloreError, Unavailable, error_from_code
from folklore.memory.code.calls import mark, prepare
from folklore.memory.requests import ExportRequest, Request, Result, Returns, read_result, request_json
from folklore.phases import phase

_SECONDS = 60.0
# How OpenSSL words an answer that is not of TLS, version by version.
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL)


class NotCarriedOut(Unavailable):
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
        try:
            with phase(f"Waiting for {self._server}"):
                response = await self.http.post(f"/api/{sent.operation}", content=request_json(sent))
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        value = _json(response)
        if response.status_code == httpx.codes.OK and isinstance(value, dict) and "result" in value:
            return cast("Result", await mark(self.copy, read_result(sent, value["result"])))
        raise _error(response, value)

    async def export(self, request: ExportRequest) -> AsyncGenerator[str, None]:
        """Yield the lines of an export. Raises the error that the server reports, or Unavailable."""
        try:
            async with self.http.stream("POST", "/api/export", content=request_json(request)) as response:
                if response.status_code != httpx.codes.OK:
                    await response.aread()
                    raise _error(response, _json(response))
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
        kind = NotCarriedOut if isinstance(error, _UNSENT) else Unavailable
        return kind(
            f"The server {self._server} cannot be reached, or closed the connection ({type(error).__name__}).",
            hint="Check its address and that it runs.",
        )


def _reason(error: Exception) -> str:
    """Return the reason of an untrusted certificate, as OpenSSL words it."""
    return str(error).partition("certificate verify failed: ")[2].partition(" (_ssl")[0] or "verification failed"


def _json(response: httpx.Response) -> Any:
    with suppress(ValueError):
        return response.json()
    return None


def _error(response: httpx.Response, value: Any) -> FolkloreError:
    """Return the error that the server reports."""
    reported = value.get("error") if isinstance(value, dict) else None
    if not isinstance(reported, dict) or not isinstance(reported.get("message"), str):
        kind = NotCarriedOut if response.status_code < httpx.codes.INTERNAL_SERVER_ERROR else Unavailable
        return kind(
            f"The server answered {response.status_code} with an unreadable body.",
            hint="Is it a Folklore server of this version?",
        )
    return error_from_code(str(reported.get("code")), reported["message"], reported.get("hint"))
