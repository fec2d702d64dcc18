"""Reflections: memories derived from others, their members, and related to them by `derived_from`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from folklore.callers import Caller
from folklore.db.database import Session
from folklore.db.store import Store, affected, many, value
from folklore.db.stores.memories import PreparedMemory, Vectors
from folklore.db.stores.transfer import ImportTransaction, Past, TransferredMemory
from folklore.db.stores.upkeep.maintenance import erase
from folklore.lazy import NDArray, numpy as np

DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class Sources:
    """Memories that reflections may be made from: ids, digests of the texts, unit vectors as rows (n, dimensions)."""

    ids: tuple[UUID, ...]
    digests: tuple[bytes, ...]
    vectors: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ExistingReflection:
    """A stored reflection. `key` follows from its members and their texts; `whole` while no member has changed."""

    id: UUID
    key: str
    forgotten: bool
    whole: bool


@dataclass(frozen=True, slots=True)
class Member:
    """A member as a reflection quotes it."""

    id: UUID
    content: str
    language: str
    happened: datetime


@dataclass(frozen=True, slots=True)
class Reflection:
    """A reflection to be stored: a checked memory, and its members with the digests of their texts."""

    prepared: PreparedMemory
    members: tuple[UUID, ...]
    digests: tuple[bytes, ...]


class _Reflecting(ImportTransaction):
    link = affected()


class Reflections(Store):
    """The statements of consolidation, each over one namespace."""

    fingerprint = value(str, "fresh")
    existing = many(ExistingReflection, "fresh")
    members = many(Member)

    async def sources(self, namespace: UUID, model: UUID, most: int) -> Sources:
        """Return the newest memories with an embedding, in order of id."""
        rows = await self._database.rows(
            "reflections/sources", "fresh", namespace=namespace, model=model, most=most
        )
        rows.reverse()
        # halfvec's wire form begins with its dimension and a reserved field, two bytes each.
        raw = b"".join(row["vector"][4:] for row in rows)
        vectors = (
            np.frombuffer(raw, dtype=">f2")
            .reshape(len(rows), -1 if rows else 0)
            .astype(np.float32)
        )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return Sources(
            tuple(row["id"] for row in rows),
            tuple(row["digest"] for row in rows),
            vectors,
        )

    async def withdraw(self, namespace: UUID, ids: Sequence[UUID]) -> int:
        """Erase reflections in one transaction and return how many."""
        async with self._database.transaction() as session:
            return len(await erase(session, namespace, ids))

    async def store(
        self,
        namespace: UUID,
        reflections: Sequence[Reflection],
        vectors: Vectors | None,
        *,
        caller: Caller,
        language: str,
        now: datetime,
    ) -> int:
        """Store reflections in one transaction with a constant number of statements and return how many.

        A reflection is left out if it exists already, or if one of its members has changed.
        """
        async with self._database.transaction() as session:
            whole = await _with_unchanged_members(session, namespace, reflections)
            change = _Reflecting(session, namespace, caller, now, language)
            new = [_memory_of(reflection, now) for reflection in whole]
            stored = set(await change.import_new(new))
            every = [_memory_of(reflection, now) for reflection in reflections]
            await change.index(every, vectors, stored)
            ids: list[UUID] = []
            members: list[UUID] = []
            for reflection in whole:
                if reflection.prepared.id in stored:
                    ids += [reflection.prepared.id] * len(reflection.members)
                    members += reflection.members
            await change.link(reflections=ids, members=members)
        return len(stored)


def _memory_of(reflection: Reflection, now: datetime) -> TransferredMemory:
    prepared = reflection.prepared
    draft = replace(prepared.draft, id=prepared.id)
    return TransferredMemory(
        draft, Past(trust=DERIVED, updated_at=now), digest=prepared.digest
    )


async def _with_unchanged_members(
    session: Session, namespace: UUID, reflections: Sequence[Reflection]
) -> list[Reflection]:
    """Lock the members and return the reflections of which all members are unchanged and in force."""
    digests: dict[UUID, bytes] = {}
    for reflection in reflections:
        digests |= zip(reflection.members, reflection.digests, strict=True)
    ids = sorted(digests)
    rows = await session.rows(
        "reflections/lock",
        namespace=namespace,
        ids=ids,
        digests=[digests[id_] for id_ in ids],
    )
    unchanged = {row["id"] for row in rows}
    return [each for each in reflections if unchanged.issuperset(each.members)]
