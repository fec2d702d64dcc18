"""Superseded memories of an import: they wait until their successors have arrived."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from uuid import UUID

from folklore.db.stores.transfer import Transfers
from folklore.db.stores.transfer_rows import Arrival

# Which of these memories there are in a namespace, or would be had a dry run written.
Here = Callable[[str, set[UUID]], Awaitable[set[UUID]]]


class Successors:
    """Who waits for a successor in each namespace. A dry run asks `here` for what a real one would find."""

    def __init__(
        self, transfers: Transfers, id_of: Callable[[str], Awaitable[UUID | None]], here: Here, dry_run: bool
    ) -> None:
        self._transfers = transfers
        self._id_of = id_of
        self._here = here
        self._dry_run = dry_run
        self._waiting: dict[str, dict[UUID, set[UUID]]] = {}  # by namespace and successor

    @property
    def open(self) -> int:
        """How many wait for one that has not come."""
        return sum(len(old) for waiting in self._waiting.values() for old in waiting.values())

    async def link(self, name: str, arrivals: Iterable[Arrival]) -> None:
        """Join the superseded of this batch, and of earlier ones, with successors that are here by now."""
        waiting = self._waiting.setdefault(name, {})
        due: set[UUID] = set()
        for arrival in arrivals:
            due.add(arrival.id)
            if (successor := arrival.past.superseded_by) is not None:
                due.add(successor)
                waiting.setdefault(successor, set()).add(arrival.id)
        links = {old: new for new in due for old in waiting.get(new, ())}
        for old in await self._linked(name, links) if links else ():
            waiting[links[old]].discard(old)

    async def _linked(self, name: str, links: dict[UUID, UUID]) -> set[UUID]:
        if self._dry_run:
            here = await self._here(name, set(links.values()))
            return {old for old, new in links.items() if new in here}
        namespace = await self._id_of(name)
        return set() if namespace is None else await self._transfers.link(namespace, links)
