"""The ledger of injections: what hooks gave to which session, and whether it was used; and the sessions themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from folklore.db.rows import QUALITY_FLOOR, made
from folklore.db.store import Store, affected, many, number, one, only, value
from folklore.db.stores.events.audit import NOWHERE, Write

# The time in which the use of memories is measured.
_MEASURED = timedelta(days=30)
# A tag that a heading names in our own voice: at most three words, since a longer one could be an instruction, and bytes.
_PLAIN_TOPIC = r"^[[:alnum:]]+([:/_.-][[:alnum:]]+){0,2}$"
_LONGEST_TOPIC = 30
# What counts as "stored in this session".
_WRITES: tuple[Write, ...] = ("store", "import", "update", "merge", "supersede")


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
class SessionProject:
    """Project of a session: its name, and its namespace or the id of zeros."""

    namespace: UUID
    project: str

    @property
    def both(self) -> list[UUID]:
        """The namespaces of its sessions: the id of zeros too, since some began before its first memory."""
        return list(dict.fromkeys((NOWHERE, self.namespace)))

    @property
    def columns(self) -> dict[str, object]:
        """Its columns as statements name them."""
        return {"namespaces": self.both, "project": self.project}


@dataclass(frozen=True, slots=True)
class OpenAssertion:
    """A sentence of a session that no text written before `since` says.

    `requests` counts how often the session was asked to store something, for any sentence of this namespace.
    """

    namespace: UUID
    session: str
    requests: int
    sentence: str
    said_at: datetime
    asked_at: datetime | None
    since: datetime


@dataclass(frozen=True, slots=True)
class Writing:
    """Text of a memory, and when it was stored or changed."""

    at: datetime
    content: str


@dataclass(frozen=True, slots=True)
class PastInjection:
    """Former injections of a memory: whether this session has it, and whole; whether none of several was used."""

    given: bool
    whole: bool
    ignored: bool


@dataclass(frozen=True, slots=True)
class GivenBefore:
    """Former injections by memory, and the tokens that hooks of the session got."""

    memories: Mapping[UUID, PastInjection]
    tokens: int


@dataclass(frozen=True, slots=True)
class Note:
    """A memory as it is injected; one that is not `whole` may be given once more, whole."""

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


@dataclass(frozen=True, slots=True)
class PastSession:
    """Name of a session, and when it began."""

    session: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class ProjectCounts:
    """Number of memories of a project, and of those of its most frequent kinds and tags, as "deploy 40"."""

    memories: int
    topics: tuple[str, ...]


Placed = TypeVar("Placed", Note, UnusedNote, OpenAssertion)


class Injections(Store):
    """Injections and sessions, as the owner of the deployment."""

    unused = many(UnusedNote)
    written = many(Writing, writes=_WRITES)
    stated = many(OpenAssertion)
    stated_in = many(SessionProject)
    last_session = one(PastSession)
    pause = affected(namespace=NOWHERE)
    resume = affected(namespace=NOWHERE)
    paused = value(datetime, namespace=NOWHERE)
    counts = only(
        ProjectCounts,
        "fresh",
        quality_floor=QUALITY_FLOOR,
        plain=_PLAIN_TOPIC,
        longest=_LONGEST_TOPIC,
    )
    read = many(InjectedNote, "fresh")
    count = number("fresh")
    delete = affected("fresh")
    delete_sessions = affected("fresh")

    async def enter(
        self,
        project: SessionProject,
        session: AssistantSession,
        now: datetime,
        stated: Sequence[str] = (),
    ) -> None:
        """Record that a session works in a project, and what was stated in it."""
        await self._database.rows(
            "injections/enter",
            namespace=project.namespace,
            project=project.project,
            **session.columns,
            now=now,
            stated={sentence: {"said_at": now} for sentence in stated},
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

        A memory is ignored that was not used after so many injections into sessions of this caller.
        """
        rows = await self._database.rows(
            "injections/given",
            namespaces=namespaces,
            **session.columns,
            memories=memories,
            ignored=ignored,
            since=now - _MEASURED,
        )
        history = {
            row["id"]: made(PastInjection, row) for row in rows if row["id"] is not None
        }
        return GivenBefore(history, rows[0]["tokens"])

    async def claim(
        self,
        id_: UUID,
        session: AssistantSession,
        event: str,
        now: datetime,
        heading: str,
        notes: Sequence[Note],
    ) -> set[UUID]:
        """Record the notes of an injection and return the memories that the session was not given before, or not whole.

        One statement for each namespace: a transaction writes to one.
        """
        claimed: set[UUID] = set()
        values = {
            "injection": id_,
            **session.columns,
            "event": event,
            "now": now,
            "heading": heading,
        }
        for namespace, group in _by_namespace(notes):
            rows = await self._database.rows(
                "injections/claim", namespace=namespace, notes=group, **values
            )
            claimed |= {row["memory_id"] for row in rows}
        return claimed

    async def drop(
        self, namespaces: Sequence[UUID], session: AssistantSession, now: datetime
    ) -> None:
        """Record that the session has lost what it was given. One statement for each namespace."""
        for namespace in namespaces:
            await self._database.rows(
                "injections/drop", namespace=namespace, **session.columns, now=now
            )

    async def use(
        self,
        notes: Sequence[UnusedNote],
        session: AssistantSession,
        used: str,
        *,
        now: datetime,
    ) -> None:
        """Record the first use of notes by the session that they were given to. One statement for each namespace."""
        for namespace, group in _by_namespace(notes):
            values = {
                "memories": [note.memory for note in group],
                **session.columns,
                "used": used,
                "now": now,
            }
            await self._database.rows("injections/use", namespace=namespace, **values)

    async def settle(
        self,
        project: SessionProject,
        caller: str,
        sentences: Sequence[str],
        now: datetime,
    ) -> None:
        """Remove assertions that were stored or dropped; the others were compared now. One statement per namespace."""
        values = {
            "project": project.project,
            "caller": caller,
            "sentences": sentences,
            "now": now,
        }
        for namespace in project.both:
            await self._database.rows(
                "injections/settle", namespace=namespace, **values
            )

    async def ask(
        self, stated: Sequence[OpenAssertion], caller: str, now: datetime
    ) -> bool:
        """Record that a session is asked to store assertions; False if another process asked meanwhile."""
        is_first = False
        for namespace, group in _by_namespace(stated):
            texts = {}
            for assertion in group:
                times = {"said_at": assertion.said_at, "asked_at": now}
                texts[assertion.sentence] = times
            rows = await self._database.rows(
                "injections/ask",
                namespace=namespace,
                stated=texts,
                caller=caller,
                session=group[0].session,
                requests=group[0].requests,
            )
            is_first |= bool(rows)
        return is_first

    async def stats(self, namespaces: Sequence[UUID]) -> Mapping[str, dict[str, Any]]:
        """Sum up what was injected, by the name of the namespace, as NamespaceStats names the sums."""
        rows = await self._database.rows(
            "injections/stats", "fresh", namespaces=namespaces
        )
        return {row.pop("name"): row for row in map(dict, rows)}


def _by_namespace(rows: Sequence[Placed]) -> list[tuple[UUID, list[Placed]]]:
    groups: dict[UUID, list[Placed]] = {}
    for row in rows:
        groups.setdefault(row.namespace, []).append(row)
    return list(groups.items())
