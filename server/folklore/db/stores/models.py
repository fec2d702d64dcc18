"""The models table: every embedding model of a database, and the role each has."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from folklore.db.database import Session
from folklore.db.rows import made
from folklore.db.store import Store, affected, many, value
from folklore.errors import Conflict

Role = Literal["active", "next", "previous"]


@dataclass(frozen=True, slots=True)
class KnownModel:
    """An embedding model of the database: its address (never with a key) and `probe`, its fingerprint.

    `asked_dimensions` is the size named in requests, None for the model's own; `since` is the time of its last change
    of role.
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
    probe: Sequence[float] | None = None
    role: Role | None = None
    since: datetime | None = None

    @property
    def label(self) -> str:
        """Its name as users see it."""
        name = f"{self.provider}/{self.name}"
        if self.revision:
            name += f" ({self.revision})"
        return name


class Models(Store):
    """The models table."""

    read = many(KnownModel)
    active = value(UUID)
    set_probe = affected()
    delete = affected()

    async def begin(self, model: KnownModel, *, now: datetime) -> Role:
        """Give a model the role `next`, unless it is next or active already, and return its role.

        The first model of a database becomes active at once. Raises Conflict while another model is next.
        """
        async with self._database.transaction() as session:
            await register(session, model, now)
            roles = await _roles(session)
            for role in ("active", "next"):
                if roles.get(role) == model.id:
                    return role
            if "next" in roles:
                raise Conflict(
                    "Another model is being filled.",
                    hint="Continue that switch, or give it up with `folklore embeddings drop --next`.",
                )
            await session.rows("models/set_role", id=model.id, role="next", now=now)
            return "next"

    async def activate(self, model: UUID, *, now: datetime) -> None:
        """Make a model the active one in one transaction; the active one becomes the previous one.

        The model that was previous keeps its embeddings and loses its role.
        """
        async with self._database.transaction() as session:
            roles = await _roles(session)
            former = roles.get("active")
            if former == model:
                return
            # At most one model holds each role at any moment, so a role is taken before it is given.
            for holder in {roles.get("previous"), former, model}:
                if holder is not None:
                    await session.rows("models/set_role", id=holder, role=None, now=now)
            if former is not None:
                await session.rows(
                    "models/set_role", id=former, role="previous", now=now
                )
            await session.rows("models/set_role", id=model, role="active", now=now)

    async def retire(self, model: UUID, *, now: datetime) -> None:
        """Take a model's role, before its embeddings are deleted. Raises Conflict for the active model."""
        async with self._database.transaction() as session:
            if (await _roles(session)).get("active") == model:
                raise Conflict(
                    "This model is the active one.",
                    hint="Switch to another model first.",
                )
            await session.rows("models/set_role", id=model, role=None, now=now)


async def active_model(session: Session) -> KnownModel | None:
    """Return the active model within the caller's transaction; None before the first embedding. One statement."""
    for row in await session.rows("models/read"):
        if row["role"] == "active":
            return made(KnownModel, row)
    return None


async def register(session: Session, model: KnownModel, now: datetime) -> None:
    """Register a model within the caller's transaction; the first of a database becomes the active one."""
    if await session.rows("models/registered", id=model.id):
        return  # a write would reach every node of a cluster
    values = asdict(model)
    del values["role"]
    del values["since"]
    await session.rows("models/insert", now=now, **values)


async def _roles(session: Session) -> Mapping[Role, UUID]:
    rows = await session.rows("models/lock")
    return {row["role"]: row["id"] for row in rows if row["role"] is not None}
