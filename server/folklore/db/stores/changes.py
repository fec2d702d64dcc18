"""Changes of memories: transactions in one namespace, and reads of revisions and relations."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from folklore.callers import Caller
from folklore.db.database import Database, Row, Session
from folklore.db.rows import (
    columns_of,
    filtered,
    made,
    memory_of,
    relation_of,
    revision_of,
)
from folklore.db.store import (
    Store,
    Transaction,
    affected,
    column,
    each,
    many,
    one,
    pairs,
    value,
)
from folklore.db.stores.events.audit import Write, audit_entry
from folklore.db.stores.memories import (
    PreparedMemory,
    Vectors,
    index_memories,
    lock_sessions,
    session_steps,
)
from folklore.db.stores.namespaces import (
    NewNamespace,
    ensure_namespace,
    stored_language,
)
from folklore.db.stores.upkeep.maintenance import erase
from folklore.db.stores.upkeep.planner_statistics import PlannerStatistics
from folklore.errors import NotFound
from folklore.model import FIELDS, Filters, JsonObject, Memory, Relation, Revision

# The columns that a revision can hold, as the fragment `changeable` lists them.
CHANGEABLE = (
    *FIELDS,
    "forgotten_at",
    "superseded_at",
    "superseded_by",
    "changed_by",
    "changed_at",
)


class Cues(NamedTuple):
    """The cues of a memory, and which were learned (the field `learned_cues`)."""

    every: Sequence[str]
    learned: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class State:
    """State of a memory before a change; `held` are its columns as JSON by name, if they were requested."""

    id: UUID
    revision: int
    author: str
    forgotten_at: datetime | None
    superseded_at: datetime | None
    superseded_by: UUID | None
    held: JsonObject


@dataclass(frozen=True, slots=True)
class Patch:
    """New values of a memory's columns as JSON by name, and the digest of its text if that changes."""

    id: UUID
    fields: JsonObject
    digest: bytes | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """Time at which a memory was forgotten, or superseded and by which memory."""

    id: UUID
    forgotten_at: datetime | None = None
    superseded_at: datetime | None = None
    superseded_by: UUID | None = None


@dataclass(frozen=True, slots=True)
class Superseded:
    """A superseded memory, the digest of its text, and the revision that kept its state before."""

    id: UUID
    digest: bytes
    revision: int


@dataclass(frozen=True, slots=True)
class Signature:
    """The author and the time of the last change of a text; neither for a text that is its author's."""

    changed_by: str | None = None
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Retagged:
    """A memory with a renamed tag, the revision that kept its former tags, and True if nothing changed it since."""

    id: UUID
    revision: int
    unchanged: bool


@dataclass(frozen=True, slots=True)
class KeyAnswer:
    """Memory that answered an idempotency key, and the digest of the request."""

    id: UUID
    request: bytes


@dataclass(frozen=True, slots=True)
class Inserted:
    """Memory with a stored text; `new` is False for a known text."""

    id: UUID
    new: bool


