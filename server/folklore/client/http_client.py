"""Operations of a Folklore server over HTTP, the user's own or a team's: the same as in this process."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar, cast

from folklore import __version__, disk
from folklore.background import in_thread
from folklore.client.access import access_of, address_of
from folklore.client.code.calls import prepare
from folklore.client.code.results import marked_result
from folklore.client.connections import (
    Connections,
    Content,
    Exchange,
    NoAnswer,
    UserServer,
)
from folklore.client.surroundings import namespace_of, working_copy
from folklore.config import Settings
from folklore.contract.lines import Lines, chunks_of, encoded
from folklore.contract.requests import (
    Request,
    Result,
    Returns,
    read_result,
    request_json,
)
from folklore.contract.transfer import ExportRequest, ImportRequest
from folklore.errors import FolkloreError, Unavailable, error_from_code
from folklore.phases import Advance, phase

Value = TypeVar("Value")
# Makes the body of a request piece by piece.
Body = Callable[[Advance], Iterator[bytes]]

_SECONDS = 60.0
# Begins a line before the answer of an operation that lasts.
_PROGRESS = b'{"progress":'
_LINES = 200  # of an import that are sent at once
_BYTES = 65_536  # of the lines of an export that are read at once


class NotCarriedOut(Unavailable, has_code=False):
    """Request that the server cannot have carried out: it was not sent, or what answered is no Folklore server."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Response to a request, the seconds that it took, the server's certificate, and which proxy it came by."""

    status: int
    body: bytes
    seconds: float = 0.0
    certificate: Mapping[str, Any] | None = None
    by_proxy: str = ""

    def json(self) -> Any:
        """Return the value of the body; None if it is no JSON."""
        with suppress(ValueError):
            return json.loads(self.body)
        return None


