"""Transfer of memories between databases: their values, the reads of an export, the transactions of an import."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from operator import attrgetter, itemgetter
from uuid import UUID

import asyncpg
from pgvector import HalfVector

from folklore.callers import Caller
from folklore.db.database import Database, Session
from folklore.db.rows import (
    columns_of,
    fields_of,
    made,
    relation_of,
    revision_of,
    short,
)
from folklore.db.store import Store, pairs
from folklore.db.stores.changes import CHANGEABLE, NamespaceTransaction
from folklore.db.stores.memories import (
    Vectors,
    index_memories,
    lock_sessions,
    session_steps,
)
from folklore.db.stores.models import KnownModel, active_model
from folklore.db.stores.namespaces import (
    NewNamespace,
    ensure_namespace,
    stored_language,
)
from folklore.db.stores.postings import PACKED_AT_ONCE, PostingStore
from folklore.db.stores.upkeep.planner_statistics import PlannerStatistics
from folklore.errors import Conflict
from folklore.model import Draft, Relation, Revision, Shared

# Bytes of a half float.
HALF_BYTES = 2


@dataclass(frozen=True, slots=True)
class TransferredNamespace:
    """The properties of a namespace that a transfer keeps."""

    id: UUID
    name: str
    language: str
    created_at: datetime
    created_by: str
    description: str | None = None
    shared: Shared = "never"


@dataclass(frozen=True, slots=True)
class Past:
    """The columns of a memory that its author does not state; None where an import gives no value."""

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
    changed_by: str | None = None
    changed_at: datetime | None = None


PAST = tuple(Past.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class ModelVector:
    """A vector in half floats, little-endian, with the identity of the model that made it."""

    provider: str
    name: str
    dimensions: int
    vector: bytes
    revision: str = ""
    query_prefix: str = ""
    document_prefix: str = ""
    # The vectors of the passages of a long text, each with its first character and the one after its last.
    passages: Sequence[tuple[int, int, bytes]] = ()
    # The vector of the cues.
    cues: bytes | None = None


# The properties that the id of a model follows from.
MODEL_IDENTITY = tuple(
    name
    for name in ModelVector.__dataclass_fields__
    if name not in ("vector", "passages", "cues")
)


@dataclass(frozen=True, slots=True)
class TransferredMemory:
    """A whole memory: its draft, its past, and its vector if it was requested and exists.

    `keys` are the idempotency keys besides that of the draft, each with the digest (hexadecimal) of its request. An
    import sets `digest`, the SHA-256 of the normalised text, `line`, the number of the memory's line, `place`, its file
    and line for messages, and `detected`, the language of the text, if the draft states none and it is clear.
    """

    draft: Draft
    past: Past = Past()
    vector: ModelVector | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    digest: bytes = b""
    line: int = 0
    detected: str | None = None
    place: str = ""

    @property
    def id(self) -> UUID:
        """The id of the memory. A draft that a line states may lack one, a checked one never does."""
        assert self.draft.id is not None
        return self.draft.id

    @property
    def live(self) -> bool:
        """True if it is neither forgotten nor superseded: only live texts must be unique."""
        return self.past.forgotten_at is None and self.past.superseded_at is None


@dataclass(frozen=True, slots=True)
class ExistingMemory:
    """A stored memory with the id, the text or an idempotency key of an imported one.

    `requested` is True if a store used the key here: then the memory keeps it even if an import replaces the row.
    """

    id: UUID
    digest: bytes
    key: str | None
    live: bool
    requested: bool = False


@dataclass(frozen=True, slots=True)
class Batch:
    """Memories that one transaction writes to one namespace. `vectors` are those of `new`, then of `replaced`.

    With `all_or_nothing`, memories that other requests stored since the batch was compared are a Conflict; without it
    they stay as they are.
    """

    namespace: NewNamespace
    new: Sequence[TransferredMemory]
    replaced: Sequence[TransferredMemory]
    vectors: Vectors | None
    all_or_nothing: bool = False


@dataclass(frozen=True, slots=True)
class Successor:
    """The memory that superseded another one."""

    memory_id: UUID
    successor_id: UUID


@dataclass(frozen=True, slots=True)
class RequestKey:
    """A further idempotency key of a memory, with the digest (hexadecimal) of the request that it answered."""

    memory_id: UUID
    key: str
    request: str


# Rows that refer to memories, and the statements that write them.
Link = Relation | Revision | Successor | RequestKey
_LINK_STATEMENTS = {
    Relation: "transfer/insert_relations",
    Revision: "transfer/insert_revisions",
    Successor: "transfer/link_successors",
    RequestKey: "transfer/insert_keys",
}


class Snapshot:
    """The reads of one export, in one transaction that sees one moment."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def namespaces(
        self, names: Sequence[str] | None
    ) -> list[TransferredNamespace]:
        """Read these namespaces, or all, ordered independently of the database's collation."""
        rows = await self._session.rows("transfer/namespaces", names=names)
        namespaces = [made(TransferredNamespace, row) for row in rows]
        return sorted(namespaces, key=attrgetter("name"))

    async def active_model(self) -> KnownModel | None:
        """Read the active model; None if nothing was ever embedded."""
        return await active_model(self._session)

    async def memories(
        self, namespace: UUID, model: KnownModel | None
    ) -> AsyncIterator[TransferredMemory]:
        """Yield every memory of a namespace by creation and id, with its vector in `model` if one is given."""
        id_ = None if model is None else model.id
        rows = self._stream(
            "transfer/memories", namespace=namespace, ids=None, model=id_
        )
        async for row in rows:
            memory = _memory_of(row)
            if model is not None and row["vector"] is not None:
                memory = replace(memory, vector=_vector_of(row, model))
            yield memory

    async def relations(self, namespace: UUID) -> AsyncIterator[Relation]:
        """Yield every relation of a namespace."""
        async for row in self._stream("transfer/relations", namespace=namespace):
            yield relation_of(row)

    async def revisions(self, namespace: UUID) -> AsyncIterator[Revision]:
        """Yield every revision of a namespace."""
        async for row in self._stream("transfer/revisions", namespace=namespace):
            yield revision_of(row)

    async def _stream(
        self, cursor: str, /, **values: object
    ) -> AsyncIterator[asyncpg.Record]:
        """Yield the rows of a cursor, which needs constant memory.

        The cursors are statements in files, not asyncpg's own: these need named prepared statements, which some
        poolers do not support. Each has a name of its own, since a prepared `fetch` always returns the same columns.
        """
        await self._session.rows(f"{cursor}_open", **values)
        while rows := await self._session.rows(f"{cursor}_fetch"):
            for row in rows:
                yield row
        await self._session.rows("transfer/close")


