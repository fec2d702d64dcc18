"""The call of a use case: `Memory` for a request with its facts, `Service` for the current request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, cast

from folklore.callers import Caller
from folklore.contract.requests import Result, Returns
from folklore.contract.transfer import ExportRequest, ImportRequest
from folklore.errors import FolkloreError, InvalidInput
from folklore.memory.operations import operation_of
from folklore.phases import Advance

if TYPE_CHECKING:  # they import the database driver
    from folklore.contract.lines import Lines, SourceLine
    from folklore.memory.context import RequestContext
    from folklore.memory.context.usage import UsageRecorder


def _no_namespace() -> str:
    raise InvalidInput("namespace", "is missing.", hint="Name one.")


def _ignore(_operation: str, _error: FolkloreError) -> None:
    """Log no denied access: the caller is the user who runs the process."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a request beside its arguments: who calls, when, and from where.

    `namespace` returns the namespace of a request that names none, or raises InvalidInput; `project` returns it or
    None. `project_at` returns that of a directory, and is missing where directories are on the caller's machine.
    Work that lasts gives `report` the steps done, and all.
    """

    caller: Caller
    now: datetime
    zone: tzinfo = UTC
    namespace: Callable[[], str] = _no_namespace
    project: Callable[[], str | None] = lambda: None
    project_at: Callable[[str], Awaitable[str]] | None = None
    report: Advance = lambda _done, _all: None


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a process.

    `open` returns the context of a request; it waits until database and model are ready and raises Unavailable if they
    cannot be. `on_denial` receives every error, for the audit log.
    """

    open: Callable[[Facts], Awaitable[RequestContext]]
    usage: Callable[[], UsageRecorder]
    on_denial: Callable[[str, FolkloreError], None] = _ignore

    async def call(self, request: Returns[Result], facts: Facts) -> Result:
        """Run an operation: open the context of its caller and call its use case. Raises FolkloreError."""
        operation = operation_of(request)
        try:
            names_namespaces = bool(getattr(request, "namespaces", ()))
            if names_namespaces:  # the project counts for nothing
                context = await self.open(facts)
            else:
                context = await self._context(facts)
            result = await operation.use_case(context, request)
        except FolkloreError as error:
            self.on_denial(operation.request.operation, error)
            raise
        if operation.recorder is not None:
            operation.record(self, context, request, result)
        return cast("Result", result)

    async def _context(self, facts: Facts) -> RequestContext:
        """Open the context of a request whose project counts."""
        from folklore.memory.namespaces.kept import with_kept_names

        return await with_kept_names(await self.open(facts))

    async def import_lines(
        self,
        lines: Lines,
        request: ImportRequest,
        facts: Facts,
    ) -> None:
        """Import lines, counted in the report of the request, as import_chunks does."""
        from folklore.memory.transfer.importer import import_lines

        await import_lines(await self.open(facts), lines, request)

    async def import_chunks(
        self,
        chunks: AsyncIterator[Sequence[SourceLine]],
        request: ImportRequest,
        facts: Facts,
    ) -> None:
        """Import lines that arrive in chunks, counted in the report of the request. Raises FolkloreError."""
        from folklore.memory.transfer.importer import import_chunks

        await import_chunks(await self.open(facts), chunks, request)

    async def export(
        self, request: ExportRequest, facts: Facts
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of an export. Raises FolkloreError."""
        from folklore.memory.transfer.export import export_lines

        context = await self._context(facts)
        async with aclosing(export_lines(context, request)) as lines:
            async for line in lines:
                yield line


@dataclass(frozen=True, slots=True)
class Service:
    """The memory for the current request: one entry for the MCP tools, the HTTP API and the console.

    `facts` returns those of the current request, and raises Unavailable, and InvalidInput for a fact that is not valid;
    `caller` and `namespace` return two of them alone.
    """

    memory: Memory
    facts: Callable[[], Facts]
    caller: Callable[[], Caller]
    namespace: Callable[[], str]

    async def call(
        self, request: Returns[Result], report: Advance | None = None
    ) -> Result:
        """Run an operation of the current request. Raises FolkloreError."""
        facts = self.facts()
        if report is not None:
            facts = replace(facts, report=report)
        return await self.memory.call(request, facts)

    def export(self, request: ExportRequest) -> AsyncGenerator[str, None]:
        """Yield the lines of an export. Raises FolkloreError."""
        return self.memory.export(request, self.facts())

    def on_denial(self, operation: str, error: FolkloreError) -> None:
        """Log an error of the current request, if it is a denial."""
        self.memory.on_denial(operation, error)
