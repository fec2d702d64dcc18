"""Memories on their way between databases: read out in one snapshot, written in with what they have lived through."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import asyncpg

from folklore.db.database import Database, Session
from folklore.db.rows import relation_of, revision_of
from folklore.db.stores.audit import WriteEntry, log_write
from folklore.db.stores.changes import CHANGEABLE, NamespaceTransaction
from folklore.db.stores.memories import Vectors, index
from folklore.db.stores.models import KnownModel, active_model
from folklore.db.stores.namespaces import NewNamespace, ensure_namespace
from folklore.db.stores.planner_statistics import PlannerStatistics
from folklore.db.stores.transfer_rows import (
    Arrival,
    Entry,
    arrivals_json,
    carried_of,
    entry_of,
    relations_json,
    revisions_json,
)
from folklore.errors import Conflict
from folklore.model import Caller, Relation, Revision


@dataclass(frozen=True, slots=True)
class Origin:
    """A namespace as the database it comes from knows it."""

    id: UUID
    name: str
    language: str
    created_at: datetime
    created_by: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Present:
    """A memory in the database that has an arriving id, text or idempotency key.

    With `asked`, a store here used the key: the key stays with this memory even if an import replaces its row.
    """

    id: UUID
    digest: bytes
    key: str | None
    alive: bool
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """What goes into one namespace in one transaction; the vectors are those of `fresh`, then of `replacing`."""

    fresh: Sequence[Arrival]
    replacing: Sequence[Arrival]
    vectors: Vectors | None


class Snapshot:
    """One moment of a database, read within one transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def namespaces(self, names: Sequence[str] | None) -> list[Origin]:
        """These namespaces, or all, in an order that does not depend on the database's collation."""
        rows = await self._session.rows("transfer_namespaces", names=None if names is None else list(names))
        return sorted((_origin(row) for row in rows), key=lambda origin: origin.name)

    async def relations(self, namespace: UUID) -> AsyncIterator[Relation]:
        """Every relation of a namespace, through a cursor."""
        async for row in self._through("transfer_relations", namespace=namespace):
            yield relation_of(row)

    async def revisions(self, namespace: UUID) -> AsyncIterator[Revision]:
        """Every revision of a namespace, through a cursor."""
        async for row in self._through("transfer_revisions", namespace=namespace):
            yield revision_of(row)

    async def model(self) -> KnownModel | None:
        """The model that counts; None while nothing was ever embedded."""
        return await active_model(self._session)

    async def entries(self, namespace: UUID, model: KnownModel | None = None) -> AsyncIterator[Entry]:
        """Every memory of a namespace by creation and id, through a cursor: memory stays flat whatever its size.

        With a model, each carries the vector it has there.
        """
        if model is None:
            async for row in self._through("transfer", namespace=namespace, ids=None):
                yield entry_of(row)
            return
        async for row in self._through("transfer_vectors", namespace=namespace, ids=None, model=model.id):
            carried = None if row["vector"] is None else carried_of(row["vector"], model)
            yield replace(entry_of(row), carried=carried)

    async def _through(self, cursor: str, /, **values: object) -> AsyncIterator[asyncpg.Record]:
        # Each has a name of its own: what a `fetch` brings is remembered with the statement.
        await self._session.rows(f"{cursor}_open", **values)
        while rows := await self._session.rows(f"{cursor}_fetch"):
            for row in rows:
                yield row
        await self._session.rows(f"{cursor}_close")


