"""Namespaces: found by name, made on first use, counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folklore.db.database import Database, Session
from folklore.errors import Conflict
from folklore.model import Namespace


@dataclass(frozen=True, slots=True)
class Notebook:
    """A namespace as recall needs it: its id, the languages to read a question in, whether it holds anything.

    `model` is the embedding model that counts everywhere, told along so that no recall has to ask for it.
    """

    id: UUID
    name: str
    languages: tuple[str, ...]
    empty: bool
    model: UUID | None = None


@dataclass(frozen=True, slots=True)
class NamespaceStats:
    """What a namespace holds."""

    name: str
    memories: int
    forgotten: int
    superseded: int
    without_vector: int
    sessions: int
    characters: int
    oldest: datetime | None
    newest: datetime | None


class Namespaces:
    """The namespaces table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def notebooks(self, names: Sequence[str] | None) -> list[Notebook]:
        """The namespaces of these names, or all; unknown names are simply not there. One statement."""
        async with self._database.session() as session:
            rows = await session.rows("namespaces_find", names=None if names is None else list(names))
        return [Notebook(row["id"], row["name"], tuple(row["languages"]), row["empty"], row["model"]) for row in rows]

    async def all(self) -> list[Namespace]:
        """Every namespace with its (bounded) count. One statement."""
        async with self._database.session() as session:
            rows = await session.rows("namespaces_read")
        return [
            Namespace(
                id=row["id"],
                name=row["name"],
                language=row["language"],
                description=row["description"],
                memories=row["memories"],
                created_at=row["created_at"],
            )
            for row in rows
        ]

    async def stats(self, ids: Sequence[UUID], model: UUID | None) -> list[NamespaceStats]:
        """Exact counts of these namespaces. One statement that reads them whole."""
        async with self._database.session() as session:
            rows = await session.rows("stats", namespaces=list(ids), model=model)
        return [
            NamespaceStats(
                name=row["name"],
                memories=row["memories"],
                forgotten=row["forgotten"],
                superseded=row["superseded"],
                without_vector=row["without_vector"],
                sessions=row["sessions"],
                characters=row["characters"],
                oldest=row["oldest"],
                newest=row["newest"],
            )
            for row in rows
        ]


async def ensure_namespace(
    session: Session, *, new_id: UUID, name: str, language: str, languages: Sequence[str], author: str, now: datetime
) -> tuple[UUID, str]:
    """The id and default language of the namespace, made if it is new, within the caller's transaction."""
    for _ in range(3):  # a row that another process made after our snapshot is seen by the next statement
        row = await session.row(
            "namespaces_ensure",
            id=new_id,
            name=name,
            language=language,
            languages=list(languages),
            author=author,
            now=now,
        )
        if row is not None:
            return row["id"], row["language"]
    raise Conflict(f"The namespace {name} was changed at the same time.", hint="Try again.")
