"""A namespace that an import writes to: its id and the memories that it has."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from folklore.db.stores.transfer import TransferredMemory, Transfers
from folklore.memory.requests import OnConflict
from folklore.memory.transfer.conflicts import ExistingMemories, Resolution, resolve


class Destination:
    """A namespace by name. In a dry run it also has the memories that the import would have written."""

    def __init__(self, name: str, transfers: Transfers, *, dry_run: bool) -> None:
        self.name = name
        self.transfers = transfers
        self.dry_run = dry_run
        self._id: UUID | None = None
        self._existing = ExistingMemories()

    async def id(self) -> UUID | None:
        """Return the id of the namespace, if it exists."""
        if self._id is None:
            self._id = await self.transfers.namespace_id(self.name)
        return self._id

    async def holds(self, ids: set[UUID]) -> set[UUID]:
        """Return those of these ids that the namespace has."""
        found = self._existing.ids & ids if self.dry_run else set()
        namespace = await self.id()
        if namespace is None or found == ids:
            return found
        return found | await self.transfers.existing_ids(namespace, ids - found)

    async def resolve(self, batch: Sequence[TransferredMemory], policy: OnConflict) -> Resolution:
        """Compare a batch with the memories of the namespace. Raises Conflict under the policy `fail`."""
        existing = self._existing if self.dry_run else ExistingMemories()
        stored = {}
        if (namespace := await self.id()) is not None:
            existing.read(await self.transfers.existing(namespace, batch))
            ids = [memory.id for memory in batch if memory.id in existing.ids]
            if policy == "overwrite" and ids:
                stored = await self.transfers.memories(namespace, ids)
        return resolve(batch, existing, stored, policy)
