"""Reflections: memories that upkeep derives from others, tied to their members by `derived_from`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from folklore.db.database import Database
from folklore.db.stores.maintenance import erase
from folklore.db.stores.memories import PreparedMemory, Vectors, index
from folklore.db.stores.transfer import ImportTransaction, Past, TransferredMemory
from folklore.model import Caller

DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class Sources:
    """What reflections may be made of: ids, digests of the texts, unit vectors as rows (n, dimensions)."""

    ids: tuple[UUID, ...]
    digests: tuple[bytes, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Known:
    """A reflection that is there. `key` follows from its members and their texts; `whole` while all of them stand."""

    id: UUID
    key: str
    forgotten: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Member:
    """What a reflection says of one of its members."""

    id: UUID
    content: str
    summary: str | None
    language: str
    happened: datetime


@dataclass(frozen=True, slots=True)
class Reflection:
    """A reflection to be made: a checked memory, and its members with the digests of their texts."""

    prepared: PreparedMemory
    members: tuple[UUID, ...]
    digests: tuple[bytes, ...]


class Reflections:
    """The statements of consolidation, each over one namespace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def mark(self, namespace: UUID, model: UUID) -> str:
        """A mark that differs when anything changed that reflections are made of."""
        async with self._database.session("fresh") as session:
            row = await session.row("reflections_mark", namespace=namespace, model=model)
        return "" if row is None else str(row["mark"])

    async def sources(self, namespace: UUID, model: UUID, most: int) -> Sources:
        """The newest memories with a vector, by id."""
        async with self._database.session("fresh") as session:
            rows = await session.rows("reflections_sources", namespace=namespace, model=model, most=most)
        rows.reverse()
        # halfvec's wire form begins with its dimension and a reserved field, two bytes each.
        raw = b"".join(row["vector"][4:] for row in rows)
        vectors = np.frombuffer(raw, dtype=">f2").reshape(len(rows), -1 if rows else 0).astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return Sources(tuple(row["id"] for row in rows), tuple(bytes(row["digest"]) for row in rows), vectors)

    async def known(self, namespace: UUID) -> list[Known]:
        """The reflections that are there, forgotten ones too."""
        async with self._database.session("fresh") as session:
            rows = await session.rows("reflections_known", namespace=namespace)
        return [Known(row["id"], row["idempotency_key"] or "", row["forgotten"], row["whole"]) for row in rows]

    async def members(self, namespace: UUID, ids: Sequence[UUID]) -> dict[UUID, Member]:
        """Memories as reflections see them."""
        async with self._database.session() as session:
            rows = await session.rows("reflections_members", namespace=namespace, ids=list(ids))
        return {
            row["id"]: Member(row["id"], row["content"], row["summary"], row["language"], row["happened"])
            for row in rows
        }

    async def withdraw(self, namespace: UUID, ids: Sequence[UUID]) -> int:
        """Erase reflections, in one transaction; how many."""
        async with self._database.transaction() as session:
            return await erase(session, namespace, ids)

    async def make(
        self,
        namespace: UUID,
        reflections: Sequence[Reflection],
        vectors: Vectors | None,
        *,
        caller: Caller,
        language: str,
        now: datetime,
    ) -> int:
        """Write reflections in one transaction and a constant number of statements; how many.

        Not written: one of which a member changed meanwhile, and one that is there.
        """
        async with self._database.transaction() as session:
            pairs = {pair for one in reflections for pair in zip(one.members, one.digests, strict=True)}
            ordered = sorted(pairs)
            rows = await session.rows(
                "reflections_hold",
                namespace=namespace,
                ids=[id_ for id_, _ in ordered],
                digests=[text for _, text in ordered],
            )
            standing = {row["id"] for row in rows}
            whole = [one for one in reflections if standing.issuperset(one.members)]
            past = Past(trust=DERIVED, updated_at=now)
            memories = [
                TransferredMemory(replace(one.prepared.draft, id=one.prepared.id), past, digest=one.prepared.digest)
                for one in whole
            ]
            written = set(await ImportTransaction(session, namespace, language, caller, now).insert(memories))
            places = [place for place, one in enumerate(reflections) if one.prepared.id in written]
            made = None if vectors is None else replace(vectors, vectors=[vectors.vectors[place] for place in places])
            await index(session, namespace, [reflections[place].prepared.id for place in places], made, now)
            links = [(one.prepared.id, member) for one in whole if one.prepared.id in written for member in one.members]
            await session.rows(
                "reflections_link",
                namespace=namespace,
                reflections=[reflection for reflection, _ in links],
                members=[member for _, member in links],
                author=caller.author,
                now=now,
            )
        return len(written)
