"""Memories: stored in batches, fetched by id, listed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from folklore.db.database import Database, Session
from folklore.db.rows import memory_of, visibility
from folklore.db.stores.audit import note
from folklore.db.stores.drafts import stated, steps
from folklore.db.stores.idempotency import Answered, Answers, answered, remember
from folklore.db.stores.models import KnownModel, register
from folklore.db.stores.namespaces import ensure_namespace
from folklore.db.stores.planner_statistics import PlannerStatistics
from folklore.errors import Raced
from folklore.model import Caller, Draft, Filters, Memory


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that was checked: what goes into the row, and its digest (SHA-256 of the normalised text).

    `request` is a digest of all that is asked under the draft's idempotency key.
    """

    id: UUID
    draft: Draft
    digest: bytes
    request: bytes = b""


# What became of each of a batch, in order: (id, new).
Outcome = Sequence[tuple[UUID, bool]]


@dataclass(frozen=True, slots=True)
class Inserted:
    """What became of a batch."""

    namespace: UUID
    outcome: Outcome
    answers: Answers


@dataclass(frozen=True, slots=True)
class Vectors:
    """A batch's vectors and the model that made them; an entry is None where the vector is owed."""

    by: KnownModel
    vectors: Sequence[NDArray[np.float32] | None]

    @property
    def model(self) -> UUID:
        """The model's id."""
        return self.by.id


