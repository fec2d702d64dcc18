"""The ledger of injections: what hooks gave to which session, and whether it was used; and the sessions themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from folklore.db.database import Database
from folklore.db.rows import QUALITY_FLOOR, as_json, made
from folklore.db.stores.audit import Write

# The time in which the use of memories is measured.
_MEASURED = timedelta(days=30)
# What counts as "stored in this session".
_STORED: tuple[Write, ...] = ("store", "import", "update", "merge", "supersede")


@dataclass(frozen=True, slots=True)
class AssistantSession:
    """A session as its client names it, of one caller. Names that other callers choose do not matter."""

    caller: str
    name: str


@dataclass(frozen=True, slots=True)
class Given:
    """Former injections of a memory for prompts, their uses, and true in `given` if this session has it."""

    times: int
    used: int
    given: bool


@dataclass(frozen=True, slots=True)
class GivenBefore:
    """Former injections by memory, the tokens that prompts of the session got, and the usual used share."""

    memories: Mapping[UUID, Given]
    tokens: int
    usual: float


@dataclass(frozen=True, slots=True)
class Note:
    """A memory as it is injected."""

    namespace: UUID
    memory: UUID
    rank: int
    note: str
    tokens: int


@dataclass(frozen=True, slots=True)
class UnusedNote:
    """A memory that was injected and not used yet."""

    namespace: UUID
    memory: UUID
    injected_at: datetime
    content: str


@dataclass(frozen=True, slots=True)
class InjectedNote:
    """Note in the ledger, with the text around it."""

    injection: UUID
    namespace: str
    memory: UUID
    rank: int
    caller: str
    session: str
    event: str
    injected_at: datetime
    heading: str
    note: str
    tokens: int
    used_at: datetime | None
    used: str | None


class Injections:
    """Injections and sessions, as the owner of the deployment."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def enter(self, project: UUID, session: AssistantSession, now: datetime, *, decided: bool) -> None:
        """Record that a session works in a project, and with `decided` that something was decided."""
        async with self._database.session() as opened:
            await opened.rows(
                "injections/enter",
                namespace=project,
                caller=session.caller,
                session=session.name,
                now=now,
                decided=decided,
            )

    async def given(
        self, namespaces: Sequence[UUID], session: AssistantSession, memories: Sequence[UUID], *, now: datetime
    ) -> GivenBefore:
        """Return what was injected before, of these memories and into this session. One statement."""
        async with self._database.session() as opened:
            rows = await opened.rows(
                "injections/given",
                namespaces=list(namespaces),
                caller=session.caller,
                session=session.name,
                memories=list(memories),
                since=now - _MEASURED,
            )
        known = {row["id"]: made(Given, row) for row in rows if row["id"] is not None}
        return GivenBefore(known, rows[0]["tokens"], rows[0]["usual"])

    async def claim(
        self, id_: UUID, session: AssistantSession, event: str, now: datetime, heading: str, notes: Sequence[Note]
    ) -> set[UUID]:
        """Record the notes of an injection and return the memories that the session was not given before.

        One statement for each namespace: a transaction writes to one.
        """
        claimed: set[UUID] = set()
        for namespace in dict.fromkeys(note.namespace for note in notes):
            async with self._database.session() as opened:
                rows = await opened.rows(
                    "injections/claim",
                    namespace=namespace,
                    injection=id_,
                    caller=session.caller,
                    session=session.name,
                    event=event,
                    now=now,
                    heading=heading,
                    notes=as_json([note for note in notes if note.namespace == namespace]),
                )
            claimed |= {row["memory_id"] for row in rows}
        return claimed

    async def drop(self, namespaces: Sequence[UUID], session: AssistantSession, now: datetime) -> None:
        """Record that the session has lost what it was given. One statement for each namespace."""
        for namespace in namespaces:
            async with self._database.session() as opened:
                await opened.rows(
                    "injections/drop", namespace=namespace, caller=session.caller, session=session.name, now=now
                )

    async def unused(
        self, namespaces: Sequence[UUID], session: AssistantSession, *, since: datetime, before: datetime
    ) -> list[UnusedNote]:
        """Return the notes that a session was given in this time and has not used."""
        async with self._database.session() as opened:
            rows = await opened.rows(
                "injections/unused",
                namespaces=list(namespaces),
                caller=session.caller,
                session=session.name,
                since=since,
                before=before,
            )
        return [made(UnusedNote, row) for row in rows]

    async def stored(self, namespaces: Sequence[UUID], caller: str, first: UUID) -> list[str]:
        """Return the latest 50 texts that a caller stored, with ids from `first` on."""
        async with self._database.session() as opened:
            rows = await opened.rows("injections/stored", namespaces=list(namespaces), caller=caller, first=first)
        return [row["content"] for row in rows]

    async def use(self, notes: Sequence[UnusedNote], session: AssistantSession, used: str, *, now: datetime) -> None:
        """Record the first use of notes by the session that they were given to. One statement for each namespace."""
        for namespace in dict.fromkeys(note.namespace for note in notes):
            async with self._database.session() as opened:
                await opened.rows(
                    "injections/use",
                    namespace=namespace,
                    memories=[note.memory for note in notes if note.namespace == namespace],
                    caller=session.caller,
                    session=session.name,
                    used=used,
                    now=now,
                )

    async def ask(self, namespaces: Sequence[UUID], session: AssistantSession, now: datetime) -> bool:
        """Return True if the session may be asked to store its decisions, and record that it is.

        It may be asked once, after a decision, if its caller has written no memory since it began. Up to three
        statements.
        """
        place = {"caller": session.caller, "session": session.name}
        async with self._database.session() as opened:
            known = await opened.rows("injections/sessions", namespaces=list(namespaces), **place)
        if all(row["decided_at"] is None for row in known) or any(row["asked_at"] is not None for row in known):
            return False
        first, searched = known[0], list(namespaces)
        async with self._database.session() as opened:
            written = await opened.row(
                "injections/wrote",
                namespaces=searched,
                caller=session.caller,
                since=first["started_at"],
                writes=list(_STORED),
            )
        if written is None or written["wrote"]:
            return False
        async with self._database.session() as opened:
            return await opened.row("injections/ask", namespace=first["namespace"], **place, now=now) is not None

    async def last_session(self, project: UUID, caller: str, before: datetime) -> datetime | None:
        """Return when the caller's last session in a project before a time began."""
        async with self._database.session() as opened:
            row = await opened.row("injections/last_session", namespace=project, caller=caller, before=before)
        return None if row is None else row["started_at"]

    async def counts(self, project: UUID, now: datetime) -> tuple[int, int]:
        """Count the memories of a project, and the decisions among them."""
        async with self._database.session("fresh") as opened:
            row = await opened.row("injections/counts", namespace=project, now=now, quality_floor=QUALITY_FLOOR)
        assert row is not None
        return row["memories"], row["decisions"]

    async def read(
        self, namespaces: Sequence[UUID], *, caller: str | None, session: str | None, limit: int
    ) -> list[InjectedNote]:
        """Return the latest notes, newest first; `session` is the beginning of its name."""
        async with self._database.session("fresh") as opened:
            rows = await opened.rows(
                "injections/read", namespaces=list(namespaces), caller=caller, session=session, fetch=limit
            )
        return [made(InjectedNote, row) for row in rows]

    async def stats(self, namespaces: Sequence[UUID]) -> Mapping[str, dict[str, Any]]:
        """Sum up what was injected, by the name of the namespace, as NamespaceStats names the sums."""
        async with self._database.session("fresh") as opened:
            rows = await opened.rows("injections/stats", namespaces=list(namespaces))
        return {row.pop("name"): row for row in map(dict, rows)}

    async def count_before(self, namespace: UUID, before: datetime) -> int:
        """Count the notes from before a time."""
        async with self._database.session("fresh") as opened:
            row = await opened.row("injections/count", namespace=namespace, before=before)
        return 0 if row is None else int(row["count"])

    async def delete_before(self, namespace: UUID, before: datetime, batch: int) -> int:
        """Delete at most `batch` notes from before a time and return how many."""
        async with self._database.session("fresh") as opened:
            return len(await opened.rows("injections/delete", namespace=namespace, before=before, batch=batch))

    async def delete_sessions_before(self, namespace: UUID, before: datetime) -> None:
        """Delete the sessions that began before a time."""
        async with self._database.session("fresh") as opened:
            await opened.rows("injections/delete_sessions", namespace=namespace, before=before)
