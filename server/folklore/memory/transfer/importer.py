"""Import of JSON Lines: lines become checked memories, which are written in batches, each in one transaction."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from folklore.background import in_thread, on_texts
from folklore.contract.lines import Lines, SourceLine, chunks_of
from folklore.contract.memories import ForgetRequest
from folklore.contract.transfer import ImportRequest
from folklore.db.stores.transfer import (
    Batch,
    Link,
    ModelVector,
    Past,
    RequestKey,
    Successor,
    TransferredMemory,
    Transfers,
)
from folklore.errors import ConcurrentChange, FolkloreError, InvalidInput, Refused
from folklore.memory.context import RequestContext
from folklore.memory.context.new_namespaces import require_new_namespace
from folklore.memory.context.secret_guard import guard_draft, guard_fields
from folklore.memory.context.validation import (
    check_cleaned,
    clean_draft,
    detected_language,
)
from folklore.memory.namespaces.kept import kept_name
from folklore.memory.records.batch import namespace_for
from folklore.memory.records.forget import MAX_AT_ONCE, forget
from folklore.memory.transfer.conflicts import (
    ExistingMemories,
    Importer,
    Resolution,
    resolve,
)
from folklore.memory.transfer.imported_vectors import ImportedVectors
from folklore.memory.transfer.json_lines import (
    Header,
    Line,
    LineValue,
    cleaned,
    read_line,
)
from folklore.model import Draft, Relation, Revision
from folklore.new_ids import new_id
from folklore.permissions import (
    may_write_somewhere,
    opens,
    require,
)
from folklore.text import names
from folklore.text.clean import digest
from folklore.text.dates.zones import with_zone

# A batch has at most so many memories or about so many characters; all namespaces together keep so many waiting.
BATCH = 500
_BATCH_CHARACTERS = 2_000_000
_WAITING_CHARACTERS = 8_000_000
# Lines: of a dry run and of relations, something is remembered of each.
_MOST_OF_A_MEMBER = 200_000
_AT_ONCE = 20  # lines that are checked, .3 ms each; tries to write a batch
_TRIES = 5
_PAST_TIMES = (
    "updated_at",
    "forgotten_at",
    "superseded_at",
    "last_recalled_at",
    "changed_at",
)


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
    importer = _Importer(context, request)
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
                await importer.take(line)
                if taken % _AT_ONCE == 0:
                    # the server answers other requests meanwhile
                    await asyncio.sleep(0)
            report.seconds = monotonic() - began
        await importer.finish()
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


class _Importer:
    """A run over a source: checks each line and passes it to the import of its namespace."""

    def __init__(self, context: RequestContext, request: ImportRequest) -> None:
        self.context = context
        self.request = request
        self.report = request.report
        self.transfers = Transfers(context.memory.database)
        self.vectors = ImportedVectors(context.memory, self.transfers, self.report)
        self._namespaces: dict[str, _NamespaceImport] = {}

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
                await self.transfers.create_namespace(namespace)

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
            self.report.ignore(name, _position(source))
        if self.context.caller.access is not None:
            line = replace(line, value=_stated(line.value))
        value = line.value
        if isinstance(value, str):
            self.report.skip(value)
            return line
        secrets = self.context.memory.secrets
        if isinstance(value, tuple):
            for namespace in value:
                guard_fields(
                    {"namespace": namespace.name, "description": namespace.description},
                    secrets,
                )
            return line
        guard_fields({"namespace": line.namespace}, secrets)
        destination = self._destination(line.namespace)
        if isinstance(value, TransferredMemory):
            return Line(self._checked_memory(source, value), destination)
        return Line(self._checked_link(value), destination)

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
            self._namespaces[key] = _NamespaceImport(name, self)
        return self._namespaces[key].name

    def _checked_memory(
        self, source: SourceLine, memory: TransferredMemory
    ) -> TransferredMemory:
        past = memory.past
        secrets = self.context.memory.secrets
        draft, replaced = guard_draft(clean_draft(memory.draft)[0], secrets)
        guard_fields(
            {
                "author": draft.author,
                "agent": past.agent,
                "trust": past.trust,
                "changed_by": past.changed_by,
                "idempotency_keys": tuple(memory.keys),
            },
            secrets,
        )
        self.report.redacted += bool(replaced)
        checked, text = self._checked_draft(draft, past)
        past = self._checked_past(past)
        return TransferredMemory(
            checked,
            past,
            self._usable_vector(memory, checked, source),
            memory.keys,
            text,
            source.number,
            detected_language(checked),
            source.place(),
        )

    def _checked_draft(self, draft: Draft, past: Past) -> tuple[Draft, bytes]:
        """Return a cleaned draft with what an import may state beyond a store, and the digest of its text."""
        context = self.context
        # An export has expired memories too, which a store would refuse.
        checked = check_cleaned(
            replace(draft, expires_at=None),
            prefix="",
            now=context.now,
            zone=context.zone,
        )
        text = digest(checked.content)
        checked = replace(
            checked,
            id=checked.id or _new_id(checked, past, text),
            expires_at=with_zone(draft.expires_at, context.zone, "expires_at"),
            created_at=_past_time(draft.created_at, "created_at", context),
            author=cleaned(draft.author) or None,
        )
        return checked, text

    def _checked_past(self, past: Past) -> Past:
        times: dict[str, Any] = {}
        for name in _PAST_TIMES:
            times[name] = _past_time(getattr(past, name), name, self.context)
        return replace(
            past,
            agent=cleaned(past.agent) or None,
            trust=cleaned(past.trust) or None,
            changed_by=cleaned(past.changed_by) or None,
            **times,
        )

    def _usable_vector(
        self, memory: TransferredMemory, checked: Draft, source: SourceLine
    ) -> ModelVector | None:
        """Return the vector of a memory, without that of other cues; None for the vector of another text."""
        vector = memory.vector
        if vector is None:
            return None
        if checked.content != memory.draft.content:
            self.report.ignore("embedding", _position(source))
            return None
        has_its_cues = bool(checked.cues) and checked.cues == memory.draft.cues
        if vector.cues is not None and not has_its_cues:
            self.report.ignore("embedding.cues", source.place())
            return replace(vector, cues=None)
        return vector

    def _checked_link(self, link: Relation | Revision) -> Relation | Revision:
        context = self.context
        if isinstance(link, Revision):
            fields = {
                "author": link.author,
                "agent": link.agent,
                "reason": link.reason,
                "before": link.before,
            }
            guard_fields(fields, context.memory.secrets)
            return link
        guard_fields(
            {"author": link.author, "relation": link.type}, context.memory.secrets
        )
        # Relations of other systems may lack both.
        author = link.author or context.caller.author
        created_at = _past_time(link.created_at, "created_at", context) or context.now
        return replace(link, author=author, created_at=created_at)


class _NamespaceImport:
    """The part of an import that one namespace receives: memories, and links that wait until these are stored."""

    def __init__(self, name: str, run: _Importer) -> None:
        self.name = name
        self.characters = 0
        self._run = run
        self._id: UUID | None = None
        self._batch: list[TransferredMemory] = []
        self._links: list[Link] = []
        # Their memories were not stored when they were written first.
        self._early: list[Link] = []
        self._dry_run_memories = ExistingMemories() if run.request.dry_run else None

    async def add(self, value: TransferredMemory | Relation | Revision) -> None:
        """Add a memory or a link, and write the batch that it fills."""
        if isinstance(value, TransferredMemory):
            self._batch.append(value)
            self.characters += len(value.draft.content)
            if value.vector is not None:
                self.characters += len(value.vector.vector)
        else:
            self._links.append(value)
        waiting = max(len(self._batch), len(self._links))
        if waiting >= BATCH or self.characters >= _BATCH_CHARACTERS:
            await self.write()

    async def write(self) -> None:
        """Write the memories that wait, then the links."""
        batch = self._batch
        self._batch = []
        self.characters = 0
        links: list[Link] = []
        if batch:
            batch = await self._run.vectors.without_unusable(batch)
            await self._write_memories(batch)
            for memory in batch:
                links += _links_of(memory)
        links += self._links
        self._links = []
        if links:
            await self._write_links(links)

    async def finish(self) -> None:
        """Write the rest, try the early links again, and count those that still lack a memory."""
        await self.write()
        early = self._early
        self._early = []
        for start in range(0, len(early), BATCH):
            await self._write_links(early[start : start + BATCH])
        for link in self._early:
            if isinstance(link, Successor):
                self._run.report.unlinked += 1
            elif isinstance(link, Relation | Revision):
                self._run.report.untied += 1

    async def _write_memories(self, batch: Sequence[TransferredMemory]) -> None:
        """Write a batch and count; if Postgres refuses a value in it, find the line by halving."""
        report = self._run.report
        try:
            resolution, ids = await self._resolve_and_write(batch)
        except InvalidInput as error:
            if len(batch) == 1:
                report.fail(batch[0].line, error, batch[0].place)
                return
            middle = len(batch) // 2
            await self._write_memories(batch[:middle])
            await self._write_memories(batch[middle:])
            return
        new = sum(memory.id in ids for memory in resolution.new)
        overwritten = sum(memory.id in ids for memory in resolution.replaced)
        duplicates = len(batch) - len(resolution.refusals) - new - overwritten
        report.settle(
            self.name, new=new, overwritten=overwritten, duplicates=duplicates
        )
        for memory, reason in resolution.refusals:
            report.fail(memory.line, reason, memory.place)

    async def _resolve_and_write(
        self, batch: Sequence[TransferredMemory]
    ) -> tuple[Resolution, set[UUID]]:
        """Return what becomes of each memory, and the written ids; resolve again if other requests changed the same."""
        for _ in range(_TRIES):
            resolution = await self._resolve(batch)
            memories = [*resolution.new, *resolution.replaced]
            if self._run.request.dry_run or not memories:
                return resolution, {memory.id for memory in memories}
            with suppress(ConcurrentChange):
                return resolution, await self._write(resolution, memories)
        hint = "Import it again: memories that exist are not stored twice."
        raise ConcurrentChange(
            "Other requests keep changing the memories that this import writes.",
            hint=hint,
        )

    async def _resolve(self, batch: Sequence[TransferredMemory]) -> Resolution:
        """Compare a batch with the memories of the namespace. Raises Conflict under the policy `fail`."""
        transfers = self._run.transfers
        policy = self._run.request.on_conflict
        existing = self._dry_run_memories
        if existing is None:
            existing = ExistingMemories()
        present = {}
        namespace = await self._namespace_id()
        if namespace is not None:
            existing.read(await transfers.existing(namespace, batch))
            ids = [memory.id for memory in batch if memory.id in existing.ids]
            if policy == "overwrite" and ids:
                present = await transfers.memories(namespace, ids)
        context = self._run.context
        importer = Importer(context.caller.author, context.now)
        return resolve(batch, existing, present, policy, importer)

    async def _write(
        self, resolution: Resolution, memories: Sequence[TransferredMemory]
    ) -> set[UUID]:
        run = self._run
        caller = run.context.caller
        now = run.context.now
        vectors, pending = await run.vectors.vectors(memories)
        if not opens(caller, self.name) and await self._namespace_id() is None:
            namespaces = run.context.memory.root.namespaces
            await require_new_namespace(namespaces, caller.author, now)
        batch = Batch(
            namespace_for(self.name, memories),
            resolution.new,
            resolution.replaced,
            vectors,
            all_or_nothing=run.request.on_conflict == "fail",
        )
        ids = await run.transfers.write(batch, caller=caller, now=now)
        run.report.without_vector += len(ids & pending)
        return ids

    async def _write_links(self, links: Sequence[Link]) -> None:
        """Write links in one transaction and count them, except those whose memories are not stored yet."""
        namespace = await self._namespace_id()
        fitting = set[int]()
        if self._dry_run_memories is not None:
            fitting = await self._links_that_fit(links, self._dry_run_memories.ids)
        elif namespace is not None:
            fitting = await self._run.transfers.write_links(namespace, links)
        for index, link in enumerate(links):
            if index not in fitting:
                self._early.append(link)
            elif isinstance(link, Relation):
                self._run.report.relations += 1
            elif isinstance(link, Revision):
                self._run.report.revisions += 1

    async def _links_that_fit(self, links: Sequence[Link], ids: set[UUID]) -> set[int]:
        """Return the indices of links whose memories a dry run knows or the database has.

        Revision numbers are not compared.
        """
        needed = [_needed_memories(link) for link in links]
        unknown = set[UUID]().union(*needed) - ids
        if unknown and self._id is not None:
            unknown -= await self._run.transfers.existing_ids(self._id, unknown)
        numbered = enumerate(needed)
        return {index for index, memories in numbered if not memories & unknown}

    async def _namespace_id(self) -> UUID | None:
        if self._id is None:
            self._id = await self._run.transfers.namespace_id(self.name)
        return self._id


def _position(source: SourceLine) -> str:
    """Return the file and the line in it, or the number of the line where it is from no file."""
    return source.place() or f"line {source.number}"


def _past_time(
    value: datetime | None, field: str, context: RequestContext
) -> datetime | None:
    """Return a time of the past in the caller's zone, now for one in the future: the clock of its source was ahead."""
    aware = with_zone(value, context.zone, field)
    if aware is None:
        return None
    return min(aware, context.now)


