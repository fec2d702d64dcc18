"""The application service: one entry for the MCP tools, the command line and the HTTP API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from folklore.contract.requests import Result, Returns
from folklore.contract.transfer import ExportRequest, ImportRequest
from folklore.errors import FolkloreError
from folklore.lazy import Lazy
from folklore.model import Caller
from folklore.phases import Advance, phase

if TYPE_CHECKING:  # imports the database driver
    from folklore.contract.lines import Lines
    from folklore.memory.context import RequestContext
    from folklore.memory.namespaces import kept
    from folklore.memory.service import operations
    from folklore.memory.transfer import export, importer
    from folklore.memory.usage import UsageRecorder
else:
    operations = Lazy("folklore.memory.service.operations")
    kept = Lazy("folklore.memory.namespaces.kept")
    export = Lazy("folklore.memory.transfer.export")
    importer = Lazy("folklore.memory.transfer.importer")


def _ignore(_operation: str, _error: FolkloreError) -> None:
    """Log no denied access: the caller is the user who runs the process."""


@dataclass(frozen=True, slots=True)
class Service:
    """The operations of one process.

    `open` returns the context of the current request; it waits until database and model are ready and raises
    Unavailable if they cannot be. `caller` and `namespace` describe the current request without waiting. `on_denial`
    receives every error, for the audit log.
    """

    open: Callable[[], Awaitable[RequestContext]]
    caller: Callable[[], Caller]
    namespace: Callable[[], str]
    usage: Callable[[], UsageRecorder]
    on_denial: Callable[[str, FolkloreError], None] = _ignore

    async def call(
        self, request: Returns[Result], report: Advance | None = None
    ) -> Result:
        """Run an operation: open the context of its caller and call its use case. Raises FolkloreError."""
        operation = operations.operation_of(request)
        try:
            names_namespaces = bool(getattr(request, "namespaces", ()))
            if names_namespaces:  # the project counts for nothing
                context = await self.open()
            else:
                context = await self._context()
            if report is not None:
                context = replace(context, report=report)
            result = await operation.use_case()(context, request)
        except FolkloreError as error:
            self.on_denial(operation.request.operation, error)
            raise
        if operation.record is not None:
            operation.record(self, context, request, result)
        return cast("Result", result)

    async def _context(self) -> RequestContext:
        """Open the context of the current request."""
        return await kept.with_kept_names(await self.open())

    async def import_lines(
        self,
        lines: Lines,
        request: ImportRequest,
        steps: Callable[[], tuple[int, int]],
    ) -> None:
        """Import lines, counted in the report of the request; `steps` returns those done, and all. As import_chunks."""
        with phase("Importing") as advance:
            await importer.import_lines(
                await self._context(), lines, request, lambda: advance(*steps())
            )

    async def export(self, request: ExportRequest) -> AsyncGenerator[str, None]:
        """Yield the lines of an export. Raises FolkloreError."""
        async with aclosing(
            export.export_lines(await self._context(), request)
        ) as lines:
            async for line in lines:
                yield line
