"""The part of an import that one namespace receives: memories in batches, and links when these are stored."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from folklore.contract.transfer import ImportRequest
from folklore.db.stores.transfer import (
    Batch,
    Link,
    RequestKey,
    Successor,
    TransferredMemory,
    Transfers,
)
from folklore.errors import ConcurrentChange, InvalidInput
from folklore.memory.context import RequestContext
from folklore.memory.context.new_namespaces import require_new_namespace
from folklore.memory.records.batch import namespace_for
from folklore.memory.transfer.conflicts import (
    ExistingMemories,
    ImportAuthor,
    Resolution,
    resolve,
)
from folklore.memory.transfer.imported_vectors import ImportedVectors
from folklore.model import Relation, Revision
from folklore.permissions import opens

# A batch has at most so many memories or about so many characters.
BATCH = 500
_BATCH_CHARACTERS = 2_000_000
_TRIES = 5  # to write a batch


@dataclass(frozen=True, slots=True)
class ImportRun:
    """An import as its parts share it: the context of its caller, the request, the tables, and the vectors."""

    context: RequestContext
    request: ImportRequest
    transfers: Transfers
    vectors: ImportedVectors


class NamespaceImport:
    """The part of an import that one namespace receives: memories, and links that wait until these are stored."""

    def __init__(self, name: str, run: ImportRun) -> None:
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
                self._run.request.report.unlinked += 1
            elif isinstance(link, Relation | Revision):
                self._run.request.report.untied += 1

    async def _write_memories(self, batch: Sequence[TransferredMemory]) -> None:
        """Write a batch and count; if Postgres refuses a value in it, find the line by halving."""
        report = self._run.request.report
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
        importer = ImportAuthor(context.caller.author, context.now)
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
        run.request.report.without_vector += len(ids & pending)
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
                self._run.request.report.relations += 1
            elif isinstance(link, Revision):
                self._run.request.report.revisions += 1

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
