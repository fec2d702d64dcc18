"""Namespaces, their languages and their counts."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import Literal, Self
from uuid import UUID

from cachetools import TTLCache

from folklore.callers import Caller
from folklore.db.database import Database, Row, Session
from folklore.db.rows import made
from folklore.db.store import Store, Transaction, column, many, number
from folklore.db.stores.events.audit import audit_entry
from folklore.errors import ConcurrentChange, Conflict
from folklore.model import Namespace, NamespaceStats, NamespaceStatus
from folklore.text.names import key as key_of

# Seconds that all namespaces are known, unless one of them changes.
_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class NamespaceInfo:
    """A namespace as recall needs it: its id, the languages to read a question in, and whether it is empty.

    `model` is the active embedding model, the same in every row, so that recall needs no statement for it. `shared`: a
    question in any project is asked here too.
    """

    id: UUID
    name: str
    languages: tuple[str, ...]
    empty: bool
    model: UUID | None = None
    shared: bool = False


class Listed(list[NamespaceInfo]):
    """Namespaces, never changed and equal to themselves alone, so that what thousands of them make can be cached."""

    __hash__, __eq__ = object.__hash__, object.__eq__  # type: ignore[assignment]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Self:
        """Return those of the rows of namespaces/find."""
        return cls(
            NamespaceInfo(id_, name, tuple(languages), *rest)
            for id_, name, languages, *rest, _ in rows
            if id_
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(namespace.name for namespace in self)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of their names."""
        return frozenset(map(key_of, self.names))


@dataclass(frozen=True, slots=True)
class NewNamespace:
    """A namespace that a store creates if its name is new: its id then, its default language, further languages.

    `languages` are those that memories state, `detected` those that were detected.
    """

    id: UUID
    name: str
    language: str
    languages: Sequence[str] = ()
    detected: Sequence[str] = ()


# Changes of the row of a namespace, as the audit log names them.
Change = Literal[
    "namespace_rename",
    "namespace_describe",
    "namespace_share",
    "namespace_delete",
    "namespace_restore",
]


