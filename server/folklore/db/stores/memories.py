"""Memories: prepared to be stored, read by id, and listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Literal
from uuid import UUID

from pgvector import HalfVector

from folklore.db.database import Database, Plans, Session
from folklore.db.rows import memory_of, seen
from folklore.db.stores.models import KnownModel, register
from folklore.lazy import NDArray, numpy as np
from folklore.model import Draft, Filters, Memory, Sort

_EMBEDDING_COLUMNS = (
    "numbers",
    "passages",
    "begins",
    "ends",
    "shares",
    "vectors",
    "cues",
)


@dataclass(frozen=True, slots=True)
class PreparedMemory:
    """A checked draft with its id and the digest (SHA-256) of its normalised text.

    `request` is a digest of everything that was requested under the draft's idempotency key. `detected` is the language
    of the text, if the draft states none and it is clear.
    """

    id: UUID
    draft: Draft
    digest: bytes
    request: bytes = b""
    detected: str | None = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """The unit vector (dimensions,) of a text and, of a long one, those of its passages (n, dimensions).

    `ranges` has the first character of each passage, and the one after its last. `cues` is the vector of the cues of a
    memory, None without any.
    """

    vector: NDArray[np.float32]
    ranges: Sequence[tuple[int, int]] = ()
    passages: Sequence[NDArray[np.float32]] = ()
    cues: NDArray[np.float32] | None = None

    def rows(
        self, memory: UUID
    ) -> Iterator[
        tuple[UUID, int, int, int, int, float, HalfVector, HalfVector | None]
    ]:
        """Yield rows as embeddings/insert takes them.

        Each is memory, passage, number of passages, begin, end, share of the text, vector, vector of the cues.
        """
        passages = len(self.ranges)
        length = max((end for _, end in self.ranges), default=0)
        cues = None if self.cues is None else HalfVector(self.cues)
        yield memory, 0, passages, 0, 0, 1.0, HalfVector(self.vector), cues
        pairs = zip(self.ranges, self.passages, strict=True)
        for passage, ((begin, end), vector) in enumerate(pairs, start=1):
            share = (end - begin) / length
            half = HalfVector(vector)
            yield memory, passage, passages, begin, end, share, half, None


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of a batch and the model that made them; None where an embedding is pending."""

    by: KnownModel
    vectors: Sequence[Embedded | None]

    @property
    def model(self) -> UUID:
        """The id of the model."""
        return self.by.id

    def select(self, indices: Iterable[int]) -> Vectors:
        """Return the vectors at these indices of the batch."""
        return replace(self, vectors=[self.vectors[index] for index in indices])


