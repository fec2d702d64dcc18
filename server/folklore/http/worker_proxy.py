"""Several workers and SSE: a session lives in one worker, and its messages arrive at any of them."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from pathlib import Path

import h11
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.errors import ConfigInvalid
from folklore.http.error_responses import refusal

_PATIENCE_SECONDS = 10.0
# They belong to one connection; the message gets its own.
_HOP = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"expect", b"te", b"upgrade"})


@dataclass(frozen=True, slots=True)
class WorkerProxy:
    """The workers of one server: each has a number, and a Unix socket in `folder`, which only this user may enter."""

    folder: Path
    count: int

    def bound(self) -> list[socket.socket]:
        """The sockets of all workers, by number; made once, so that a worker which is replaced has it again.

        Raises ConfigInvalid where the folder cannot hold them.
        """
        made = []
        for number in range(self.count):
            made.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            try:
                made[-1].bind(str(self._path(number)))
            except OSError as error:  # a path over 107 bytes (103 on macOS), a file system without sockets
                for one in made:
                    one.close()
                raise ConfigInvalid(
                    "http.workers",
                    f"several need sockets of their own, and {self.folder} can hold none ({error.strerror or error}).",
                    hint="Set TMPDIR to a short path on a local disk, or http.workers to 1.",
                ) from error
            made[-1].setblocking(False)
        return made

    def message_path(self, number: int) -> str:
        """Where clients whose SSE session lives in worker `number` post their messages, at whichever worker."""
        return f"/messages/{number}/"

    def routes(self, own: int) -> list[Mount]:
        """What worker `own` does with messages for the others."""
        return [
            Mount(self.message_path(number), app=_Beside(self._path(number)))
            for number in range(self.count)
            if number != own
        ]

    def _path(self, number: int) -> Path:
        return self.folder / f"{number}.sock"


class _Beside:
    """Hands a request on to another worker, which looks at all of it anew: who asks, the limits, the Host."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        headers = [(name, value) for name, value in scope["headers"] if name not in _HOP]
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        answer: ASGIApp
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                answer = await self._ask(request.method, target, headers, await request.body())
        except (OSError, TimeoutError, h11.ProtocolError):
            answer = refusal(
                503, "overloaded", "The worker with this session does not answer.", "Connect again.", retry_after=1
            )
        await answer(scope, receive, send)

    async def _ask(self, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes) -> Response:
        reader, writer = await asyncio.open_unix_connection(self._path)
        try:
            there = h11.Connection(h11.CLIENT)
            framing = [(b"content-length", b"%d" % len(body)), (b"connection", b"close")]
            asked = h11.Request(method=method, target=target, headers=headers + framing)
            for event in (asked, h11.Data(data=body), h11.EndOfMessage()):
                writer.write(there.send(event) or b"")
            return await _answer(there, reader)
        finally:
            writer.close()


async def _answer(there: h11.Connection, reader: asyncio.StreamReader) -> Response:
    answer = Response()
    body = b""
    while True:
        event = there.next_event()
        if event is h11.NEED_DATA:
            there.receive_data(await reader.read(65_536))
        elif isinstance(event, h11.Response):
            answer.status_code = event.status_code
            kept = [(name, value) for name, value in event.headers if name not in _HOP | {b"date"}]
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            answer.body = body
            answer.raw_headers = [*kept, (b"content-length", b"%d" % len(body))]
            return answer
