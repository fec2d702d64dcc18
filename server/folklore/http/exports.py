"""Exports over HTTP: lines in batches, few at once."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from starlette.responses import StreamingResponse

from folklore.errors import Conflict
from folklore.memory.context import RequestContext
from folklore.memory.requests import ExportRequest
from folklore.memory.service import Service
from folklore.memory.transfer.export import export_lines

# Each export holds a connection to the database for as long as its reader takes.
_EXPORTS = 2
_LINES = 200


class Exports:
    """Exports of one worker."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._running = asyncio.Semaphore(_EXPORTS)

    async def answer(self, request: ExportRequest) -> StreamingResponse:
        """Return the lines once the first ones exist: an error before them can still have its own status.

        Raises Conflict while too many run, and what an export raises.
        """
        if self._running.locked():
            raise Conflict(f"{_EXPORTS} exports are running already.", hint="Try again when one of them has ended.")
        batches = self._batches(await self._service.open(), request)
        first = await anext(batches)

        async def whole() -> AsyncIterator[str]:
            async with aclosing(batches):
                yield first
                async for batch in batches:
                    yield batch

        return StreamingResponse(whole(), media_type="application/x-ndjson")

    async def _batches(self, context: RequestContext, request: ExportRequest) -> AsyncGenerator[str, None]:
        """Yield the lines of an export, joined in batches."""
        async with self._running:
            batch: list[str] = []
            async with aclosing(export_lines(context, request)) as lines:
                async for line in lines:
                    batch.append(line)
                    if len(batch) == _LINES:
                        yield "\n".join(batch) + "\n"
                        batch = []
            if batch:
                yield "\n".join(batch) + "\n"
