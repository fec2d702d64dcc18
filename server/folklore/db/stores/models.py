"""Models that vectors were made with, and which of them counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from folklore.db.database import Database, Row, Session
from folklore.errors import Conflict

Role = Literal["active", "next", "previous"]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model as the store knows it: how it is reached (never with a key) and what it made of a fixed text.

    `asked_dimensions` is the size named in requests, None for the model's own.
    """

    id: UUID
    provider: str
    name: str
    dimensions: int
    url: str | None = None
    asked_dimensions: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    revision: str = ""
    probe: NDArray[np.float32] | None = None
    role: Role | None = None
    since: datetime | None = None

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.provider}/{self.name}{f' ({self.revision})' if self.revision else ''}"


class Models:
    """The models table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def all(self) -> list[KnownModel]:
        """Every model, the active one first, then the youngest. One statement."""
        async with self._database.session() as session:
            return await read_models(session)

    async def active(self) -> UUID | None:
        """The id of the one that counts; None while nothing was ever embedded. One statement."""
        async with self._database.session() as session:
            row = await session.row("models_active")
        return None if row is None else row["id"]

    async def learn_probe(self, model: UUID, probe: NDArray[np.float32]) -> None:
        """Keep a fingerprint where there is none. One statement."""
        async with self._database.session() as session:
            await session.rows("models_probe", id=model, probe=probe.tolist())

    async def begin(self, model: KnownModel, *, now: datetime) -> Role:
        """Make a model the next one, unless it is that or counts already: the first of a store counts at once.

        Raises Conflict while another one is being filled.
        """
        async with self._database.transaction() as session:
            await register(session, model, now)
            roles = await _roles(session)
            for role in ("active", "next"):
                if roles.get(role) == model.id:
                    return role
            if "next" in roles:
                raise Conflict(
                    "Another model is being filled already.",
                    hint="Go on with that one, or give it up: `folklore embeddings drop --next`.",
                )
            await session.rows("models_role", id=model.id, role="next", now=now)
            return "next"

    async def switch(self, model: UUID, *, now: datetime) -> None:
        """Let a model count from now on, in one transaction; the one that did is the previous one.

        One that was previous before that keeps its vectors and loses its role.
        """
        async with self._database.transaction() as session:
            roles = await _roles(session)
            if roles.get("active") == model:
                return
            old = roles.get("active")
            # A role is free before it is given: at most one model holds each at any moment.
            for holder in {roles.get("previous"), old, model} - {None}:
                await session.rows("models_role", id=holder, role=None, now=now)
            if old is not None:
                await session.rows("models_role", id=old, role="previous", now=now)
            await session.rows("models_role", id=model, role="active", now=now)

    async def retire(self, model: UUID, *, now: datetime) -> None:
        """Take a model's role away before its vectors are dropped. Raises Conflict for the one that counts."""
        async with self._database.transaction() as session:
            if (await _roles(session)).get("active") == model:
                raise Conflict("Recall goes by this model; switch to another first.")
            await session.rows("models_role", id=model, role=None, now=now)

    async def drop_vectors(self, namespace: UUID, model: UUID, *, size: int) -> int:
        """Delete at most `size` vectors of a model; how many there were. One statement."""
        async with self._database.transaction() as session:
            return len(await session.rows("embeddings_drop", namespace=namespace, model=model, size=size))

    async def forget(self, model: UUID) -> None:
        """Delete a model without role and vectors. One statement."""
        async with self._database.session() as session:
            await session.rows("models_delete", id=model)

    async def paths(self) -> list[str]:
        """What the HNSW indexes over vectors cover, as Postgres writes it. One statement."""
        async with self._database.session() as session:
            return [row["predicate"] for row in await session.rows("embeddings_paths") if row["valid"]]

    async def sample(
        self, namespace: UUID, one: UUID, other: UUID, *, size: int, salt: str
    ) -> Sequence[tuple[UUID, str]]:
        """Some memories that have a vector in both models, by chance but the same for the same salt. One statement."""
        async with self._database.session("fresh") as session:
            rows = await session.rows(
                "embeddings_sample", namespace=namespace, one=one, other=other, size=size, salt=salt
            )
        return [(row["id"], row["content"]) for row in rows]

    async def nearest(self, namespace: UUID, model: UUID, vector: NDArray[np.float32], *, size: int) -> frozenset[UUID]:
        """The memories whose vectors are nearest by cosine. One statement."""
        async with self._database.session("fresh") as session:
            rows = await session.rows(
                "embeddings_nearest", namespace=namespace, model=model, query=HalfVector(vector), size=size
            )
        return frozenset(row["memory_id"] for row in rows)


async def read_models(session: Session) -> list[KnownModel]:
    """Every model, the active one first, then the youngest, as the caller's transaction sees them. One statement."""
    return [_known(row) for row in await session.rows("models_read")]


async def active_model(session: Session) -> KnownModel | None:
    """The one that counts, likewise; None while nothing was ever embedded."""
    return next((model for model in await read_models(session) if model.role == "active"), None)


async def register(session: Session, model: KnownModel, now: datetime) -> None:
    """Make a model known, within the caller's transaction; the first of a store becomes the active one."""
    await session.rows(
        "models_insert",
        id=model.id,
        provider=model.provider,
        name=model.name,
        dimensions=model.dimensions,
        url=model.url,
        asked_dimensions=model.asked_dimensions,
        query_prefix=model.query_prefix,
        document_prefix=model.document_prefix,
        revision=model.revision,
        probe=None if model.probe is None else model.probe.tolist(),
        now=now,
    )


async def _roles(session: Session) -> Mapping[Role, UUID]:
    return {row["role"]: row["id"] for row in await session.rows("models_lock") if row["role"] is not None}


def _known(row: Row) -> KnownModel:
    return KnownModel(
        id=row["id"],
        provider=row["provider"],
        name=row["name"],
        dimensions=row["dimensions"],
        url=row["url"],
        asked_dimensions=row["asked_dimensions"],
        query_prefix=row["query_prefix"],
        document_prefix=row["document_prefix"],
        revision=row["revision"],
        probe=None if row["probe"] is None else np.array(row["probe"], dtype=np.float32),
        role=row["role"],
        since=row["since"],
    )