def _stated(value: LineValue) -> LineValue:
    """Return what a caller with grants may state: not who wrote what, nor what became of it, nor its vector."""
    if isinstance(value, tuple):
        return ()
    if isinstance(value, Relation):
        return replace(value, author=None)
    if isinstance(value, TransferredMemory):
        past = value.past
        if past.forgotten_at or past.superseded_at or past.superseded_by:
            return "forgotten or superseded memory"
        draft = replace(value.draft, author=None)
        return replace(value, draft=draft, past=Past(), vector=None)
    if isinstance(value, Revision):
        return "revision"
    return value


def _links_of(memory: TransferredMemory) -> list[Link]:
    links: list[Link] = []
    for key, request in memory.keys.items():
        links.append(RequestKey(memory.id, key, request))
    if memory.past.superseded_by is not None:
        links.append(Successor(memory.id, memory.past.superseded_by))
    return links


def _needed_memories(link: Link) -> set[UUID]:
    """Return the ids of the memories without which a link cannot be written."""
    if isinstance(link, Relation):
        return {link.from_id, link.to_id}
    if isinstance(link, Revision):
        return {link.memory_id}
    if isinstance(link, Successor):
        return {link.successor_id}
    return set()


def _new_id(draft: Draft, past: Past, text: bytes) -> UUID:
    """Return an id for a line without one: for a dead memory it follows from the line, so that it is known again."""
    if past.forgotten_at is None and past.superseded_at is None:
        return new_id()
    name = f"folklore:dead:{text.hex()}:{draft.created_at}:{draft.source}"
    return uuid5(NAMESPACE_URL, name)
