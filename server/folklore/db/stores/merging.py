"""Merge of two namespaces. Each is on its own shard, so rows are inserted under the other one and deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.database import Database, Session
from folklore.db.stores.audit import NewEntry, log_entry
from folklore.db.stores.changes import Closing, NamespaceTransaction
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.errors import NotFound
from folklore.model import Caller

# Memories that one statement moves, so that it ends before its timeout.
_BATCH = 500


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


class Merge:
    """Transaction that merges one namespace into another; both are locked."""

    def __init__(
        self, session: Session, source: NamespaceInfo, target: NamespaceInfo, caller: Caller, now: datetime
    ) -> None:
        self._session = session
        self._source = source
        self._target = target
        self._caller = caller
        self._now = now

    async def plan(self) -> Plan:
        """Compare the two namespaces. One statement."""
        rows = await self._session.rows("merging/plan", namespace=self._source.id, into=self._target.id)
        return Plan(
            moved=[row["id"] for row in rows if row["state"] is None],
            duplicates={row["id"]: row["duplicate"] for row in rows if row["state"] is None and row["duplicate"]},
            known=[row["id"] for row in rows if row["state"] == "known"],
            differing=[row["id"] for row in rows if row["state"] == "differing"],
        )

    async def move(self, plan: Plan) -> None:
        """Move memories and delete the source. The number of statements grows with batches of 500, not with rows."""
        source = NamespaceTransaction(self._session, self._source.id, self._caller, self._now)
        target = NamespaceTransaction(self._session, self._target.id, self._caller, self._now)
        await self._close_duplicates(source, list(plan.duplicates))
        for language in self._source.languages:
            await target.add_language(language)
        offsets = await self._session.rows("merging/sessions", namespace=self._source.id, into=self._target.id)
        batches = [plan.moved[start : start + _BATCH] for start in range(0, len(plan.moved), _BATCH)]
        for batch in batches:
            await source.record(batch, "move", [], reasons=dict.fromkeys(batch, f"from {self._source.name}"))
            duplicates = {id_: plan.duplicates[id_] for id_ in batch if id_ in plan.duplicates}
            await self._session.rows(
                "merging/memories",
                namespace=self._source.id,
                into=self._target.id,
                ids=list(batch),
                duplicates=list(duplicates),
                of=list(duplicates.values()),
                sessions=[row["session"] for row in offsets],
                positions=[row["position"] for row in offsets],
            )
            await self._session.rows("postings/insert", namespace=self._target.id, ids=list(batch))
            for part in ("embeddings", "revisions", "keys", "usage"):
                await self._copy(part, batch)
        for batch in batches:  # a relation needs both of its memories
            await self._copy("relations", batch)
        await self._delete(plan, batches)
        for namespace, other in ((self._source, self._target), (self._target, self._source)):
            entry = NewEntry(namespace.id, "namespace_merge", amount=len(plan.moved), detail=other.name)
            await log_entry(self._session, entry, caller=self._caller, now=self._now)

    async def _close_duplicates(self, source: NamespaceTransaction, ids: Sequence[UUID]) -> None:
        """Supersede memories before they move; the target has what supersedes them."""
        if ids:
            reasons = dict.fromkeys(ids, "merged")
            await source.record(ids, "supersede", ["superseded_at", "superseded_by"], reasons=reasons)
            await source.close([Closing(id_, superseded_at=self._now) for id_ in ids])

    async def _copy(self, part: str, ids: Sequence[UUID]) -> None:
        await self._session.rows(f"merging/{part}", namespace=self._source.id, into=self._target.id, ids=list(ids))

    async def _delete(self, plan: Plan, batches: Sequence[Sequence[UUID]]) -> None:
        """Delete what was moved, and hide the source with what stayed behind."""
        for batch in batches:
            if plan.known:  # which may name a successor that moved
                await self._session.rows("memories/clear_successor", namespace=self._source.id, ids=list(batch))
            await self._session.rows("postings/delete", namespace=self._source.id, ids=list(batch))
            await self._session.rows("memories/delete", namespace=self._source.id, ids=list(batch))
        await self._session.rows(
            "namespaces/delete", namespace=self._source.id, author=self._caller.author, now=self._now
        )


class Merging:
    """Merges of namespaces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def of(
        self, source: NamespaceInfo, target: NamespaceInfo, *, caller: Caller, now: datetime
    ) -> AsyncIterator[Merge]:
        """Open a transaction with an exclusive lock on both namespaces; commit at the end. Raises NotFound."""
        async with self._database.transaction() as session:
            for namespace in sorted((source, target), key=lambda item: item.id):  # two merges never deadlock
                locked = await session.row("namespaces/lock", namespace=namespace.id)
                if locked is None or locked["deleted_at"] is not None:
                    raise NotFound(f"The namespace {namespace.name} was deleted.")
            yield Merge(session, source, target, caller, now)
