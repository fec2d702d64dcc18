"""Memories that are there already are changed here: one transaction that has their namespace to itself.

Statements find and write; what may be done is judged by the use cases between them (memory/).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from folklore.db.database import Database, Session
from folklore.db.rows import memory_of, relation_of, revision_of, visibility
from folklore.db.stores.audit import Write, note
from folklore.db.stores.memories import Vectors, index
from folklore.errors import NotFound
from folklore.model import Caller, Filters, JsonObject, Memory, Relation, Revision

# The columns a revision can hold, as changeable.sql lists them.
CHANGEABLE = (
    "content", "summary", "kind", "tags", "source", "session", "position", "paths", "commit", "importance",
    "confidence", "priority", "language", "metadata", "occurred_at", "expires_at", "forgotten_at", "superseded_at",
    "superseded_by",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class State:
    """What a change must know of a memory; `held` are its columns by name, as JSON, where they were asked for."""

    id: UUID
    revision: int
    forgotten_at: datetime | None
    superseded_at: datetime | None
    superseded_by: UUID | None
    held: JsonObject


@dataclass(frozen=True, slots=True)
class Patch:
    """What a memory's columns become, as JSON by name, and the digest of its text if that changes."""

    id: UUID
    fields: JsonObject
    digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """When a memory was forgotten, or superseded and by whom."""

    id: UUID
    forgotten_at: datetime | None = None
    superseded_at: datetime | None = None
    superseded_by: UUID | None = None


class Changing:
    """One transaction in one namespace. `caller` and `now` stand in every revision and relation it writes."""

    def __init__(self, session: Session, namespace: UUID, caller: Caller, now: datetime) -> None:
        self._session = session
        self._namespace = namespace
        self._caller = caller
        self._now = now

    async def states(self, ids: Sequence[UUID], *, whole: bool = False) -> dict[UUID, State]:
        """The memories of these ids that are in the namespace. One statement."""
        rows = await self._session.rows("memories_states", namespace=self._namespace, ids=list(ids), whole=whole)
        return {row["id"]: _state(row) for row in rows}

    async def read(self, ids: Sequence[UUID]) -> list[Memory]:
        """These memories as records, in the order asked for. One statement."""
        rows = await self._session.rows("memories_get", namespaces=[self._namespace], ids=list(ids))
        found = {row["id"]: memory_of(row, row["namespace"]) for row in rows}
        return [found[id_] for id_ in ids if id_ in found]

    async def matching(self, filters: Filters, limit: int, shown: Sequence[UUID] | None = None) -> list[UUID]:
        """The first memories within the filters, of `shown` if that is given. One statement."""
        seen, shown = visibility(filters, self._now), None if shown is None else list(shown)
        rows = await self._session.rows(
            "memories_matching", namespace=self._namespace, fetch=limit, shown=shown, **seen
        )
        return [row["id"] for row in rows]

    async def living(self, digest: bytes) -> UUID | None:
        """The memory that has this text, being neither forgotten nor superseded."""
        row = await self._session.row("memories_living", namespace=self._namespace, digests=[digest])
        return None if row is None else row["id"]

    async def last(self, id_: UUID) -> Revision | None:
        """The last change of a memory that was not taken back yet."""
        row = await self._session.row("revisions_last", namespace=self._namespace, id=id_)
        return None if row is None else revision_of(row)

    async def record(
        self,
        ids: Sequence[UUID],
        action: Write,
        fields: Sequence[str],
        *,
        reasons: Mapping[UUID, str] | None = None,
        undoes: int | None = None,
    ) -> None:
        """Keep what these memories hold in the columns `fields`. Comes before the change. Two statements."""
        await self._session.rows(
            "revisions_insert",
            namespace=self._namespace,
            ids=list(ids),
            action=action,
            author=self._caller.author,
            agent=self._caller.agent,
            now=self._now,
            reasons=json.dumps({str(id_): reason for id_, reason in (reasons or {}).items()}),
            undoes=undoes,
            fields=list(fields),
        )
        await self._note(action, ids)

    async def patch(self, patches: Sequence[Patch]) -> None:
        """Change the columns; each memory has one revision more. One statement."""
        changes = [
            {
                "id": str(patch.id),
                "digest": None if patch.digest is None else patch.digest.hex(),
                "fields": dict(patch.fields),
            }
            for patch in patches
        ]
        await self._session.rows(
            "memories_change",
            namespace=self._namespace,
            now=self._now,
            changes=json.dumps(changes, ensure_ascii=False),
        )

    async def close(self, closings: Sequence[Closing]) -> None:
        """Forget or supersede; each memory has one revision more. One statement."""
        rows = [
            {
                "id": str(closing.id),
                "forgotten_at": _iso(closing.forgotten_at),
                "superseded_at": _iso(closing.superseded_at),
                "superseded_by": None if closing.superseded_by is None else str(closing.superseded_by),
            }
            for closing in closings
        ]
        await self._session.rows("memories_close", namespace=self._namespace, now=self._now, closings=json.dumps(rows))

    async def learn(self, language: str) -> None:
        """A memory of this namespace is in this language from now on. One statement."""
        await self._session.rows("namespaces_learn", namespace=self._namespace, language=language)

    async def unindex(self, ids: Sequence[UUID]) -> None:
        """Take these memories out of the postings; comes before their words change. One statement."""
        await self._session.rows("transfer_postings_delete", namespace=self._namespace, ids=list(ids))

    async def reindex(self, id_: UUID, *, meaning: bool, vectors: Vectors | None) -> None:
        """Put a memory whose words changed back into the postings.

        With `meaning` its text is another: the old vectors go, and `vectors` takes their place, or is owed if None.
        """
        if meaning:
            await self._session.rows("transfer_embeddings_delete", namespace=self._namespace, ids=[id_])
        await index(self._session, self._namespace, [(id_, True)], vectors if meaning else None, self._now)
        if not meaning:
            await self._session.rows("embeddings_measure", namespace=self._namespace, ids=[id_])

    async def relate(self, relations: Sequence[Relation]) -> dict[tuple[UUID, str, UUID], bool]:
        """Write relations; those whose memories are here come back, with whether they are new. Two statements."""
        rows = await self._session.rows(
            "relations_insert",
            namespace=self._namespace,
            author=self._caller.author,
            now=self._now,
            relations=_relations_json(relations),
        )
        await self._note("relate", sorted({row[end] for row in rows for end in ("from_id", "to_id")}), len(rows))
        return {(row["from_id"], row["type"], row["to_id"]): bool(row["is_new"]) for row in rows}

    async def unrelate(self, relations: Sequence[Relation]) -> set[tuple[UUID, str, UUID]]:
        """Remove relations; those that were there come back. Two statements."""
        rows = await self._session.rows(
            "relations_delete", namespace=self._namespace, relations=_relations_json(relations)
        )
        await self._note("unrelate", sorted({row[end] for row in rows for end in ("from_id", "to_id")}), len(rows))
        return {(row["from_id"], row["type"], row["to_id"]) for row in rows}

    async def erase(self, ids: Sequence[UUID]) -> set[UUID]:
        """Delete memories with all that hangs on them, and the reflections that repeat their words. Five statements."""
        derived = await self._session.rows("erase_derived", namespace=self._namespace, ids=list(ids))
        given = {"namespace": self._namespace, "ids": [*ids, *(row["id"] for row in derived)]}
        await self._session.rows("transfer_postings_delete", **given)
        await self._session.rows("memories_orphan", **given)
        erased = {row["id"] for row in await self._session.rows("memories_erase", **given)}
        await self._note("erase", sorted(erased))
        return erased

    async def _note(self, action: Write, ids: Sequence[UUID], amount: int | None = None) -> None:
        if ids:
            await note(
                self._session, self._namespace, action, caller=self._caller, now=self._now, memories=ids, amount=amount
            )