class NamespaceTransaction(Transaction):
    """Transaction in one namespace; its caller and time are written to every revision, relation and audit entry."""

    add_language = affected()
    superseded_by = pairs(UUID, UUID)
    in_force = value(UUID)
    update = affected()
    close = affected()
    history = each(revision_of)
    signature = one(Signature)
    restored = each(revision_of)
    merged_at = column(UUID)
    superseded_at = many(Superseded)
    retagged = many(Retagged)

    def __init__(
        self,
        session: Session,
        id_: UUID,
        caller: Caller,
        now: datetime,
        language: str | None = None,
        name: str = "",
    ) -> None:
        super().__init__(
            session, namespace=id_, now=now, author=caller.author, agent=caller.agent
        )
        self.namespace = id_
        self.name = name
        self.now = now
        self.caller = caller
        self._language = language

    async def insert(
        self, batch: Sequence[PreparedMemory], vectors: Vectors | None
    ) -> list[Inserted]:
        """Store memories with postings and vectors. A constant number of statements.

        A text that is known, or occurs earlier in the batch, is confirmed and keeps its id.
        """
        if not batch:
            return []
        by_text: dict[bytes, PreparedMemory] = {}
        for memory in batch:
            by_text.setdefault(memory.digest, memory)
        distinct = list(by_text.values())
        drafts = [memory.draft for memory in distinct]
        await lock_sessions(self._session, self.namespace, drafts)
        rows = await self.rows("changes/insert", drafts=self._rows_of(distinct))
        derived = [row["id"] for row in rows if row["is_derived"]]
        if derived:
            await self.rows("reflections/adopt", ids=derived)

        inserted = _inserted(batch, rows)
        new = [index for index, memory in enumerate(inserted) if memory.new]
        await index_memories(
            self._session,
            self.namespace,
            [inserted[index].id for index in new],
            None if vectors is None else vectors.select(new),
            self.now,
        )
        return inserted

    def _rows_of(self, batch: Sequence[PreparedMemory]) -> list[dict[str, object]]:
        rows = []
        steps = session_steps(memory.draft for memory in batch)
        for memory, step in zip(batch, steps, strict=True):
            draft = memory.draft
            row = columns_of(draft) | {
                "id": memory.id,
                "step": step,
                "author": draft.author or self.caller.author,
                "agent": self.caller.agent,
                "created_at": draft.created_at or self.now,
                "digest": memory.digest,
            }
            row["language"] = draft.language
            if not draft.language:
                row["language"] = stored_language(memory.detected, self._language)
            rows.append(row)
        return sorted(rows, key=itemgetter("digest"))  # two batches never deadlock

    async def key_answers(self, keys: Sequence[str | None]) -> list[KeyAnswer | None]:
        """Return the answers of idempotency keys that were used. One statement, if any key is given.

        The key of a forgotten memory becomes free, like its text: one statement more.
        """
        requested = sorted({key for key in keys if key is not None})
        if not requested:
            return [None] * len(keys)

        answers = {}
        freed = []
        for row in await self.rows("changes/find_keys", keys=requested):
            if row["forgotten"]:
                freed.append(row["key"])
            else:
                answers[row["key"]] = made(KeyAnswer, row)
        if freed:
            await self.rows("changes/release_keys", keys=freed)
        return [None if key is None else answers.get(key) for key in keys]

    async def remember_keys(self, answers: Mapping[str, KeyAnswer]) -> None:
        """Record the requests under keys. One statement, if any key is given.

        Raises ConcurrentChange if another transaction recorded one of them meanwhile.
        """
        if answers:
            await self.rows(
                "changes/insert_keys",
                keys=list(answers),
                ids=[answer.id for answer in answers.values()],
                requests=[answer.request.hex() for answer in answers.values()],
            )

    async def states(
        self, ids: Sequence[UUID], *, whole: bool = False
    ) -> dict[UUID, State]:
        """Read the states of memories in the namespace; with `whole` their columns too. One statement."""
        rows = await self.rows("changes/states", ids=ids, whole=whole)
        return {
            row["id"]: made(State, row, held=json.loads(row["held"] or "{}"))
            for row in rows
        }

    async def read(self, ids: Sequence[UUID]) -> list[Memory]:
        """Read memories in the order of `ids`. One statement."""
        rows = await self._session.rows(
            "memories/get", namespaces=[self.namespace], ids=ids
        )
        memories = {row["id"]: memory_of(row, row["namespace"]) for row in rows}
        return [memories[id_] for id_ in ids if id_ in memories]

    async def matching(
        self, filters: Filters, limit: int, only: Sequence[UUID] | None = None
    ) -> list[UUID]:
        """Return the first memories that match filters, of `only` if given. One statement."""
        name, values = filtered("changes/match", filters, self.now)
        rows = await self.rows(name, fetch=limit, shown=only, **values)
        return [row["id"] for row in rows]

    async def record(
        self,
        ids: Sequence[UUID],
        action: Write,
        fields: Sequence[str],
        *,
        reasons: Mapping[UUID, str] | None = None,
        undoes: Mapping[UUID, int] | None = None,
    ) -> None:
        """Write revisions with what memories hold in the columns `fields`, before the change. Two statements.

        `reasons` and `undoes`, the number of the revision that is undone, are by memory.
        """
        await self.rows(
            "changes/record",
            ids=ids,
            action=action,
            fields=fields,
            reasons={str(id_): reason for id_, reason in (reasons or {}).items()},
            undoes={str(id_): number for id_, number in (undoes or {}).items()},
        )
        await self.audit(action, ids)

    async def unindex(self, ids: Sequence[UUID]) -> None:
        """Delete the postings of memories, before their words change. One statement."""
        await self.rows("postings/delete", ids=ids)

    async def reindex(
        self,
        id_: UUID,
        *,
        content_changed: bool,
        cues_changed: bool,
        vectors: Vectors | None,
    ) -> None:
        """Write the postings of a memory again; if its content changed, `vectors` replace its own (None: pending).

        The vector of changed cues is pending (memory/records/cues.py).
        """
        if content_changed:
            await self.rows("embeddings/delete_by_id", ids=[id_])
        elif cues_changed:
            await self.rows("embeddings/clear_cues", ids=[id_])
        await index_memories(
            self._session,
            self.namespace,
            [id_],
            vectors if content_changed else None,
            self.now,
        )
        if not content_changed:
            await self.rows("embeddings/update_length", ids=[id_])

    async def write_cues(self, cues: Mapping[UUID, Cues]) -> None:
        """Give memories other cues, with a revision of each. Six statements; their vectors are pending."""
        if not cues:
            return
        ids = list(cues)
        await self.record(ids, "update", ["cues", "learned_cues"])
        await self.unindex(ids)
        patches = []
        for id_, of_memory in cues.items():
            fields: JsonObject = {
                "cues": list(of_memory.every),
                "learned_cues": list(of_memory.learned),
            }
            patches.append(Patch(id_, fields))
        await self.update(changes=patches)
        await index_memories(self._session, self.namespace, ids, None, self.now)
        await self.rows("embeddings/clear_cues", ids=ids)

    async def answers_to(self, id_: UUID, queries: Sequence[bytes]) -> list[int]:
        """Return how often a memory answered each of some questions, by their digests. One statement."""
        rows = await self.rows(
            "usage/asked", memory=id_, queries=[query.hex() for query in queries]
        )
        return [row["answers"] for row in rows]

    async def learn_cues(self, id_: UUID, cues: Cues) -> None:
        """Give a memory cues that were learned; five statements. Their vector is pending.

        It is no change that somebody made: there is no revision, which an undo would take back in place of the
        last change, and whoever read the memory may still change it with the revision that they read.
        """
        await self.unindex([id_])
        await self.rows(
            "changes/learn", id=id_, cues=list(cues.every), learned=list(cues.learned)
        )
        await index_memories(self._session, self.namespace, [id_], None, self.now)
        await self.rows("embeddings/clear_cues", ids=[id_])
        await self.audit("update", [id_], detail="learned a cue")

    async def relate(
        self, relations: Sequence[Relation]
    ) -> dict[tuple[UUID, str, UUID], bool]:
        """Write relations; return those whose memories exist, with True for a new one. Two statements."""
        rows = await self._related("relate", "relate", relations=relations)
        written = {}
        for row in rows:
            written[row["from_id"], row["type"], row["to_id"]] = bool(row["is_new"])
        return written

    async def unrelate(
        self, relations: Sequence[Relation]
    ) -> set[tuple[UUID, str, UUID]]:
        """Remove relations; return those that existed. Two statements."""
        rows = await self._related("unrelate", "unrelate", relations=relations)
        return {(row["from_id"], row["type"], row["to_id"]) for row in rows}

    async def copy_relations(self, ids: Sequence[UUID], to: UUID) -> None:
        """Copy the relations of memories to another one, but those between them. Two statements."""
        await self._related("copy_relations", "relate", ids=ids, to=to)

    async def unrelate_since(self, id_: UUID, change: Revision) -> None:
        """Remove the relations of a memory that a change of it wrote. Two statements."""
        await self._related(
            "unrelate_since",
            "unrelate",
            id=id_,
            author=change.author,
            at=change.changed_at,
        )

    async def _related(
        self, name: str, action: Write, /, **values: object
    ) -> list[Row]:
        rows = await self.rows(f"changes/{name}", **values)
        ids = {row["from_id"] for row in rows} | {row["to_id"] for row in rows}
        await self.audit(action, sorted(ids), len(rows))
        return rows

    async def tagged(self, tag: str) -> tuple[list[UUID], list[str]]:
        """Return the memories with a tag or one below it, unless forgotten, and these tags. One statement."""
        rows = await self.rows("changes/tagged", tag=tag)
        tags = set[str]()
        for row in rows:
            tags.update(row["held"])
        return [row["id"] for row in rows], sorted(tags)

    async def retag(self, ids: Sequence[UUID], renamed: Mapping[str, str]) -> None:
        """Rename tags of memories; the revision of each increases by one. Four statements."""
        await self._change_tags(
            "changes/retag", ids, old=renamed.keys(), new=renamed.values()
        )

    async def restore_tags(self, revisions: Mapping[UUID, int]) -> None:
        """Give memories the tags that a revision of each kept; the revision increases by one. Four statements."""
        await self._change_tags(
            "changes/restore_tags", list(revisions), revisions=revisions.values()
        )

    async def _change_tags(
        self, name: str, ids: Sequence[UUID], **values: object
    ) -> None:
        await self.unindex(ids)
        await self.rows(name, ids=ids, **values)
        await index_memories(self._session, self.namespace, ids, None, self.now)
        await self.rows("embeddings/update_length", ids=ids)

    async def erase(self, ids: Sequence[UUID]) -> None:
        """Delete memories with all rows that belong to them, and the reflections derived from them. Six statements."""
        erased = await erase(self._session, self.namespace, ids)
        await self.audit("erase", sorted(erased))

    async def audit(
        self,
        action: Write,
        ids: Sequence[UUID] = (),
        amount: int | None = None,
        detail: str | None = None,
    ) -> None:
        """Log a write in the audit log, if any memory is concerned. One statement."""
        if ids or amount or detail:
            entry = audit_entry(
                action,
                caller=self.caller,
                now=self.now,
                namespace=self.namespace,
                memories=ids,
                amount=amount,
                detail=detail,
            )
            await self.rows("audit/insert", **entry)