class Namespaces(Store):
    """Namespaces table."""

    created = number()
    stats = many(NamespaceStats, "fresh")  # hashes thousands of namespaces
    deleted = many(Namespace)
    deleted_before = column(UUID)

    def __init__(
        self, database: Database, within: Sequence[UUID] | None = None
    ) -> None:
        super().__init__(database)
        # The namespaces that the caller may see; None for all.
        self._within = None if within is None else list(within)
        # All with their state and the ids of the empty ones. Where one was emptied, this is learned when they expire.
        self.known: TTLCache[None, tuple[int, Listed, list[UUID]]] = TTLCache(
            1, _SECONDS
        )

    async def find(self, names: Sequence[str] | None) -> Listed:
        """Return the namespaces of these names, or all; unknown names are left out. One statement.

        All namespaces are the same list until one of them changes.
        """
        if names is not None:
            return Listed.of(await self._found(names, None, []))
        state, cached, hollow = self.known.get(None, (None, None, []))
        rows = await self._found(None, state, hollow)
        if cached is not None and rows[0]["state"] == state and rows[0]["id"] is None:
            return cached
        listed = Listed.of(rows)
        if listed:
            empty = [namespace.id for namespace in listed if namespace.empty]
            self.known[None] = rows[0]["state"], listed, empty
        return listed

    async def _found(
        self, names: Sequence[str] | None, known: int | None, hollow: Sequence[UUID]
    ) -> list[Row]:
        return await self._database.rows(
            "namespaces/find",
            names=names,
            within=self._within,
            known=known,
            hollow=hollow,
        )

    def has(self, name: str) -> bool:
        """Return True if the list of all namespaces, as read in the last minute, has this one. No statement."""
        known = self.known.get(None)
        return known is not None and key_of(name) in known[1].keys

    async def project(self, name: str, former: str, *, folder: bool) -> str | None:
        """Return the name of the namespace that has the memory of a project; None if there is none. One statement."""
        rows = await self._database.rows(
            "namespaces/project", name=name, former=former, folder=folder
        )
        return rows[0]["name"] if rows else None

    async def all(self, *, deleted: bool = False) -> list[Namespace]:
        """Return every namespace, or every deleted one, with its bounded count. One statement."""
        rows = await self._database.rows(
            "namespaces/list", deleted=deleted, within=self._within
        )
        return [made(Namespace, row) for row in rows]

    async def status(self, model: UUID | None) -> list[NamespaceStatus]:
        """Return how many memories each namespace holds, and how many lack a vector in this model. One statement.

        Raises DatabaseUnavailable if a table is locked; without a model that of embeddings is not read.
        """
        async with self._database.session(guarded=True) as session:
            if model is None:
                rows = await session.rows(
                    "namespaces/status:no_vectors", within=self._within
                )
            else:
                rows = await session.rows(
                    "namespaces/status", model=model, within=self._within
                )
        return [made(NamespaceStatus, row) for row in rows]

    async def create(
        self,
        id_: UUID,
        name: str,
        *,
        language: str,
        description: str | None,
        caller: Caller,
        now: datetime,
    ) -> bool:
        """Create a namespace; return False if its name is in use."""
        async with self._database.transaction() as session:
            values = {
                "id": id_,
                "name": name,
                "language": language,
                "description": description,
                "shared": "never",
            }
            rows = await session.rows(
                "namespaces/insert", created_at=now, created_by=caller.author, **values
            )
            if rows:
                entry = audit_entry(
                    "namespace_create", caller=caller, now=now, namespace=id_
                )
                await session.rows("audit/insert", **entry)
        return bool(rows)

    async def change(
        self,
        action: Change,
        namespace: UUID,
        /,
        *,
        caller: Caller,
        now: datetime,
        **new: object,
    ) -> bool:
        """Change the row of a namespace, `new` values by name; return False if its name is in use by another one."""
        try:
            async with self._database.transaction() as session:
                statements = Transaction(
                    session, namespace=namespace, author=caller.author, now=now
                )
                await statements.rows(
                    f"namespaces/{action.removeprefix('namespace_')}", **new
                )
                await session.rows(
                    "audit/insert",
                    **audit_entry(action, caller=caller, now=now, namespace=namespace),
                )
        except ConcurrentChange:
            return False
        return True

    async def erase(
        self,
        namespace: UUID,
        *,
        caller: Caller,
        now: datetime,
        deleted_before: datetime | None = None,
    ) -> bool:
        """Erase a namespace with its memories and audit log in one transaction; return True if it was erased.

        With `deleted_before`, only if it was deleted before that time and not restored since.
        """
        async with self._database.transaction() as session:
            await session.row("namespaces/lock", namespace=namespace)
            row = await session.row("namespaces/hold", namespace=namespace)
            deleted_at = None if row is None else row["deleted_at"]
            is_kept = deleted_before is not None and (
                deleted_at is None or deleted_at >= deleted_before
            )
            if is_kept:
                return False
            for part in ("postings", "memories", "sessions", "audit"):
                await session.rows(f"namespaces/erase_{part}", namespace=namespace)
            await session.rows("namespaces/erase", namespace=namespace)
            entry = audit_entry(
                "namespace_erase", caller=caller, now=now, detail=str(namespace)
            )
            await session.rows("audit/insert", **entry)
        return True


def stored_language(detected: str | None, default: str | None) -> str | None:
    """Return the language of a memory that states none: in a namespace without a language, none is detected."""
    if default == "simple":
        return default
    return detected or default


async def ensure_namespace(
    session: Session, namespace: NewNamespace, *, author: str, now: datetime
) -> tuple[UUID, str, str]:
    """Return a namespace's id, default language and name, created if it is new, within the caller's transaction."""
    # the next statement sees a row that another process inserted meanwhile
    for _ in range(3):
        for row in await session.rows(
            "namespaces/ensure", **asdict(namespace), author=author, now=now
        ):
            return row["id"], row["language"], row["name"]
    raise Conflict(
        f"The namespace {namespace.name} was changed at the same time.",
        hint="Try again.",
    )