class HttpClient:
    """Calls operations of the `local` server of the user, or of the one that the settings name.

    With `anonymous`, without a token.
    """

    def __init__(
        self,
        settings: Settings,
        local: UserServer | None = None,
        *,
        anonymous: bool = False,
    ) -> None:
        self._local = local
        self._answer_seconds = _SECONDS if local is None else local.answer_seconds
        self._server = address_of(settings, local)
        self._headers = {
            "user-agent": f"folklore/{__version__}",
            "content-type": "application/json",
        }
        namespace = namespace_of(settings)
        is_anonymous = anonymous or local is not None
        access = access_of(settings, namespace, anonymous=is_anonymous)
        self._headers |= access.all_headers
        self._copy = working_copy(namespace)
        self._connections = Connections(self._server, settings.home, local)

    async def __aenter__(self) -> HttpClient:
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._connections.close()

    async def call(self, request: Returns[Result]) -> Result:
        """Run an operation. Raises the error that the server reports, or Unavailable."""
        prepared: Request = await prepare(self._copy, request, self.call)
        path = f"/api/{prepared.operation}"
        reply = await self.send("POST", path, request_json(prepared))
        result = await marked_result(self._copy, prepared, _result(reply))
        return cast("Result", read_result(prepared, result))

    async def import_lines(
        self,
        lines: Lines,
        request: ImportRequest,
        steps: Callable[[], tuple[int, int]],
    ) -> None:
        """Send lines for an import, and read its report; `steps` returns the steps done, and all.

        Raises the error that the server reports, or Unavailable.
        """
        report = request.report
        first = request_json(request)

        def body(advance: Advance) -> Iterator[bytes]:
            yield first.encode() + b"\n"
            for chunk in chunks_of(lines, _LINES):
                report.lines += len(chunk)
                for line in chunk:
                    if isinstance(line.raw, bytes):
                        report.bytes += len(line.raw)
                advance(*steps())
                yield encoded(chunk)

        report.replace(_result(await self.send("POST", "/api/import", body)))

    async def send(
        self, method: str, path: str, body: str | Body | None = None
    ) -> Reply:
        """Return the answer to a request; a body that is a function is made in a thread. Raises Unavailable."""

        began = monotonic()

        def work(connection: HTTPConnection, answered: Callable[[Reply], None]) -> None:
            certificate = None
            if isinstance(connection.sock, ssl.SSLSocket):
                certificate = connection.sock.getpeercert()
            content: Content = None
            if callable(body):
                content = body(advance)
            elif body is not None:
                content = body.encode()
            with self._connections.exchange(
                connection, method, path, content, self._headers
            ) as response:
                answer = b"".join(_answer(response, advance))
                if response.status == HTTPStatus.OK and not answer.strip():
                    raise NoAnswer("it ended during the call", sent=True)
                seconds = monotonic() - began
                by_proxy = self._connections.by_proxy
                answered(Reply(response.status, answer, seconds, certificate, by_proxy))

        if self._local is None:
            waiting = f"Waiting for {self._server}"
        else:
            waiting = self._local.waiting
        with phase(waiting) as advance:
            exchange = Exchange(
                self._connections,
                work,
                connect_seconds=_SECONDS,
                read_seconds=self._answer_seconds,
            )
            with self._losses():
                return await exchange.answered

    async def export(self, request: ExportRequest) -> AsyncGenerator[str, None]:
        """Yield the lines of an export. Raises the error that the server reports, or Unavailable."""
        content = request_json(request).encode()
        connection = await self._done(self._connect)
        sending = self._connections.exchange(
            connection, "POST", "/api/export", content, self._headers
        )
        response: HTTPResponse = await self._done(sending.__enter__)
        try:
            if response.status != HTTPStatus.OK:
                body = await self._done(response.read)
                by_proxy = self._connections.by_proxy
                raise _error(Reply(response.status, body, by_proxy=by_proxy))
            while lines := await self._done(lambda: response.readlines(_BYTES)):
                for line in lines:
                    yield line.decode().removesuffix("\n")
        finally:
            self._connections.close()
            sending.__exit__(None, None, None)

    def _connect(self) -> HTTPConnection:
        connection = self._connections.take(_SECONDS)
        connection.sock.settimeout(self._answer_seconds)
        return connection

    async def _done(self, work: Callable[[], Value]) -> Value:
        """Return the result of work in a thread: Ctrl-C does not wait for it. Raises Unavailable, DiskFull."""
        with self._losses():
            return await in_thread(work, "folklore-request")

    @contextmanager
    def _losses(self) -> Iterator[None]:
        """Raise the loss of a server in words: Unavailable, DiskFull."""
        try:
            yield
        except (NoAnswer, OSError, HTTPException) as error:
            raise self._unavailable(error) from error

    def _unavailable(self, error: Exception) -> Unavailable:
        cause = error.__cause__ or error
        kind = Unavailable
        if isinstance(error, NoAnswer) and not error.sent:
            kind = NotCarriedOut
        if self._local is not None:
            disk.require_space(Path(self._local.home))
            message = f"Your server was lost, or did not answer in time ({error})."
            if kind is Unavailable:
                message += " What it was doing may have been carried out."
            hint = (
                f"Its log is {self._local.log}. `folklore server restart` replaces it."
            )
            return kind(message, hint=hint)
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NotCarriedOut(
                f"The certificate of {self._server} is not trusted here ({cause.verify_message}).",
                hint="If an authority of your own issued it, join with --ca FILE, or add that file to this machine's.",
            )
        if isinstance(cause, ssl.SSLError):
            hint = "Give its address with http://, or that of its TLS proxy."
            return NotCarriedOut(f"{self._server} answers without TLS.", hint=hint)
        hint = "Check its address and that it runs."
        if self._connections.by_proxy:
            hint = "Check its address and that it runs, and the proxy."
        return kind(
            f"The server {self._server} cannot be reached, or closed the connection ({error}).",
            hint=hint,
        )


def _answer(lines: Iterable[bytes], advance: Advance) -> Iterator[bytes]:
    """Yield the lines of an answer; those before it report progress."""
    for line in lines:
        if line.lstrip().startswith(_PROGRESS):
            advance(*json.loads(line)["progress"])
        else:
            yield line


def _result(reply: Reply) -> Any:
    """Return the result that the server gives. Raises the error that it reports."""
    value = reply.json()
    if reply.status == HTTPStatus.OK and isinstance(value, dict) and "result" in value:
        return value["result"]
    raise _error(reply)


def _error(reply: Reply) -> FolkloreError:
    value = reply.json()
    reported = value.get("error") if isinstance(value, dict) else None
    if not isinstance(reported, dict) or not isinstance(reported.get("message"), str):
        kind = Unavailable
        if reply.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            kind = NotCarriedOut
        return kind(
            f"The server answered {reply.status} with an unreadable body{reply.by_proxy}.",
            hint="Is it a Folklore server of this version?",
        )
    return error_from_code(reported["code"], reported["message"], reported.get("hint"))
