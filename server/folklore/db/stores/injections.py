"""The ledger of injections: what hooks gave to which session, and whether it was used; and the sessions themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from folklore.db.database import Database
from folklore.db.rows import QUALITY_FLOOR, as_json, made
from folklore.db.stores.audit import NOWHERE, Write

# The time in which the use of memories is measured.
_MEASURED = timedelta(days=30)
# What counts as "stored in this session".
_STORED: tuple[Write, ...] = ("store", "import", "update", "merge", "supersede")


@dataclass(frozen=True, slots=True)
class AssistantSession:
    """A session as its client names it, of one caller. Names that other callers choose do not matter."""

    caller: str
    name: str

    @property
    def columns(self) -> dict[str, str]:
        """Its columns as statements name them."""
        return {"caller": self.caller, "session": self.name}


@dataclass(frozen=True, slots=True)
class Place:
    """Project of a session: its name, and its namespace or the id of zeros."""

    namespace: UUID
    project: str

    @property
    def both(self) -> list[UUID]:
        """The namespaces of its sessions: the id of zeros too, since some began before its first memory."""
        return list(dict.fromkeys((NOWHERE, self.namespace)))


@dataclass(frozen=True, slots=True)
class OpenStatement:
    """Sentence that a person said in a session and that was not stored, with the number of requests in the session."""

    namespace: UUID
    session: str
    asks: int
    sentence: str
    said_at: datetime
    asked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Writing:
    """Text of a memory, and when it was stored or changed."""

    at: datetime
    content: str


@dataclass(frozen=True, slots=True)
class Given:
    """Former injections of a memory: whether this session has it, and whether none of several was used."""

    given: bool
    ignored: bool


@dataclass(frozen=True, slots=True)
class GivenBefore:
    """Former injections by memory, and the tokens that hooks of the session got."""

    memories: Mapping[UUID, Given]
    tokens: int


@dataclass(frozen=True, slots=True)
class Note:
    """A memory as it is injected; one that is not `whole` may be given again."""

    namespace: UUID
    memory: UUID
    rank: int
    note: str
    tokens: int
    whole: bool = True


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

    async def enter(self, place: Place, session: AssistantSession, now: datetime, said: Sequence[str] = ()) -> None:
        """Record that a session works in a project, and what was stated in it."""
        await self._database.rows(
            "injections/enter",
            namespace=place.namespace,
            project=place.project,
            **session.columns,
            now=now,
            stated=json.dumps({sentence: {"said_at": now.isoformat()} for sentence in said}),
        )

    async def given(
        self,
        namespaces: Sequence[UUID],
        session: AssistantSession,
        memories: Sequence[UUID],
        *,
        ignored: int,
        now: datetime,
    ) -> GivenBefore:
        """Return what was injected before, of these memories and into this session. One statement.

        A memory is ignored that was not used after so many injections.
        """
        rows = await self._database.rows(
            "injections/given",
            namespaces=namespaces,
            **session.columns,
            memories=memories,
            ignored=ignored,
            since=now - _MEASURED,
        )
        known = {row["id"]: made(Given, row) for row in rows if row["id"] is not None}
        return GivenBefore(known, rows[0]["tokens"])

    async def claim(
        self, id_: UUID, session: AssistantSession, event: str, now: datetime, heading: str, notes: Sequence[Note]
    ) -> set[UUID]:
        """Record the notes of an injection and return the memories that the session was not given before.

        One statement for each namespace: a transaction writes to one.
        """
        claimed: set[UUID] = set()
        for namespace in dict.fromkeys(note.namespace for note in notes):
            rows = await self._database.rows(
                "injections/claim",
                namespace=namespace,
                injection=id_,
                **session.columns,
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
            await self._database.rows("injections/drop", namespace=namespace, **session.columns, now=now)

    async def unused(
        self, namespaces: Sequence[UUID], session: AssistantSession, *, since: datetime, before: datetime
    ) -> list[UnusedNote]:
        """Return the notes that a session was given in this time and has not used."""
        return await self._database.all(
            UnusedNote, "injections/unused", namespaces=namespaces, **session.columns, since=since, before=before
        )

    async def written(self, namespaces: Sequence[UUID], caller: str, since: datetime) -> list[Writing]:
        """Return the latest 50 texts that a caller stored or changed since a time, newest first."""
        return await self._database.all(
            Writing, "injections/written", namespaces=namespaces, caller=caller, since=since, writes=_STORED
        )

    async def use(self, notes: Sequence[UnusedNote], session: AssistantSession, used: str, *, now: datetime) -> None:
        """Record the first use of notes by the session that they were given to. One statement for each namespace."""
        for namespace in dict.fromkeys(note.namespace for note in notes):
            await self._database.rows(
                "injections/use",
                namespace=namespace,
                memories=[note.memory for note in notes if note.namespace == namespace],
                **session.columns,
                used=used,
                now=now,
            )

    async def stated(self, place: Place, caller: str, session: str | None = None) -> list[OpenStatement]:
        """Return what a caller stated in a project and was not stored, oldest first; of one session or of all."""
        where = {"namespaces": place.both, "project": place.project, "caller": caller}
        return await self._database.all(OpenStatement, "injections/stated", **where, session=session)

    async def settle(self, place: Place, caller: str, sentences: Sequence[str]) -> None:
        """Remove statements that were stored or dropped. One statement for each namespace."""
        for namespace in place.both if sentences else ():
            await self._database.rows("injections/settle", namespace=namespace, caller=caller, sentences=sentences)

    async def ask(self, stated: Sequence[OpenStatement], caller: str, now: datetime) -> bool:
        """Record that a session is asked to store statements; False if another process asked meanwhile."""
        asked = False
        for namespace in dict.fromkeys(one.namespace for one in stated):
            own = [one for one in stated if one.namespace == namespace]
            row = await self._database.row(
                "injections/ask",
                namespace=namespace,
                caller=caller,
                session=own[0].session,
                asks=own[0].asks,
                stated=json.dumps(
                    {one.sentence: {"said_at": one.said_at.isoformat(), "asked_at": now.isoformat()} for one in own}
                ),
            )
            asked = asked or row is not None
        return asked

    async def pause(self, session: AssistantSession, now: datetime, until: datetime) -> None:
        """Silence the hooks of a session until a time; without a name, those of every session of its caller."""
        await self._database.rows("injections/pause", namespace=NOWHERE, **session.columns, now=now, until=until)

    async def resume(self, caller: str) -> None:
        """End every pause of a caller."""
        await self._database.rows("injections/resume", namespace=NOWHERE, caller=caller)

    async def is_paused(self, session: AssistantSession, now: datetime) -> bool:
        """Return True if the hooks of a session are silent."""
        row = await self._database.row("injections/paused", namespace=NOWHERE, **session.columns, now=now)
        return row is not None and row["until"] is not None

    async def last_session(self, place: Place, caller: str, before: datetime) -> tuple[str, datetime] | None:
        """Return name and begin of the caller's last session in a project that began before a time."""
        where = {"namespaces": place.both, "project": place.project, "caller": caller}
        row = await self._database.row("injections/last_session", **where, before=before)
        return None if row is None else (row["session"], row["started_at"])

    async def counts(self, project: UUID, now: datetime) -> tuple[int, list[str]]:
        """Count the memories of a project, and those of its most frequent kinds and tags, as "deploy 40"."""
        row = await self._database.row(
            "injections/counts", "fresh", namespace=project, now=now, quality_floor=QUALITY_FLOOR
        )
        assert row is not None
        return row["memories"], row["topics"]

    async def read(
        self, namespaces: Sequence[UUID], *, caller: str | None, session: str | None, limit: int
    ) -> list[InjectedNote]:
        """Return the latest notes, newest first; `session` is the beginning of its name."""
        return await self._database.all(
            InjectedNote, "injections/read", "fresh", namespaces=namespaces, caller=caller, session=session, fetch=limit
        )

    async def stats(self, namespaces: Sequence[UUID]) -> Mapping[str, dict[str, Any]]:
        """Sum up what was injected, by the name of the namespace, as NamespaceStats names the sums."""
        rows = await self._database.rows("injections/stats", "fresh", namespaces=namespaces)
        return {row.pop("name"): row for row in map(dict, rows)}

    async def count_before(self, namespace: UUID, before: datetime) -> int:
        """Count the notes from before a time."""
        row = await self._database.row("injections/count", "fresh", namespace=namespace, before=before)
        return 0 if row is None else int(row["count"])

    async def delete_before(self, namespace: UUID, before: datetime, batch: int) -> int:
        """Delete at most `batch` notes from before a time and return how many."""
        return len(
            await self._database.rows("injections/delete", "fresh", namespace=namespace, before=before, batch=batch)
        )

    async def delete_sessions_before(self, namespace: UUID, before: datetime) -> None:
        """Delete the sessions that began before a time."""
        await self._database.rows("injections/delete_sessions", "fresh", namespace=namespace, before=before)
