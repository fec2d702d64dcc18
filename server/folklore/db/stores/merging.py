"""Merge of two namespaces. Each is on its own shard, so rows are inserted under the other one and deleted."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.callers import Caller
from folklore.db.database import Session
from folklore.db.store import Store, Transaction, column, many
from folklore.db.stores.changes import Closing, NamespaceTransaction, Superseded
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import NotFound
from folklore.phases import Advance

# Memories that one statement moves, so that it ends before its timeout.
_BATCH = 500
# The reason in the revision of a memory that was superseded because it was merged into another one.
MERGED = "merged"


@dataclass(frozen=True, slots=True)
class Plan:
    """Memories by what becomes of them.

    `duplicates` are those of `moved` whose text the target has, each with the memory of this text. `known` are in both
    namespaces under one id, `differing` too, with another text or state.
    """

    moved: Sequence[UUID]
    duplicates: Mapping[UUID, UUID]
    known: Sequence[UUID]
    differing: Sequence[UUID]


class Merge(Transaction):
    """Transaction that moves memories from one namespace into another; both are locked."""

    moved = column(UUID)
    superseded = many(Superseded, reason=MERGED)

    def __init__(
        self,
        session: Session,
        source: NamespaceInfo,
        target: NamespaceInfo,
        caller: Caller,
        now: datetime,
    ) -> None:
        super().__init__(
            session, namespace=source.id, into=target.id, author=caller.author, now=now
        )
        self.source = NamespaceTransaction(session, source.id, caller, now)
        self.target = NamespaceTransaction(session, target.id, caller, now)
        self._from = source
        self._into = target

    async def plan(self, only: Sequence[UUID] | None = None) -> Plan:
        """Compare the memories of the source, or some of them, with those of the target. One statement."""
        moved = []
        duplicates = {}
        known = []
        differing = []
        for row in await self.rows("merging/plan", ids=only):
            if row["state"] == "known":
                known.append(row["id"])
            elif row["state"] == "differing":
                differing.append(row["id"])
            else:
                moved.append(row["id"])
                if row["duplicate"]:
                    duplicates[row["id"]] = row["duplicate"]
        return Plan(moved, duplicates, known, differing)

    async def move(self, plan: Plan, advance: Advance) -> None:
        """Move memories. The number of statements grows with batches of 500, not with rows."""
        await self._close_duplicates(list(plan.duplicates))
        for language in self._from.languages:
            await self.target.add_language(language=language)
        rows = await self.rows("merging/sessions")
        sessions = {
            "sessions": [row["session"] for row in rows],
            "positions": [row["position"] for row in rows],
        }
        starts = range(0, len(plan.moved), _BATCH)
        batches = [plan.moved[start : start + _BATCH] for start in starts]
        for number, batch in enumerate(batches):
            advance(number, len(batches))
            reasons = dict.fromkeys(batch, reason_of(self._from.name))
            await self.source.record(batch, "move", [], reasons=reasons)
            duplicates = [id_ for id_ in batch if id_ in plan.duplicates]
            of = [plan.duplicates[id_] for id_ in duplicates]
            await self._insert(batch, duplicates=duplicates, of=of, **sessions)
        for batch in batches:  # a relation needs both of its memories
            await self.rows("merging/relations", ids=batch)
        await self.rows("merging/clear_successors", namespace=self._into.id)
        for batch in batches:
            await self.rows("memories/clear_successor", ids=batch)
            await self.rows("postings/delete", ids=batch)
            await self.rows("memories/delete", ids=batch)
        await self.target.audit(
            "namespace_merge", amount=len(plan.moved), detail=self._from.name
        )

    async def _insert(self, batch: Sequence[UUID], **values: object) -> None:
        """Insert memories into the target, with the rows that belong to each alone."""
        await self.rows("merging/memories", ids=batch, **values)
        await self.rows("postings/insert", namespace=self._into.id, ids=batch)
        for part in ("embeddings", "revisions", "keys", "usage", "injections"):
            await self.rows(f"merging/{part}", ids=batch)

    async def delete_source(self) -> None:
        """Hide the source with what stayed behind, but for its audit log, which moves. Three statements."""
        await self.rows("merging/audit")
        await self.rows("namespaces/erase_audit")
        await self.rows("namespaces/delete")

    async def _close_duplicates(self, ids: Sequence[UUID]) -> None:
        """Supersede memories before they move; the target has what supersedes them."""
        if ids:
            reasons = dict.fromkeys(ids, MERGED)
            await self.source.record(
                ids, "supersede", ["superseded_at", "superseded_by"], reasons=reasons
            )
            await self.source.close(
                closings=[Closing(id_, superseded_at=self.source.now) for id_ in ids]
            )


def reason_of(name: str) -> str:
    """Return the reason in the revisions of memories that move from a namespace."""
    return f"from {name}"


class Merging(Store):
    """Merges of namespaces."""

    @asynccontextmanager
    async def of(
        self,
        source: NamespaceInfo,
        target: NamespaceInfo,
        *,
        caller: Caller,
        now: datetime,
        restore: bool = False,
    ) -> AsyncIterator[Merge]:
        """Open a transaction with an exclusive lock on both namespaces; commit at the end.

        `restore` restores the target first. Raises NotFound, or ConcurrentChange if its name is in use.
        """
        async with self._database.transaction() as session:
            locked = {}
            # two merges never deadlock
            for namespace in sorted((source, target), key=lambda item: item.id):
                locked[namespace.id] = await session.row(
                    "namespaces/lock", namespace=namespace.id
                )
            # after the lock, as an erasure takes it before the row too
            if restore:
                await session.rows("namespaces/restore", namespace=target.id)
            for namespace in (source, target):
                row = locked[namespace.id]
                is_restored = restore and namespace == target
                is_deleted = row is not None and row["deleted_at"] is not None
                if row is None or (is_deleted and not is_restored):
                    raise NotFound(f"The namespace {namespace.name} was deleted.")
            yield Merge(session, source, target, caller, now)
