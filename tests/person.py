"""Somebody who stores and recalls: the use cases with the arguments that rarely matter to a test filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID

from folklore.db.stores.recall_rows import Sample, Scope
from folklore.memory.context import MemoryContext
from folklore.memory.recall.pipeline import RecallRequest, recall
from folklore.memory.recall.search import search
from folklore.memory.records.forget import ForgetRequest, Forgotten, forget
from folklore.memory.records.get import details
from folklore.memory.records.relate import Related, Wish, relate
from folklore.memory.records.store import StoreResult, store
from folklore.memory.records.update import Edit, history, undo, update
from folklore.model import Answer, Caller, Draft, Filters, Memory, Relation, Revision

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """`now` stands still unless `at` moves it."""

    library: MemoryContext
    name: str = "tester"
    now: datetime = NOON
    zone: tzinfo = UTC

    def at(self, now: datetime) -> Person:
        return replace(self, now=now)

    async def store(self, *drafts: Draft | str, namespace: str = "notes") -> StoreResult:
        """Store them as one batch."""
        return await store(
            self.library,
            namespace,
            [Draft(draft) if isinstance(draft, str) else draft for draft in drafts],
            caller=Caller(self.name),
            now=self.now,
            zone=self.zone,
        )

    async def keep(self, *drafts: Draft | str, namespace: str = "notes") -> list[UUID]:
        """Store them as one batch; their ids in order."""
        return [item.id for item in (await self.store(*drafts, namespace=namespace)).stored]

    async def update(
        self, id_: UUID, if_revision: int | None = None, clear: tuple[str, ...] = (), **fields: Any
    ) -> Memory:
        return await update(
            self.library, id_, Edit(fields, clear, if_revision), caller=Caller(self.name), now=self.now, zone=self.zone
        )

    async def forget(self, *ids: UUID, **asked: Any) -> Forgotten:
        return await forget(self.library, ForgetRequest(ids, **asked), caller=Caller(self.name), now=self.now)

    async def undo(self, id_: UUID, retention: timedelta = timedelta(days=30), revision: int | None = None) -> Memory:
        caller = Caller(self.name)
        return (await undo(self.library, id_, caller=caller, now=self.now, retention=retention, revision=revision))[0]

    async def history(self, id_: UUID) -> list[Revision]:
        return list((await history(self.library, id_))[1])

    async def relate(self, *wishes: Wish | Relation) -> Related:
        given = [wish if isinstance(wish, Wish) else Wish(wish) for wish in wishes]
        return await relate(self.library, given, caller=Caller(self.name), now=self.now)

    async def relations(self, id_: UUID) -> list[Relation]:
        return list((await details(self.library, [id_])).found[0].relations)

    async def recall(self, query: str, **asked: Any) -> Answer:
        return await recall(self.library, RecallRequest(query, **asked), now=self.now)

    async def search(self, query: str, **asked: Any) -> Answer:
        return await search(self.library, query, now=self.now, **asked)


async def sampled(person: Person, model: UUID, namespace: str = "notes") -> Sample:
    """Return what a recall samples of a namespace where nothing is remembered."""
    [notebook] = await person.library.notebooks([namespace])
    scope = Scope({notebook.id: notebook.name}, Filters(), person.now)
    return await person.library.statements.sample(scope, model, texts=True)


def contents(answer: Answer) -> list[str]:
    return [result.memory.content for result in answer.memories]


def ids(answer: Answer) -> list[UUID]:
    return [result.memory.id for result in answer.memories]
