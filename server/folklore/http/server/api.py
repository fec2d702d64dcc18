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
from folklore.http.error_responses import Path, failure
from folklore.http.limits import IMPORT_PATH
from folklore.http.transfers import Body, Exports, Imports
from folklore.memory import Service
from folklore.phases import Advance

# What nginx logs for a client that left before its answer.
_CLIENT_CLOSED_REQUEST = 499


def api_routes(service: Service, exports: Exports) -> list[Route]:
    """Return the routes of the API."""
    imports = Imports(service, exports.watch)

    async def call(request: Request) -> Response:
        name = request.path_params["operation"]
        try:
            if (operation := OPERATIONS.get(name)) is None:
                listed = ", ".join(OPERATIONS)
                raise NotFound(
                    f"There is no operation {name[:60]!r}.", hint=f"There are {listed}."
                )
            parsed = read_request(operation, await request.body())
        except FolkloreError as error:
            service.on_denial("api", error)
            return failure(error)
        if not parsed.lasting:
            return await _while_connected(request, answer(parsed))
        signs = [b""]

        def report(done: int, total: int) -> None:
            signs[0] = b'{"progress": [%d, %d]}\n' % (done, total)

        return await _alive(answer(parsed, report), signs)

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
            return await exports.answer(
                read_request(ExportRequest, await request.body())
            )
        except FolkloreError as error:
            service.on_denial("export", error)
            return failure(error)

    async def import_(request: Request) -> Response:
        body = Body(request)
        return await _alive(imports.answer(body), [b""], lambda: body.is_whole)

    return [
        Path("/api/export", export, methods=["POST"]),
        Path(IMPORT_PATH, import_, methods=["POST"]),
        Path("/api/{operation}", call, methods=["POST"]),
    ]


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
    signs: list[bytes],
    is_received: Callable[[], bool] = lambda: True,
) -> Response:
    """Return an answer that may take hours: if it takes more than a second, signs of life before it in each second.

    A sign is the progress in `signs`, or a space, which JSON allows before a value. They begin when the request
    `is_received`. Ending them cancels the work.
    """
    task = asyncio.create_task(answering)
    while not (await asyncio.wait({task}, timeout=1))[0]:
        if is_received():
            break
    else:
        return task.result()

    async def whole() -> AsyncIterator[bytes]:
        try:
            while not (await asyncio.wait({task}, timeout=1))[0]:
                sign, signs[0] = signs[0], b""
                yield sign or b" "
            yield bytes(task.result().body)
        finally:
            task.cancel()

    return StreamingResponse(whole(), media_type="application/json")
