"""Relations and revisions of an import: they wait until their memories are here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from folklore.db.stores.transfer import Transfers
from folklore.memory.transfer.pending_successors import Here
from folklore.memory.transfer.tied_lines import TiedLine
from folklore.model import Relation, Revision

_BATCH = 500


class Ties:
    """What waits in each namespace; those whose memories have not come yet are tried again at the end."""

    def __init__(
        self, transfers: Transfers, id_of: Callable[[str], Awaitable[UUID | None]], here: Here, dry_run: bool
    ) -> None:
        self._transfers = transfers
        self._id_of = id_of
        self._here = here
        self._dry_run = dry_run
        self._waiting: dict[str, list[Relation | Revision]] = {}
        self._left: dict[str, list[Relation | Revision]] = {}
        self.relations = 0
        self.revisions = 0

    @property
    def open(self) -> int:
        """How many belong to memories that are not here."""
        return sum(len(ties) for ties in self._left.values())

    def take(self, name: str, line: TiedLine) -> bool:
        """Let it wait; true when a batch waits, which goes in once the memories before it are settled."""
        waiting = self._waiting.setdefault(name, [])
        waiting.append(line.tie)
        return len(waiting) >= _BATCH

    async def settle(self, name: str) -> None:
        """Write what waits in a namespace, as far as its memories are here. One transaction."""
        ties = self._waiting.pop(name, [])
        relations = [tie for tie in ties if isinstance(tie, Relation)]
        revisions = [tie for tie in ties if isinstance(tie, Revision)]
        tied, past = await self._tied(name, relations, revisions)
        self.relations += len(tied)
        self.revisions += len(past)
        left = self._left.setdefault(name, [])
        left += [tie for place, tie in enumerate(relations) if place not in tied]
        left += [tie for place, tie in enumerate(revisions) if place not in past]

    async def finish(self) -> None:
        """Write the rest, and once more what was too early."""
        for name in list(self._waiting):
            await self.settle(name)
        for name, ties in list(self._left.items()):
            del self._left[name]
            for start in range(0, len(ties), _BATCH):
                self._waiting[name] = ties[start : start + _BATCH]
                await self.settle(name)

    async def _tied(
        self, name: str, relations: Sequence[Relation], revisions: Sequence[Revision]
    ) -> tuple[set[int], set[int]]:
        """The places of those whose memories are here, which are written unless this is a dry run.

        A dry run does not know how many revisions a memory has behind it.
        """
        if not self._dry_run:
            namespace = await self._id_of(name)
            return (set(), set()) if namespace is None else await self._transfers.tie(namespace, relations, revisions)
        ends = {end for tie in relations for end in (tie.from_id, tie.to_id)}
        here = await self._here(name, ends | {tie.memory_id for tie in revisions})
        return (
            {place for place, tie in enumerate(relations) if {tie.from_id, tie.to_id} <= here},
            {place for place, tie in enumerate(revisions) if tie.memory_id in here},
        )