class Transfers:
    """The statements of export and import."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._statistics = PlannerStatistics(database)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """A moment to read from for as long as the block takes."""
        async with self._database.snapshot() as session:
            yield Snapshot(session)

    async def active_model(self) -> KnownModel | None:
        """The model that counts; None while nothing was ever embedded. One statement."""
        async with self._database.session() as session:
            return await active_model(session)

    async def origin(self, name: str) -> Origin | None:
        """The namespace of this name, if it is here."""
        async with self._database.session() as session:
            row = await session.row("transfer_namespaces", names=[name])
        return None if row is None else _origin(row)

    async def settle(self, origin: Origin) -> None:
        """Make a namespace with the properties it had elsewhere, unless one of its name is here."""
        async with self._database.session() as session:
            await session.rows(
                "transfer_namespace_insert",
                id=origin.id,
                name=origin.name,
                description=origin.description,
                language=origin.language,
                created_at=origin.created_at,
                created_by=origin.created_by,
            )

    async def present(self, namespace: UUID, arrivals: Iterable[Arrival]) -> list[Present]:
        """What is here already of a batch. One statement."""
        batch = [arrival.prepared for arrival in arrivals]
        async with self._database.session() as session:
            rows = await session.rows(
                "transfer_known",
                namespace=namespace,
                ids=[item.id for item in batch],
                digests=[item.digest for item in batch],
                keys=[key for item in batch if (key := item.draft.idempotency_key) is not None],
            )
        return [
            Present(row["id"], bytes(row["digest"]), row["idempotency_key"], row["alive"], row["asked"]) for row in rows
        ]

    async def here(self, namespace: UUID, ids: Iterable[UUID]) -> set[UUID]:
        """Which of these memories are in the namespace. One statement."""
        async with self._database.session() as session:
            rows = await session.rows("transfer_known", namespace=namespace, ids=list(ids), digests=[], keys=[])
        return {row["id"] for row in rows}

    async def stored(self, namespace: UUID, ids: Sequence[UUID]) -> dict[UUID, Entry]:
        """The memories of these ids, whole."""
        async with self._database.session() as session:
            rows = await session.rows("transfer_entries", namespace=namespace, ids=list(ids))
        return {row["id"]: entry_of(row) for row in rows}

    async def write(
        self,
        namespace: str,
        batch: Batch,
        *,
        caller: Caller,
        namespace_id: UUID,
        language: str,
        now: datetime,
        all_or_nothing: bool = False,
    ) -> set[UUID]:
        """Write a batch in one transaction and a constant number of statements; the ids that were written.

        `namespace_id` and `language` serve if the namespace must be made. What somebody else stored since the batch
        was judged stays as it is, or with `all_or_nothing` is a Conflict.
        """
        async with self._database.transaction() as session:
            everything = [*batch.fresh, *batch.replacing]
            if batch.replacing:
                await session.row("namespaces/lock_by_name", name=namespace)
            languages = sorted({spoken for item in everything if (spoken := item.prepared.draft.language)})
            namespace_id, language = await ensure_namespace(
                session, NewNamespace(namespace_id, namespace, language, languages), author=caller.author, now=now
            )
            if any(item.prepared.draft.session and item.prepared.draft.position is None for item in everything):
                await session.row("namespaces/lock_sessions", namespace=namespace_id)
            written: set[UUID] = set()
            if batch.replacing:  # first, so that a text given up by one memory may come in as another
                ids = [item.id for item in batch.replacing]
                await NamespaceTransaction(session, namespace_id, caller, now).record(ids, "import", CHANGEABLE)
                await session.rows("transfer_postings_delete", namespace=namespace_id, ids=ids)
                await session.rows("transfer_embeddings_delete", namespace=namespace_id, ids=ids)
                arrivals = arrivals_json(batch.replacing, caller, language, now)
                rows = await session.rows("transfer_replace", namespace=namespace_id, arrivals=arrivals, now=now)
                written.update(row["id"] for row in rows)
            if batch.fresh:
                arrivals = arrivals_json(batch.fresh, caller, language, now)
                rows = await session.rows("transfer_insert", namespace=namespace_id, arrivals=arrivals)
                written.update(row["id"] for row in rows)
            if all_or_nothing and len(written) < len(everything):
                raise Conflict("Somebody else stored some of the same memories at the same time.", hint="Try again.")
            places = [place for place, item in enumerate(everything) if item.id in written]
            vectors = batch.vectors
            if vectors is not None:
                vectors = replace(vectors, vectors=[vectors.vectors[place] for place in places])
            await index(session, namespace_id, [everything[place].id for place in places], vectors, now)
            # Those that were replaced are noted as they are recorded.
            fresh = [item.id for item in batch.fresh if item.id in written]
            if fresh:
                await log_write(session, WriteEntry(namespace_id, "import", fresh), caller=caller, now=now)
        self._statistics.stored(len(written))
        return written

    async def remember(self, namespace: UUID, arrivals: Iterable[Arrival]) -> None:
        """Keep which keys these memories answered elsewhere, as far as they are here. At most one transaction.

        A key that is used here stays whose it is.
        """
        keyed = [(key, item.id, request) for item in arrivals for key, request in item.keys.items()]
        if not keyed:
            return
        async with self._database.transaction() as session:
            await session.row("namespaces/lock", namespace=namespace)
            keys, ids, requests = zip(*keyed, strict=True)
            await session.rows(
                "transfer_keys_insert", namespace=namespace, keys=list(keys), ids=list(ids), requests=list(requests)
            )

    async def link(self, namespace: UUID, superseded: Mapping[UUID, UUID]) -> set[UUID]:
        """Say what superseded what (old to new); returns the old ones whose new one is here. One transaction."""
        async with self._database.transaction() as session:
            await session.row("namespaces/lock", namespace=namespace)
            rows = await session.rows(
                "transfer_link", namespace=namespace, ids=list(superseded), targets=list(superseded.values())
            )
        return {row["id"] for row in rows}

    async def tie(
        self, namespace: UUID, relations: Sequence[Relation], revisions: Sequence[Revision]
    ) -> tuple[set[int], set[int]]:
        """Write relations and revisions as they were elsewhere, in one transaction; one that is here already stays.

        Returns the places in the two sequences of those whose memories are here.
        """
        async with self._database.transaction() as session:
            await session.row("namespaces/lock", namespace=namespace)
            tied, past = set(), set()
            if relations:
                rows = await session.rows(
                    "transfer_relations_insert", namespace=namespace, relations=relations_json(relations)
                )
                tied = {row["place"] for row in rows}
            if revisions:
                rows = await session.rows(
                    "transfer_revisions_insert", namespace=namespace, revisions=revisions_json(revisions)
                )
                past = {row["place"] for row in rows}
        return tied, past


def _origin(row: asyncpg.Record) -> Origin:
    return Origin(
        id=row["id"],
        name=row["name"],
        language=row["language"],
        created_at=row["created_at"],
        created_by=row["created_by"],
        description=row["description"],
    )