class Changes:
    """Changes of memories, and the reading of what is told about them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @asynccontextmanager
    async def of(self, namespace: UUID, *, caller: Caller, now: datetime) -> AsyncIterator[Changing]:
        """A transaction that has the namespace to itself; committed when the block ends. Raises NotFound."""
        async with self._database.transaction() as session:
            if await session.row("namespaces_hold", namespace=namespace) is None:
                raise NotFound("The namespace is gone.")
            yield Changing(session, namespace, caller, now)

    async def places(
        self, namespaces: Sequence[UUID], ids: Sequence[UUID], *, unforgotten: bool = False
    ) -> dict[UUID, tuple[UUID, ...]]:
        """In which of the namespaces each of these memories is. One statement."""
        async with self._database.session() as session:
            rows = await session.rows(
                "memories_places", namespaces=list(namespaces), ids=list(ids), unforgotten=unforgotten
            )
        found: dict[UUID, tuple[UUID, ...]] = {}
        for row in rows:
            found[row["id"]] = (*found.get(row["id"], ()), row["namespace_id"])
        return found

    async def history(self, namespace: UUID, id_: UUID) -> list[Revision]:
        """The changes of a memory, the last one first. One statement."""
        async with self._database.session() as session:
            return [revision_of(row) for row in await session.rows("revisions_of", namespace=namespace, id=id_)]

    async def last(self, namespace: UUID, id_: UUID) -> Revision | None:
        """The last change of a memory that was not taken back yet. One statement."""
        async with self._database.session() as session:
            row = await session.row("revisions_last", namespace=namespace, id=id_)
        return None if row is None else revision_of(row)

    async def counted(self, namespaces: Sequence[UUID], ids: Sequence[UUID]) -> dict[tuple[UUID, UUID], int]:
        """How many revisions each of these memories has, by namespace and id. One statement."""
        async with self._database.session() as session:
            rows = await session.rows("revisions_count", namespaces=list(namespaces), ids=list(ids))
        return {(row["namespace_id"], row["memory_id"]): row["revisions"] for row in rows}

    async def relations(
        self, namespaces: Sequence[UUID], ids: Sequence[UUID], limit: int
    ) -> list[tuple[UUID, Relation]]:
        """What these memories have to do with others, each with its namespace, strongest first. One statement."""
        async with self._database.session() as session:
            rows = await session.rows("relations_of", namespaces=list(namespaces), ids=list(ids), fetch=limit)
        return [(row["namespace_id"], relation_of(row)) for row in rows]

    async def settle_statistics(self) -> None:
        """The planner's samples of the tables are taken anew: what was erased is in them no longer."""
        async with self._database.session("fresh") as session:
            await session.rows("analyze")


def _state(row: asyncpg.Record) -> State:
    return State(
        id=row["id"],
        revision=row["revision"],
        forgotten_at=row["forgotten_at"],
        superseded_at=row["superseded_at"],
        superseded_by=row["superseded_by"],
        held={} if row["held"] is None else json.loads(row["held"]),
    )


def _relations_json(relations: Sequence[Relation]) -> str:
    return json.dumps(
        [
            {
                "from_id": str(relation.from_id),
                "type": relation.type,
                "to_id": str(relation.to_id),
                "strength": relation.strength,
            }
            for relation in relations
        ]
    )


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