class ImportTransaction(NamespaceTransaction):
    """Writes memories with their past within a transaction in one namespace. Caller, language and time are defaults."""

    async def import_new(self, memories: Sequence[TransferredMemory]) -> list[UUID]:
        """Insert memories without postings; return the new ids, those whose id, text and key are free."""
        if not memories:
            return []
        rows = await self.rows("transfer/insert", memories=self._columns(memories))
        return [row["id"] for row in rows]

    async def replace(self, memories: Sequence[TransferredMemory]) -> list[UUID]:
        """Replace the stored memories of the same ids, record revisions, and delete their postings and vectors."""
        if not memories:
            return []
        ids = [memory.id for memory in memories]
        await self.record(ids, "import", CHANGEABLE)
        await self.unindex(ids)
        await self.rows("embeddings/delete_by_id", ids=ids)
        statement = "transfer/replace"
        if self.caller.access is not None:
            statement += ":token"
        rows = await self.rows(statement, memories=self._columns(memories))
        return [row["id"] for row in rows]

    async def index(
        self,
        memories: Sequence[TransferredMemory],
        vectors: Vectors | None,
        new: set[UUID],
    ) -> None:
        """Write postings and vectors of the written ones of `memories`, which `vectors` are in the order of."""
        written = []
        ids = []
        for index, memory in enumerate(memories):
            if memory.id in new:
                written.append(index)
                ids.append(memory.id)
        if vectors is not None:
            vectors = vectors.select(written)
        await index_memories(self._session, self.namespace, ids, vectors, self.now)

    def _columns(
        self, memories: Sequence[TransferredMemory]
    ) -> list[dict[str, object]]:
        steps = session_steps(memory.draft for memory in memories)
        rows = []
        for memory, step in zip(memories, steps, strict=True):
            rows.append({**self._row(memory), "step": step})
        return sorted(rows, key=itemgetter("digest"))  # two batches never deadlock

    def _row(self, memory: TransferredMemory) -> dict[str, object]:
        draft = memory.draft
        created_at = draft.created_at or self.now
        row = columns_of(draft) | asdict(memory.past)
        row |= {
            "id": memory.id,
            "created_at": created_at,
            "author": draft.author,
            "digest": memory.digest,
            "idempotency_key": draft.idempotency_key,
        }
        defaults = {
            "trust": "stated",
            "updated_at": created_at,
            "recall_count": 0,
            "confirmed_count": 0,
            "revision": 1,
            "author": self.caller.author,
            "language": stored_language(memory.detected, self._language),
        }
        for name, default in defaults.items():
            if row[name] is None:
                row[name] = default
        return row


