"""A memory on its way between databases, whole: what was stated and what it has lived through."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import asyncpg
from pgvector import HalfVector

from folklore.db.rows import columns_of, fields_of, iso, short
from folklore.db.stores.memories import PreparedMemory, session_steps
from folklore.db.stores.models import KnownModel
from folklore.model import Caller, Draft, Relation, Revision

# A half float takes so many bytes.
HALF_BYTES = 2


@dataclass(frozen=True, slots=True)
class Past:
    """What a memory has lived through, beside what its author stated; None where nobody says."""

    agent: str | None = None
    updated_at: datetime | None = None
    quality: float | None = None
    trust: str | None = None
    forgotten_at: datetime | None = None
    superseded_at: datetime | None = None
    superseded_by: UUID | None = None
    last_recalled_at: datetime | None = None
    recall_count: int | None = None
    confirmed_count: int | None = None
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Carried:
    """A vector that a memory carries with it, `vector` in half floats, little-endian, and which model made it."""

    provider: str
    name: str
    dimensions: int
    vector: bytes
    revision: str = ""
    query_prefix: str = ""
    document_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A memory whole: what was stated, and its past; with its vector if that was asked for and is there.

    `keys` are those it answers beside its own, each with a digest (hexadecimal) of what was asked under it.
    """

    draft: Draft
    past: Past
    carried: Carried | None = None
    keys: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A checked memory from outside, the line it stood on, and the vector of its text if it carries one.

    `keys` are those of an `Entry`.
    """

    line: int
    prepared: PreparedMemory
    past: Past
    carried: Carried | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> UUID:
        """The memory's id."""
        return self.prepared.id

    @property
    def alive(self) -> bool:
        """Neither forgotten nor superseded: only living texts must be unique."""
        return self.past.forgotten_at is None and self.past.superseded_at is None


def entry_of(row: asyncpg.Record) -> Entry:
    """The entry of one row of `transfer_entry.sql`'s columns."""
    draft = Draft(
        **fields_of(row),
        idempotency_key=row["idempotency_key"],
        id=row["id"],
        author=row["author"],
        created_at=row["created_at"],
    )
    past = Past(
        agent=row["agent"],
        updated_at=row["updated_at"],
        quality=short(row["quality"]),
        trust=row["trust"],
        forgotten_at=row["forgotten_at"],
        superseded_at=row["superseded_at"],
        superseded_by=row["superseded_by"],
        last_recalled_at=row["last_recalled_at"],
        recall_count=row["recall_count"],
        confirmed_count=row["confirmed_count"],
        revision=row["revision"],
    )
    return Entry(draft, past, keys={} if row["keys"] is None else json.loads(row["keys"]))


def carried_of(vector: HalfVector, model: KnownModel) -> Carried:
    """A vector of a row, ready to leave."""
    return Carried(
        provider=model.provider,
        name=model.name,
        dimensions=model.dimensions,
        vector=vector.to_numpy().astype("<f2").tobytes(),
        revision=model.revision,
        query_prefix=model.query_prefix,
        document_prefix=model.document_prefix,
    )


def arrivals_json(arrivals: Sequence[Arrival], caller: Caller, language: str, now: datetime) -> str:
    """Arrivals as `transfer_arrivals.sql` reads them; caller, language and now stand in for what nobody said."""
    objects = []
    for arrival, step in zip(arrivals, session_steps(arrival.prepared.draft for arrival in arrivals), strict=True):
        draft, past = arrival.prepared.draft, arrival.past
        created_at = draft.created_at or now
        objects.append(
            columns_of(draft)
            | {
                "idempotency_key": draft.idempotency_key,
                "id": str(arrival.id),
                "step": step,
                "author": draft.author or caller.author,
                "agent": past.agent,
                "quality": past.quality,
                "trust": past.trust or "stated",
                "language": draft.language or language,
                "created_at": created_at.isoformat(),
                "updated_at": iso(past.updated_at or created_at),
                "forgotten_at": iso(past.forgotten_at),
                "superseded_at": iso(past.superseded_at),
                "last_recalled_at": iso(past.last_recalled_at),
                "recall_count": past.recall_count or 0,
                "confirmed_count": past.confirmed_count or 0,
                "revision": past.revision or 1,
                "digest": arrival.prepared.digest.hex(),
            }
        )
    objects.sort(key=lambda entry: str(entry["digest"]))  # two batches never wait in a ring
    return json.dumps(objects, ensure_ascii=False)


def relations_json(relations: Sequence[Relation]) -> str:
    """Relations as `transfer_relations_insert.sql` reads them, each with its place."""
    return json.dumps(
        [
            {
                "place": place,
                "from_id": str(item.from_id),
                "type": item.type,
                "to_id": str(item.to_id),
                "strength": item.strength,
                "author": item.author,
                "created_at": iso(item.created_at),
            }
            for place, item in enumerate(relations)
        ]
    )


def revisions_json(revisions: Sequence[Revision]) -> str:
    """Revisions as `transfer_revisions_insert.sql` reads them, each with its place."""
    return json.dumps(
        [
            {
                "place": place,
                "memory_id": str(item.memory_id),
                "revision": item.revision,
                "action": item.action,
                "author": item.author,
                "agent": item.agent,
                "changed_at": iso(item.changed_at),
                "reason": item.reason,
                "undoes": item.undoes,
                "before": dict(item.before),
            }
            for place, item in enumerate(revisions)
        ],
        ensure_ascii=False,
    )
