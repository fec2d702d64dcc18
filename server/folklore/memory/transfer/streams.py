"""Export and import: JSON Lines, streamed, so that a file may be larger than memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from itertools import islice
from time import monotonic

from folklore.db.stores.transfer import Transfers
from folklore.errors import InvalidInput, NotFound, Refused
from folklore.memory.context import MemoryContext
from folklore.memory.transfer.formats.line import Line, Lines
from folklore.memory.transfer.importer import BATCH, ImportRequest, Intake
from folklore.memory.transfer.json_lines import header_line, memory_line
from folklore.memory.transfer.report import Report
from folklore.memory.transfer.tied_lines import relation_line, revision_line
from folklore.model import Caller
from folklore.text import names

# Lines with their numbers.
Chunk = list[tuple[int, Line]]


async def export_lines(
    transfers: Transfers, namespaces: Sequence[str], *, now: datetime, embeddings: bool = False
) -> AsyncGenerator[str, None]:
    """The header, then every memory of these namespaces (all, if none is named), as of one moment.

    After the memories of a namespace stand its relations, then its revisions. The order, by namespace, creation and id,
    and the fields' order are always the same, so that an export of an import of an export differs in its header only.
    With `embeddings` each memory has its vector in the active model, unless it owes it.
    Raises NotFound for a namespace that is not there.
    """
    wanted = [names.normalise(name) for name in namespaces]
    async with transfers.snapshot() as snapshot:
        origins = await snapshot.namespaces(wanted or None)
        found = {names.key(origin.name) for origin in origins}
        if missing := [name for name in wanted if names.key(name) not in found]:
            raise NotFound(f"There is no namespace {missing[0]!r}.", hint="`folklore namespaces list` shows them.")
        model = await snapshot.model() if embeddings else None
        yield header_line(now, origins)
        for origin in origins:
            async for entry in snapshot.entries(origin.id, model):
                yield memory_line(origin.name, entry)
            async for relation in snapshot.relations(origin.id):
                yield relation_line(origin.name, relation)
            async for revision in snapshot.revisions(origin.id):
                yield revision_line(origin.name, revision)


async def import_lines(
    library: MemoryContext,
    transfers: Transfers,
    lines: Lines,
    request: ImportRequest,
    *,
    caller: Caller,
    now: Callable[[], datetime],
    zone: tzinfo,
    report: Report,
    told: Callable[[], None] = lambda: None,
) -> None:
    """Store the memories of these lines (see memory/formats), batch by batch, each in one transaction.

    `report` tells what became of the lines.

    A line that cannot be taken is counted and does not stop the others. What is here already stays as it is, unless
    asked otherwise, so that an import that was broken off is simply run again. `told` is called as it goes on.
    Raises Conflict (on_conflict `fail`), Refused, Unavailable; what the report counts as stored stays stored.
    """
    if not (caller.may_write or request.dry_run):
        raise Refused("Folklore is set to read-only; nothing was imported.")
    began = monotonic()
    intake = Intake(library, transfers, request, caller=caller, now=now, zone=zone, report=report)
    try:
        while chunk := await _read_ahead(lines):
            for number, raw in chunk:
                report.lines = number
                report.bytes += len(raw) if isinstance(raw, bytes) else 0
                await intake.take(number, raw)
            report.seconds = monotonic() - began
            told()
        await intake.finish()
    finally:
        report.seconds = monotonic() - began
        told()


async def _read_ahead(lines: Lines) -> Chunk:
    """The next lines, read in a thread that nobody waits for: whoever types them may rather press Ctrl-C."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Chunk] = loop.create_future()

    def read() -> None:
        try:
            chunk = list(islice(lines, BATCH))
        except (OSError, InvalidInput) as error:  # the latter from a document that breaks off
            _hand_over(loop, done, error)
        else:
            _hand_over(loop, done, chunk)

    threading.Thread(target=read, name="import-read", daemon=True).start()
    try:
        return await done
    except OSError as error:
        raise InvalidInput("FILE", f"cannot be read any further ({error.strerror}).") from error


def _hand_over(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[Chunk], outcome: Chunk | OSError | InvalidInput
) -> None:
    def settle() -> None:
        if done.done():  # cancelled meanwhile
            return
        if isinstance(outcome, OSError | InvalidInput):
            done.set_exception(outcome)
        else:
            done.set_result(outcome)

    with suppress(RuntimeError):  # the loop has ended without us
        loop.call_soon_threadsafe(settle)