class Transfers(Store):
    """The statements of export and import."""

    imported = pairs(UUID, str)

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._statistics = PlannerStatistics(database)
        self._unpacked: Counter[UUID] = Counter()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        """Open a snapshot for the length of the block, on a connection outside the pool."""
        async with self._database.snapshot() as session:
            yield Snapshot(session)

    async def active_model(self) -> KnownModel | None:
        """Read the active model; None if nothing was ever embedded. One statement."""
        async with self._database.session() as session:
            return await active_model(session)

    async def namespace_id(self, name: str) -> UUID | None:
        """Return the id of the namespace of this name, if it exists. One statement."""
        row = await self._database.row("transfer/namespaces", names=[name])
        return None if row is None else row["id"]

    async def create_namespace(self, namespace: TransferredNamespace) -> None:
        """Create a namespace with these properties, unless one of its name exists. One statement."""
        await self._database.rows("namespaces/insert", **asdict(namespace))

    async def existing(
        self, namespace: UUID, batch: Iterable[TransferredMemory]
    ) -> list[ExistingMemory]:
        """Return the stored memories with an id, text or key of this batch. One statement."""
        ids = []
        digests = []
        keys = []
        for memory in batch:
            ids.append(memory.id)
            digests.append(memory.digest)
            if memory.draft.idempotency_key is not None:
                keys.append(memory.draft.idempotency_key)
        rows = await self._database.rows(
            "transfer/existing",
            namespace=namespace,
            ids=ids,
            digests=digests,
            keys=keys,
        )
        return [made(ExistingMemory, row) for row in rows]

    async def existing_ids(self, namespace: UUID, ids: Iterable[UUID]) -> set[UUID]:
        """Return those of these ids that the namespace has. One statement."""
        rows = await self._database.rows(
            "transfer/existing", namespace=namespace, ids=ids, digests=[], keys=[]
        )
        return {row["id"] for row in rows}

    async def memories(
        self, namespace: UUID, ids: Sequence[UUID]
    ) -> dict[UUID, TransferredMemory]:
        """Read whole memories, by id. One statement."""
        rows = await self._database.rows(
            "transfer/memories", namespace=namespace, ids=ids, model=None
        )
        return {row["id"]: _memory_of(row) for row in rows}

    async def write(self, batch: Batch, *, caller: Caller, now: datetime) -> set[UUID]:
        """Write a batch in one transaction and a constant number of statements; return the ids that were written.

        Raises Conflict (`all_or_nothing`), ConcurrentChange, InvalidInput for a value that Postgres refuses.
        """
        memories = [*batch.new, *batch.replaced]
        async with self._database.transaction() as session:
            if batch.replaced:
                await session.row("namespaces/lock_by_name", name=batch.namespace.name)
            namespace, language, _ = await ensure_namespace(
                session, batch.namespace, author=caller.author, now=now
            )
            await lock_sessions(
                session, namespace, (memory.draft for memory in memories)
            )
            change = ImportTransaction(session, namespace, caller, now, language)
            # Replaced first, so that their former texts are free for new memories.
            replaced = await change.replace(batch.replaced)
            inserted = await change.import_new(batch.new)
            ids = {*replaced, *inserted}
            if batch.all_or_nothing and len(ids) < len(memories):
                raise Conflict(
                    "Other requests stored some of the same memories at the same time.",
                    hint="Try again.",
                )
            await change.index(memories, batch.vectors, ids)
            # the replaced ones are in the audit log already
            await change.audit("import", inserted)
        self._statistics.stored(len(ids))
        await self._pack(namespace, len(ids))
        return ids

    async def _pack(self, namespace: UUID, written: int) -> None:
        """Pack postings once so many memories were written; a token may not."""
        self._unpacked[namespace] += written
        is_enough = self._unpacked[namespace] >= PACKED_AT_ONCE
        if is_enough and self._database.token_key is None:
            packed = await PostingStore(self._database).pack(namespace)
            self._unpacked[namespace] -= packed

    async def write_links(self, namespace: UUID, links: Sequence[Link]) -> set[int]:
        """Write links in one transaction, without changing existing ones; return the indexes of those that fit.

        A link fits if the memories that it needs are stored. A key always does: one in use stays with its memory.
        """
        fitting: set[int] = set()
        async with self._database.transaction() as session:
            await session.row("namespaces/lock", namespace=namespace)
            for type_, statement in _LINK_STATEMENTS.items():
                rows = []
                for index, link in enumerate(links):
                    if isinstance(link, type_):
                        rows.append({"index": index, **asdict(link)})
                if rows:
                    written = await session.rows(
                        statement, namespace=namespace, links=rows
                    )
                    fitting.update(row["index"] for row in written)
        return fitting


def _memory_of(row: asyncpg.Record) -> TransferredMemory:
    past = made(Past, row, quality=short(row["quality"]))
    return TransferredMemory(
        made(Draft, row, **fields_of(row)), past, keys=json.loads(row["keys"] or "{}")
    )


def _vector_of(row: asyncpg.Record, model: KnownModel) -> ModelVector:
    identity = {name: getattr(model, name) for name in MODEL_IDENTITY}
    ranges = row["ranges"] or ()
    vectors = row["passages"] or ()
    passages = []
    for (begin, end), vector in zip(ranges, vectors, strict=True):
        passages.append((begin, end, _halves(vector)))
    cues = None
    if row["vector_of_cues"] is not None:
        cues = _halves(row["vector_of_cues"])
    return ModelVector(
        **identity, vector=_halves(row["vector"]), passages=passages, cues=cues
    )


def _halves(vector: HalfVector) -> bytes:
    return vector.to_numpy().astype("<f2").tobytes()
