"""Import of JSON Lines: lines become checked memories, which are written in batches, each in one transaction."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic

from folklore.background import in_thread, on_texts
from folklore.contract.lines import Lines, SourceLine, chunks_of
from folklore.contract.memories import ForgetRequest
from folklore.contract.transfer import ImportRequest
from folklore.db.stores.transfer import TransferredMemory, Transfers
from folklore.errors import FolkloreError, InvalidInput, Refused
from folklore.memory.context import RequestContext
from folklore.memory.context.secret_guard import guard_fields
from folklore.memory.namespaces.kept import kept_name
from folklore.memory.records.forget import MAX_AT_ONCE, forget
from folklore.memory.transfer.imported_vectors import ImportedVectors
from folklore.memory.transfer.json_lines import Header, Line, read_line
from folklore.memory.transfer.line_checks import (
    LineChecks,
    position_of,
    stated_by_member,
)
from folklore.memory.transfer.namespace_import import BATCH, ImportRun, NamespaceImport
from folklore.permissions import may_write_somewhere, require
from folklore.text import names

# Characters that wait in all namespaces together.
_WAITING_CHARACTERS = 8_000_000
# Lines of an import by a caller with grants: a dry run and relations keep something of each in memory.
_MOST_OF_A_MEMBER = 200_000
_AT_ONCE = 20  # lines that are checked, .3 ms each


async def import_lines(
    context: RequestContext,
    lines: Lines,
    request: ImportRequest,
) -> None:
    """Store the memories of these lines as import_chunks does; read them in a thread."""

    async def chunks() -> AsyncIterator[list[SourceLine]]:
        source = chunks_of(lines, BATCH)
        # A daemon thread, which may wait for a terminal: Ctrl-C must not wait for it.
        while chunk := await in_thread(lambda: next(source, None), "import-read"):
            yield chunk

    await import_chunks(context, chunks(), request)


async def import_chunks(
    context: RequestContext,
    chunks: AsyncIterator[Sequence[SourceLine]],
    request: ImportRequest,
) -> None:
    """Store the memories of these lines batch by batch, and count in the report of the request.

    A bad line is counted and does not stop the others. An existing memory stays as it is unless the request says
    otherwise, so that an interrupted import can simply be repeated. A caller with grants is the author of everything,
    and states neither the past of a memory nor its vector. Several imports may share a report. Raises Conflict
    (on_conflict `fail`), Refused, Unavailable; memories that the report counts as stored stay stored.
    """
    if not (may_write_somewhere(context.caller) or request.dry_run):
        raise Refused("You may write to no namespace here; nothing was imported.")
    report = request.report
    taken = 0
    began = monotonic() - report.seconds
    if request.namespace is not None:
        kept = await kept_name(context, names.normalise(request.namespace))
        request = request.model_copy(update={"namespace": kept})
    whole_import = _Import(context, request)
    try:
        await _forget_removed(context, request)
        async for chunk in chunks:
            for line in chunk:
                report.lines += 1
                taken += 1  # in this import, whatever the report had before
                if taken > _MOST_OF_A_MEMBER and context.caller.access is not None:
                    raise InvalidInput(
                        "FILE",
                        f"has more than {_MOST_OF_A_MEMBER:,} lines.",
                        hint="Divide it.",
                    )
                report.bytes += _size(line)
                await whole_import.take(line)
                if taken % _AT_ONCE == 0:
                    # the server answers other requests meanwhile
                    await asyncio.sleep(0)
            report.seconds = monotonic() - began
        await whole_import.finish()
        if report.without_vector:
            context.note_pending()
    finally:
        context.memory.changed()
        report.seconds = monotonic() - began


async def _forget_removed(context: RequestContext, request: ImportRequest) -> None:
    """Forget the memories of sections that are no longer in their pages, 1,000 in one transaction; undo restores them.

    Only memories that an import of the same origin made are affected, and only under the policy `overwrite`. Before the
    import: a section that moved to another page has the same text, which is stored once.
    """
    pages = request.pages
    if pages is None or request.on_conflict != "overwrite":
        return
    transfers = Transfers(context.memory.database)
    name = names.normalise(request.namespace or context.namespace())
    namespace = await transfers.namespace_id(name)
    if namespace is None:
        return
    ids = []
    for id_, page in await transfers.imported(
        namespace=namespace, origin=pages.origin, below=pages.below
    ):
        if id_ not in pages.ids and page not in pages.unread:
            ids.append(id_)
    request.report.removed += len(ids)
    if request.dry_run:
        return
    for start in range(0, len(ids), MAX_AT_ONCE):
        batch = tuple(ids[start : start + MAX_AT_ONCE])
        await forget(context, ForgetRequest(ids=batch, namespaces=(name,)))


def _size(line: SourceLine) -> int:
    """Return the bytes of a line; 0 for one that could not be read."""
    if isinstance(line.raw, bytes):
        return len(line.raw)
    return 0


class _Import:
    """A run over a source: checks each line and passes it to the import of its namespace."""

    def __init__(self, context: RequestContext, request: ImportRequest) -> None:
        self.context = context
        self.request = request
        self.report = request.report
        self._checks = LineChecks(context, request.report)
        transfers = Transfers(context.memory.database)
        vectors = ImportedVectors(context.memory, transfers, request.report)
        self._run = ImportRun(context, request, transfers, vectors)
        self._namespaces: dict[str, NamespaceImport] = {}

    async def take(self, source: SourceLine) -> None:
        """Read one line, and write the batch that it fills."""
        try:
            line = await on_texts(partial(self._read, source), _size(source))
        except FolkloreError as error:
            self.report.fail(source.number, error, source.place(error))
            return
        if line is None or isinstance(line.value, str):
            return
        if isinstance(line.value, tuple):
            self.report.headers += 1
            await self._create_namespaces(line.value)
            return
        assert line.namespace is not None
        namespaces = self._namespaces
        await namespaces[names.key(line.namespace)].add(line.value)
        waiting = sum(namespace.characters for namespace in namespaces.values())
        if waiting >= _WAITING_CHARACTERS:
            for namespace in namespaces.values():
                await namespace.write()

    async def _create_namespaces(self, header: Header) -> None:
        if not (self.request.namespace or self.request.dry_run):
            for namespace in header:
                await self._run.transfers.create_namespace(namespace)

    async def finish(self) -> None:
        """Write the rest."""
        for namespace in self._namespaces.values():
            await namespace.finish()

    def _read(self, source: SourceLine) -> Line | None:
        """Return a checked line with its destination, None for an empty line. Raises InvalidInput, Refused."""
        raw = source.raw
        if isinstance(raw, InvalidInput):
            raise raw
        if not raw.strip():
            return None
        line = read_line(raw)
        for name in line.ignored:
            self.report.ignore(name, position_of(source))
        if self.context.caller.access is not None:
            line = replace(line, value=stated_by_member(line.value))
        value = line.value
        if isinstance(value, str):
            self.report.skip(value)
            return line
        if isinstance(value, tuple):
            self._checks.check_header(value)
            return line
        guard_fields({"namespace": line.namespace}, self.context.memory.secrets)
        destination = self._destination(line.namespace)
        if isinstance(value, TransferredMemory):
            return Line(self._checks.checked_memory(source, value), destination)
        return Line(self._checks.checked_link(value), destination)

    def _destination(self, stated: str | None) -> str:
        """Return the name of the namespace for a line. Of several spellings of one name the first is used."""
        request = self.request
        name = names.new(self.request.namespace or stated or self.context.namespace())
        key = names.key(name)
        if key not in self._namespaces:
            try:
                require(self.context.caller, name, "writer", dry_run=request.dry_run)
            except Refused as error:  # which would be counted as a secret
                raise InvalidInput(
                    "namespace", error.message, hint=error.hint
                ) from None
            self._namespaces[key] = NamespaceImport(name, self._run)
        return self._namespaces[key].name
