"""Relations, revisions and successors of an import: each waits until its memories are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from folklore.db.stores.transfer import TransferredMemory
from folklore.memory.transfer.destination import Destination
from folklore.memory.transfer.report import Report
from folklore.model import Relation, Revision

_BATCH = 500


class PendingLinks:
    """The links of one namespace that are not written yet."""

    def __init__(self, destination: Destination, report: Report) -> None:
        self._destination = destination
        self._report = report
        self._waiting: list[Relation | Revision] = []
        self._early: list[Relation | Revision] = []  # their memories were not stored when they were written first
        self._superseded: dict[UUID, set[UUID]] = {}  # by successor

    def add(self, link: Relation | Revision) -> bool:
        """Add a link; return True if a batch is full."""
        self._waiting.append(link)
        return len(self._waiting) >= _BATCH

    async def write(self) -> None:
        """Write the batch in one transaction, except links whose memories are not stored yet."""
        links, self._waiting = self._waiting, []
        relations = [link for link in links if isinstance(link, Relation)]
        revisions = [link for link in links if isinstance(link, Revision)]
        related, revised = await self._write(relations, revisions)
        self._report.relations += len(related)
        self._report.revisions += len(revised)
        self._early += [link for place, link in enumerate(relations) if place not in related]
        self._early += [link for place, link in enumerate(revisions) if place not in revised]

    async def finish(self) -> None:
        """Write the rest, try the early ones again, and count those that still lack a memory."""
        await self.write()
        early, self._early = self._early, []
        for start in range(0, len(early), _BATCH):
            self._waiting = early[start : start + _BATCH]
            await self.write()
        self._report.untied += len(self._early)
        self._report.unlinked += sum(map(len, self._superseded.values()))

    async def link_superseded(self, batch: Iterable[TransferredMemory]) -> None:
        """Link superseded memories of this batch and of earlier ones with the successors that are stored by now."""
        due: set[UUID] = set()
        for memory in batch:
            due.add(memory.id)
            if (successor := memory.past.superseded_by) is not None:
                due.add(successor)
                self._superseded.setdefault(successor, set()).add(memory.id)
        successors = {old: new for new in due for old in self._superseded.get(new, ())}
        for old in await self._link(successors) if successors else ():
            self._superseded[successors[old]].discard(old)

    async def _link(self, successors: Mapping[UUID, UUID]) -> set[UUID]:
        """Link memories with their successors; return those whose successor is stored."""
        if self._destination.dry_run:
            found = await self._destination.holds(set(successors.values()))
            return {old for old, new in successors.items() if new in found}
        namespace = await self._destination.id()
        return set() if namespace is None else await self._destination.transfers.link_superseded(namespace, successors)

    async def _write(self, relations: Sequence[Relation], revisions: Sequence[Revision]) -> tuple[set[int], set[int]]:
        """Return the places of those whose memories are stored, and write these unless this is a dry run.

        A dry run does not compare revision numbers.
        """
        if not self._destination.dry_run:
            namespace = await self._destination.id()
            if namespace is None:
                return set(), set()
            return await self._destination.transfers.write_links(namespace, relations, revisions)
        ends = {end for relation in relations for end in (relation.from_id, relation.to_id)}
        found = await self._destination.holds(ends | {revision.memory_id for revision in revisions})
        return (
            {place for place, relation in enumerate(relations) if {relation.from_id, relation.to_id} <= found},
            {place for place, revision in enumerate(revisions) if revision.memory_id in found},
        )
