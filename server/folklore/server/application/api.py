"""The HTTP API: POST /api/<operation> with a request as JSON, answered by its result as JSON; an export by its lines.

Host and Origin of the requests have been checked.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from folklore.contract.operations import OPERATIONS
from folklore.contract.requests import (
    Request as OperationRequest,
    Returns,
    read_request,
    result_json,
)
from folklore.contract.transfer import ExportRequest
from folklore.errors import FolkloreError, NotFound
from folklore.memory import Service
from folklore.phases import Advance
from folklore.server.error_responses import Path, failure
from folklore.server.limits import IMPORT_PATH
from folklore.server.transfers import Body, Exports, Imports

# What nginx logs for a client that left before its answer.
_CLIENT_CLOSED_REQUEST = 499


def api_routes(service: Service, exports: Exports) -> list[Route]:
    """Return the routes of the API."""
    imports = Imports(service, exports.watch)

    async def call(request: Request) -> Response:
        try:
            operation = _operation(request.path_params["operation"])
            parsed = read_request(operation, await request.body())
        except FolkloreError as error:
            service.on_denial("api", error)
            return failure(error)
        if not parsed.lasting:
            return await _while_connected(request, answer(parsed))
        signs = SignsOfLife()
        return await _alive(answer(parsed, signs.report), signs)

    async def answer(
        parsed: OperationRequest, report: Advance | None = None
    ) -> Response:
        try:
            result: object = await service.call(cast("Returns[object]", parsed), report)
        except FolkloreError as error:
            return failure(error)
        return JSONResponse({"result": result_json(parsed, result)})

    async def export(request: Request) -> Response:
        try:
            parsed = read_request(ExportRequest, await request.body())
            return await exports.answer(parsed)
        except FolkloreError as error:
            service.on_denial("export", error)
            return failure(error)

    async def import_(request: Request) -> Response:
        body = Body(request)
        return await _alive(imports.answer(body), SignsOfLife(), lambda: body.is_whole)

    return [
        Path("/api/export", export, methods=["POST"]),
        Path(IMPORT_PATH, import_, methods=["POST"]),
        Path("/api/{operation}", call, methods=["POST"]),
    ]


def _operation(name: str) -> type[OperationRequest]:
    """Return the request of an operation. Raises NotFound."""
    operation = OPERATIONS.get(name)
    if operation is None:
        raise NotFound(
            f"There is no operation {name[:60]!r}.",
            hint=f"There are {', '.join(OPERATIONS)}.",
        )
    return operation


class SignsOfLife:
    """Signs of life before an answer that takes long: the progress, or a space, which JSON allows before a value."""

    def __init__(self) -> None:
        self._progress = b""

    def report(self, done: int, total: int) -> None:
        """Let the next sign be this progress."""
        self._progress = b'{"progress": [%d, %d]}\n' % (done, total)

    def take(self) -> bytes:
        """Return the next sign; each progress is sent once."""
        progress = self._progress
        self._progress = b""
        return progress or b" "


async def _while_connected(
    request: Request, answering: Coroutine[Any, Any, Response]
) -> Response:
    """Return an answer. If the client disconnects before it, the work is cancelled: nobody would read the answer.

    The body of the request has been read.
    """
    work = asyncio.create_task(answering)
    disconnected = asyncio.create_task(_disconnected(request))
    tasks = {work, disconnected}
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        return Response(status_code=_CLIENT_CLOSED_REQUEST)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _alive(
    answering: Coroutine[Any, Any, Response],
    signs: SignsOfLife,
    is_received: Callable[[], bool] = lambda: True,
) -> Response:
    """Return an answer that may take hours: if it takes more than a second, signs of life before it in each second.

    They begin when the request `is_received`. Ending them cancels the work.
    """
    task = asyncio.create_task(answering)
    while not await _is_done(task):
        if is_received():
            return StreamingResponse(
                _with_signs(task, signs), media_type="application/json"
            )
    return task.result()


async def _with_signs(
    task: asyncio.Task[Response], signs: SignsOfLife
) -> AsyncIterator[bytes]:
    try:
        while not await _is_done(task):
            yield signs.take()
        yield bytes(task.result().body)
    finally:
        task.cancel()


async def _is_done(task: asyncio.Task[Response]) -> bool:
    """Wait up to a second for a task; return whether it is done."""
    done, _ = await asyncio.wait({task}, timeout=1)
    return bool(done)