@dataclass(frozen=True, slots=True)
class ListKey:
    """The values by which a row of a list is sorted; a page continues after those of its last row."""

    time: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class Listing:
    """Page of memories, the sort key of each, and True in `more` if further ones match."""

    memories: tuple[Memory, ...]
    keys: tuple[ListKey, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class ListingOrder:
    """The time that a list is sorted by, and its direction. Trending weighs recency with importance."""

    by: Literal["happened", "updated", "trending"] = "happened"
    ascending: bool = False

    @property
    def variants(self) -> str:
        """The variants of the statement."""
        first = "oldest" if self.ascending else "newest"
        return f"{self.by}:{first}"

    @classmethod
    def of(cls, sort: Sort) -> ListingOrder:
        """Return the order for the argument `sort`."""
        if sort == "score":
            return cls("trending")
        ascending = sort.endswith("_asc")
        if sort.startswith("updated"):
            return cls("updated", ascending)
        return cls("happened", ascending)


class Memories:
    """Memories table, for reading."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(
        self, namespaces: Iterable[UUID], ids: Sequence[UUID]
    ) -> list[tuple[UUID, Memory]]:
        """Read memories within these namespaces in the order of `ids`, each with its namespace. One statement.

        Unknown ids are left out. An id that an import brought into several namespaces comes once from each, in the
        order of their names.
        """
        rows = await self._database.rows(
            "memories/get", namespaces=list(namespaces), ids=ids
        )
        order = {id_: index for index, id_ in enumerate(ids)}
        rows.sort(key=lambda row: (order[row["id"]], row["namespace"]))
        return [(row["namespace_id"], memory_of(row, row["namespace"])) for row in rows]

    async def has_others(self, namespace: UUID, ids: Sequence[UUID]) -> bool:
        """Return whether a namespace holds memories besides these. One statement."""
        rows = await self._database.rows(
            "memories/others", namespace=namespace, ids=ids
        )
        return bool(rows[0]["found"])

    async def ending(
        self, namespaces: Iterable[UUID], endings: Sequence[str], *, limit: int
    ) -> dict[str, tuple[UUID, ...]]:
        """Find ids within these namespaces by their last hexadecimal digits, four or more. One statement."""
        rows = await self._database.rows(
            "memories/ending",
            "fresh",
            namespaces=list(namespaces),
            endings=endings,
            tails=[ending[-4:] for ending in endings],
            fetch=limit,
        )
        ids: dict[str, tuple[UUID, ...]] = dict.fromkeys(endings, ())
        for row in rows:
            ids[row["ending"]] += (row["id"],)
        return ids

    async def list(
        self,
        namespaces: Mapping[UUID, str],
        filters: Filters,
        *,
        limit: int,
        now: datetime,
        order: ListingOrder = ListingOrder(),
        after: ListKey | None = None,
    ) -> Listing:
        """Read one page in order of time. One statement.

        The tags, sessions and sources of several namespaces are looked up at once, in indexes of their own.
        """
        statement, values = seen(f"memories/list:{order.variants}", filters, now)
        if len(namespaces) == 1:
            statement += ":one"
        elif filters.tags or filters.source_prefix or filters.equal.get("session"):
            statement += ":together"
        plans: Plans = "kept" if filters.empty else "fresh"
        rows = await self._database.rows(
            statement,
            plans,
            namespaces=list(namespaces),
            fetch=limit + 1,
            after_time=after and after.time,
            after_id=after and after.id,
            **values,
        )
        page = rows[:limit]
        return Listing(
            tuple(memory_of(row, namespaces[row["namespace_id"]]) for row in page),
            tuple(ListKey(row["sorted_by"], row["id"]) for row in page),
            len(rows) > limit,
        )


def session_steps(drafts: Iterable[Draft]) -> Iterator[int]:
    """Yield for each draft the number of earlier drafts of its session that give no position either."""
    counts: dict[str | None, int] = {}
    for draft in drafts:
        step = counts.get(draft.session, 0)
        if draft.position is None:
            counts[draft.session] = step + 1
        yield step


async def lock_sessions(
    session: Session, namespace: UUID, drafts: Iterable[Draft]
) -> None:
    """Lock the namespace's sessions if the position of a draft follows from the stored ones."""
    if any(draft.session is not None and draft.position is None for draft in drafts):
        await session.row("namespaces/lock_sessions", namespace=namespace)


async def index_memories(
    session: Session,
    namespace: UUID,
    ids: Sequence[UUID],
    vectors: Vectors | None,
    now: datetime,
) -> None:
    """Write postings and embeddings of memories within the caller's transaction; `vectors` are in the order of ids."""
    if not ids:
        return
    await session.rows("postings/insert", namespace=namespace, ids=ids)
    if vectors is None:
        return
    embedded = []
    for id_, vector in zip(ids, vectors.vectors, strict=True):
        if vector is not None:
            embedded.append((id_, vector))
    if not embedded:
        return
    memories, columns = embedding_rows(embedded)
    write = partial(
        session.rows,
        "embeddings/insert",
        namespace=namespace,
        model=vectors.model,
        ids=memories,
        **columns,
    )
    if session.shards.distributed:
        # Citus may send the first writing to several shards, and then refuses to write the small table of models.
        await register(session, vectors.by, now)
    if not await write():
        await register(session, vectors.by, now)
        await write()


def embedding_rows(
    embedded: Iterable[tuple[UUID, Embedded]],
) -> tuple[list[UUID], dict[str, list[object]]]:
    """Return the memory of each row that is written, and the other columns as the statements name them."""
    rows: list[tuple[object, ...]] = []
    memories = []
    for id_, vectors in embedded:
        for memory, *others in vectors.rows(id_):
            memories.append(memory)
            rows.append(tuple(others))
    columns = [list(column) for column in zip(*rows, strict=True)]
    return memories, dict(zip(_EMBEDDING_COLUMNS, columns, strict=True))