# Raises what is to be said against a batch whose keys had these answers.
Judge = Callable[[Answers], None]
# What a store does beside storing, within its transaction.
Afterwards = Callable[[Session, UUID, Outcome, Answers], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Page:
    """Where a listing goes on: after this row."""

    time: datetime
    id: UUID


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of memories, the place of each in the order, and whether there are more."""

    memories: tuple[Memory, ...]
    places: tuple[Page, ...]
    more: bool


class Memories:
    """The memories table with what hangs on it: postings and embeddings."""

    def __init__(self, database: Database, statistics: PlannerStatistics | None = None) -> None:
        self._database = database
        self.statistics = statistics or PlannerStatistics(database)

    async def insert(
        self,
        namespace: str,
        batch: Sequence[Prepared],
        vectors: Vectors | None,
        *,
        caller: Caller,
        namespace_id: UUID,
        language: str,
        now: datetime,
        judge: Judge,
        then: Afterwards | None = None,
    ) -> Inserted:
        """Store a batch in one transaction and a constant number of statements.

        `namespace_id` and `language` serve if the namespace must be made. A text that is known already, or stands in
        the batch before, gives the id it has; so does an idempotency key, and nothing more is done for what it comes
        with. `judge` may object to that. `then` changes other memories in the same transaction, which has the namespace
        to itself for that.
        """
        given = (namespace, batch, vectors, caller, namespace_id, language, now, judge, then)
        try:
            inserted = await self._insert(*given)
        except Raced:  # a key of ours was used between our look and our write: it is seen now
            inserted = await self._insert(*given)
        self.statistics.stored(sum(new for _, new in inserted.outcome))
        return inserted

    async def _insert(
        self,
        namespace: str,
        batch: Sequence[Prepared],
        vectors: Vectors | None,
        caller: Caller,
        namespace_id: UUID,
        language: str,
        now: datetime,
        judge: Judge,
        then: Afterwards | None,
    ) -> Inserted:
        async with self._database.transaction() as session:
            if then is not None:
                await session.row("namespaces_hold_name", name=namespace)
            namespace_id, language = await ensure_namespace(
                session,
                new_id=namespace_id,
                name=namespace,
                language=language,
                languages=sorted({item.draft.language for item in batch if item.draft.language}),
                author=caller.author,
                now=now,
            )
            known = await answered(session, namespace_id, [item.draft.idempotency_key for item in batch])
            answers = [known.get(item.draft.idempotency_key) for item in batch]
            judge(answers)
            asked = [item for item, answer in zip(batch, answers, strict=True) if answer is None]
            fresh = _first_of_each_text(asked)
            if any(item.draft.session is not None and item.draft.position is None for item in fresh):
                await session.row("namespaces_lock", namespace=namespace_id)
            drafts = _drafts(fresh, caller, language, now)
            rows = await session.rows("memories_insert", namespace=namespace_id, drafts=drafts, now=now)
            found = {bytes(row["digest"]): (row["id"], bool(row["is_new"])) for row in rows}
            if derived := [row["id"] for row in rows if row["is_derived"]]:
                await session.rows("reflections_adopt", namespace=namespace_id, ids=derived, now=now)
            made = {item.id for item in fresh if found[item.digest][1]}
            used = {item.draft.idempotency_key: Answered(found[item.digest][0], item.request) for item in asked}
            await remember(session, namespace_id, used)
            outcome = [
                (answer.id, False) if answer else (found[item.digest][0], item.id in made)
                for item, answer in zip(batch, answers, strict=True)
            ]
            await index(session, namespace_id, outcome, vectors, now)
            if then is not None:
                await then(session, namespace_id, outcome, answers)
            new, amount = [id_ for id_, is_new in outcome if is_new], len({id_ for id_, _ in outcome})
            await note(session, namespace_id, "store", caller=caller, now=now, memories=new, amount=amount)
        return Inserted(namespace_id, outcome, answers)

    async def get(self, namespaces: Iterable[UUID], ids: Sequence[UUID]) -> list[tuple[UUID, Memory]]:
        """The memories of these ids within these namespaces, in the order asked for; unknown ones are left out.

        Each comes with the namespace it is in, whose name may be another than a moment ago. An id that an import has
        brought into several of them comes once from each, in the order of their names.
        """
        async with self._database.session() as session:
            rows = await session.rows("memories_get", namespaces=list(namespaces), ids=list(ids))
        asked = {id_: place for place, id_ in enumerate(ids)}
        found = [(row["namespace_id"], memory_of(row, row["namespace"])) for row in rows]
        return sorted(found, key=lambda item: (asked[item[1].id], item[1].namespace))

    async def list(
        self,
        namespaces: Mapping[UUID, str],
        filters: Filters,
        *,
        limit: int,
        now: datetime,
        by: Literal["happened", "updated", "trending"] = "happened",
        ascending: bool = False,
        after: Page | None = None,
    ) -> Listing:
        """One page in order of time. One statement."""
        async with self._database.session("fresh") as session:
            rows = await session.rows(
                "memories_list",
                namespaces=list(namespaces),
                by=by,
                ascending=ascending,
                after_time=None if after is None else after.time,
                after_id=None if after is None else after.id,
                fetch=limit + 1,
                **visibility(filters, now),
            )
        shown = rows[:limit]
        return Listing(
            tuple(memory_of(row, namespaces[row["namespace_id"]]) for row in shown),
            tuple(Page(row["sorted_by"], row["id"]) for row in shown),
            len(rows) > limit,
        )


def _first_of_each_text(batch: Iterable[Prepared]) -> list[Prepared]:
    first: dict[bytes, Prepared] = {}
    for item in batch:
        first.setdefault(item.digest, item)
    return list(first.values())


async def index(
    session: Session,
    namespace_id: UUID,
    outcome: Sequence[tuple[UUID, bool]],
    vectors: Vectors | None,
    now: datetime,
) -> None:
    """Write postings and embeddings of the (id, new) that are new, within the caller's transaction."""
    new = [id_ for id_, is_new in outcome if is_new]
    if not new:
        return
    await session.rows("postings_insert", namespace=namespace_id, ids=new)
    if vectors is None:
        return
    held = [
        (id_, HalfVector(vector))
        for (id_, is_new), vector in zip(outcome, vectors.vectors, strict=True)
        if is_new and vector is not None
    ]
    if not held:
        return
    await register(session, vectors.by, now)
    await session.rows(
        "embeddings_insert",
        namespace=namespace_id,
        model=vectors.model,
        ids=[id_ for id_, _ in held],
        vectors=[vector for _, vector in held],
    )


def _drafts(batch: Sequence[Prepared], caller: Caller, language: str, now: datetime) -> str:
    objects = [
        stated(item.draft)
        | {
            "id": str(item.id),
            "step": step,
            "author": item.draft.author or caller.author,
            "agent": caller.agent,
            "language": item.draft.language or language,
            "created_at": (item.draft.created_at or now).isoformat(),
            "digest": item.digest.hex(),
        }
        for item, step in zip(batch, steps(item.draft for item in batch), strict=True)
    ]
    objects.sort(key=lambda entry: str(entry["digest"]))
    return json.dumps(objects, ensure_ascii=False)
