"""Exports and imports over HTTP, few at once. The first line of an import is its request."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from dataclasses import asdict
from functools import partial

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from folklore.contract.lines import decoded
from folklore.contract.requests import read_request
from folklore.contract.transfer import ExportRequest, ImportRequest
from folklore.errors import (
    Conflict,
    FolkloreError,
    InvalidInput,
    Unauthenticated,
    Unavailable,
)
from folklore.memory import Service, TokenWatch
from folklore.server.current_caller import current_caller
from folklore.server.error_responses import failure
from folklore.server.listener import Listener
from folklore.server.requested import current_listener

# At once: an export holds a connection to the database for as long as its reader takes.
_EXPORTS = 2
_IMPORTS = 4
_IMPORTS_OF_ONE = 2
# Lines and, about, characters of a batch.
_LINES = 200
_CHARACTERS = 200_000
# A client may read from a pipe that seldom has something. Its request is there at once, and it learns of an error soon.
_SILENT_SECONDS = 900.0
_PATIENCE = 30.0
# In bytes. The first line has the ids of all sections of the pages: 400,000 at most.
_LONGEST_LINE = 16 * 2**20


class Exports:
    """Exports of one worker, some of each listener. They end with their token."""

    def __init__(self, service: Service, watch: TokenWatch) -> None:
        self._service = service
        self.watch = watch
        self._running = defaultdict[Listener, asyncio.Semaphore](
            lambda: asyncio.Semaphore(_EXPORTS)
        )

    async def answer(self, request: ExportRequest) -> StreamingResponse:
        """Return the lines once the first ones exist: an error before them can still have its own status.

        Raises Conflict while too many run, and what an export raises.
        """
        if self._running[current_listener()].locked():
            raise Conflict(
                f"{_EXPORTS} exports are running already.",
                hint="Try again when one of them has ended.",
            )
        batches = self._batches(request)
        token = current_caller().token
        ended = asyncio.Event()
        first = await anext(batches)

        async def whole() -> AsyncIterator[str]:
            with self.watch.watching(token, ended.set):
                async with aclosing(batches):
                    yield first
                    async for batch in batches:
                        if ended.is_set():
                            raise Unauthenticated(
                                "revoked", "The token ended during the export."
                            )
                        yield batch

        return StreamingResponse(whole(), media_type="application/x-ndjson")

    async def _batches(self, request: ExportRequest) -> AsyncGenerator[str, None]:
        async with self._running[current_listener()]:
            batch: list[str] = []
            async with aclosing(self._service.export(request)) as lines:
                async for line in lines:
                    batch.append(line)
                    if len(batch) == _LINES or len(batch) * len(line) > _CHARACTERS:
                        yield "\n".join(batch) + "\n"
                        batch = []
            if batch:
                yield "\n".join(batch) + "\n"


class Body:
    """The body of a request, read as it arrives; `is_whole` when its end has."""

    def __init__(self, request: Request) -> None:
        self.is_whole = False
        self._stream = request.stream()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield whole lines. Raises InvalidInput, ClientDisconnect."""
        rest = b""
        while data := await self.read():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line
            if len(rest) > _LONGEST_LINE:
                raise InvalidInput(
                    "body", f"has a line of more than {_LONGEST_LINE:,} bytes."
                )
        if rest:
            yield rest

    async def read(self, seconds: float = _SILENT_SECONDS) -> bytes:
        """Return the next bytes, none at the end. Raises ClientDisconnect, for a silent client too."""
        try:
            data = await asyncio.wait_for(anext(self._stream, b""), seconds)
        except TimeoutError:
            raise ClientDisconnect from None
        self.is_whole = not data
        return data


class Imports:
    """Imports of one worker, some of each listener and caller. They end with their token."""

    def __init__(self, service: Service, watch: TokenWatch) -> None:
        self._service = service
        self._watch = watch
        self._running = defaultdict[Listener, Counter[str]](Counter)

    async def answer(self, body: Body) -> Response:
        """Import the lines of a body, and return the counts, or the error once the body is read."""
        with suppress(ClientDisconnect, TimeoutError):
            async with asyncio.timeout(None) as until:
                with self._watch.watching(
                    current_caller().token, partial(until.reschedule, 0)
                ):
                    return await self._answer(body)
        return failure(Unavailable("The request, or its token, ended before its end."))

    async def _answer(self, body: Body) -> Response:
        try:
            return JSONResponse({"result": await self._result(body.lines())})
        except FolkloreError as error:
            self._service.on_denial("import", error)
            with suppress(ClientDisconnect):
                # a client that still sends would not read the answer
                while await body.read(_PATIENCE):
                    pass
            return failure(error)

    async def _result(self, lines: AsyncIterator[bytes]) -> dict[str, object]:
        name = current_caller().author
        running = self._running[current_listener()]
        if running.total() >= _IMPORTS or running[name] >= _IMPORTS_OF_ONE:
            raise Conflict(
                f"{running[name]} imports of yours and {running.total()} in all are running already.",
                hint="Try again when one of them has ended.",
            )
        running[name] += 1
        try:
            async with asyncio.timeout(_PATIENCE):
                request = read_request(ImportRequest, await anext(lines, b""))
            chunks = ([decoded(line)] async for line in lines)
            service = self._service
            await service.memory.import_chunks(chunks, request, service.facts())
        finally:
            running -= Counter([name])
        return asdict(request.report)