def _inserted(batch: Sequence[PreparedMemory], rows: Sequence[Row]) -> list[Inserted]:
    """Return what became of a batch, by the rows of its texts; only the first memory of a text can be new."""
    by_text = {row["digest"]: row for row in rows}
    new_texts = {row["digest"] for row in rows if row["is_new"]}
    inserted = []
    for memory in batch:
        is_new = memory.digest in new_texts
        new_texts.discard(memory.digest)
        inserted.append(Inserted(by_text[memory.digest]["id"], is_new))
    return inserted


class Changes(Store):
    """Transactions that change memories, and reads of revisions and relations."""

    history = each(revision_of)

    def __init__(
        self, database: Database, statistics: PlannerStatistics | None = None
    ) -> None:
        super().__init__(database)
        self.statistics = statistics or PlannerStatistics(database)

    @asynccontextmanager
    async def of(
        self, namespace: UUID, *, caller: Caller, now: datetime
    ) -> AsyncIterator[NamespaceTransaction]:
        """Open a transaction with an exclusive lock on a namespace; commit at the end of the block. Raises NotFound."""
        async with self._database.transaction() as session:
            if await session.row("namespaces/lock", namespace=namespace) is None:
                raise NotFound("The namespace was deleted.")
            yield NamespaceTransaction(session, namespace, caller, now)

    @asynccontextmanager
    async def storing(
        self, namespace: NewNamespace, *, caller: Caller, now: datetime, exclusive: bool
    ) -> AsyncIterator[NamespaceTransaction]:
        """Open a transaction in the namespace of this name, which is created if it is new; commit at the end.

        `exclusive` locks it, for a store that also changes stored memories.
        """
        async with self._database.transaction() as session:
            if exclusive:
                await session.row("namespaces/lock_by_name", name=namespace.name)
            id_, language, name = await ensure_namespace(
                session, namespace, author=caller.author, now=now
            )
            yield NamespaceTransaction(session, id_, caller, now, language, name)

    async def namespaces_of(
        self,
        namespaces: Sequence[UUID],
        ids: Sequence[UUID],
        *,
        unforgotten: bool = False,
    ) -> dict[UUID, tuple[UUID, ...]]:
        """Return the namespaces, of those given, that hold each memory. One statement."""
        rows = await self._database.rows(
            "memories/locate", namespaces=namespaces, ids=ids, unforgotten=unforgotten
        )
        namespaces_of: dict[UUID, tuple[UUID, ...]] = {}
        for row in rows:
            others = namespaces_of.get(row["id"], ())
            namespaces_of[row["id"]] = (*others, row["namespace_id"])
        return namespaces_of

    async def count_revisions(
        self, namespaces: Sequence[UUID], ids: Sequence[UUID]
    ) -> dict[tuple[UUID, UUID], int]:
        """Count the revisions of memories, by namespace and id. One statement."""
        rows = await self._database.rows(
            "changes/count_revisions", namespaces=namespaces, ids=ids
        )
        counts = {}
        for row in rows:
            counts[row["namespace_id"], row["memory_id"]] = row["revisions"]
        return counts

    async def relations(
        self, namespaces: Sequence[UUID], ids: Sequence[UUID], limit: int
    ) -> list[tuple[UUID, Relation]]:
        """Read relations of memories in both directions, each with its namespace, strongest first. One statement."""
        rows = await self._database.rows(
            "changes/relations", namespaces=namespaces, ids=ids, fetch=limit
        )
        return [(row["namespace_id"], relation_of(row)) for row in rows]
