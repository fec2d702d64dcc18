"""A user who stores and recalls: the use cases with the arguments that rarely matter to a test filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, cast
from uuid import UUID

from folklore.callers import Caller
from folklore.contract.filters import FiltersRequest
from folklore.contract.memories import (
    Changes,
    ForgetRequest,
    ForgetResult,
    GetRequest,
    HistoryRequest,
    ListRequest,
    RelateRequest,
    RelateResult,
    RelationChange,
    StoreRequest,
    StoreResult,
    UndoRequest,
    UpdateRequest,
)
from folklore.contract.people import CreatedToken, CreateTokenRequest
from folklore.contract.recall import SearchRequest
from folklore.contract.requests import Result, Returns
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.operations import operation_of
from folklore.memory.recall.pipeline import answer
from folklore.memory.recall.values import Question
from folklore.model import Answer, Draft, Memory, Relation, Revision

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """`now` is fixed unless `at` moves it."""

    library: MemoryContext
    name: str = "tester"
    now: datetime = NOON
    zone: tzinfo = UTC
    caller: Caller | None = None
    namespace: str = "notes"
    retention: timedelta = timedelta(days=30)
    project: str | None = None

    def at(self, now: datetime) -> Person:
        return replace(self, now=now)

    @property
    def context(self) -> RequestContext:
        caller = self.caller or Caller(self.name)
        namespace = self.namespace
        project = self.project
        return RequestContext(
            self.library,
            caller,
            self.now,
            self.zone,
            lambda: namespace,
            self.retention,
            project=lambda: project,
        )

    async def call(self, request: Returns[Result]) -> Result:
        """Run an operation as the service does."""
        return cast(
            "Result", await operation_of(request).use_case(self.context, request)
        )

    async def create_token(self, name: str, *grants: str, **asked: Any) -> CreatedToken:
        """Create a token without an end, since the clock of most tests is fixed."""
        return await self.call(
            CreateTokenRequest(
                name=name, grants=grants, **({"expires": "never"} | asked)
            )
        )

    async def store(
        self, *drafts: Draft | str, namespace: str = "notes"
    ) -> StoreResult:
        """Store memories as one batch."""
        memories = tuple(
            Draft(draft) if isinstance(draft, str) else draft for draft in drafts
        )
        return await self.call(StoreRequest(memories=memories, namespace=namespace))

    async def keep(self, *drafts: Draft | str, namespace: str = "notes") -> list[UUID]:
        """Store memories as one batch and return their ids in order."""
        return [
            item.id for item in (await self.store(*drafts, namespace=namespace)).stored
        ]

    async def get(self, *ids: UUID) -> list[Memory]:
        return [item.memory for item in (await self.call(GetRequest(ids=ids))).found]

    async def list_memories(self, **asked: Any) -> Answer:
        return await self.call(ListRequest(**asked))

    async def update(
        self,
        id_: UUID,
        if_revision: int | None = None,
        clear: Sequence[str] = (),
        **fields: Any,
    ) -> Memory:
        changes = Changes(**fields)
        return await self.call(
            UpdateRequest(
                id=id_, changes=changes, clear=tuple(clear), if_revision=if_revision
            )
        )

    async def forget(self, *ids: UUID, **asked: Any) -> ForgetResult:
        return await self.call(ForgetRequest(ids=ids, **asked))

    async def undo(
        self, id_: UUID, retention: timedelta | None = None, revision: int | None = None
    ) -> Memory:
        person = self if retention is None else replace(self, retention=retention)
        return (await person.call(UndoRequest(id=id_, revision=revision))).memory

    async def redo(self, id_: UUID) -> Memory:
        return (await self.call(UndoRequest(id=id_, redo=True))).memory

    async def history(self, id_: UUID) -> list[Revision]:
        return list((await self.call(HistoryRequest(id=id_))).revisions)

    async def relate(self, *relations: Relation, remove: bool = False) -> RelateResult:
        changes = [
            RelationChange(
                from_id=item.from_id,
                to_id=item.to_id,
                type=item.type,
                strength=item.strength,
                remove=remove,
            )
            for item in relations
        ]
        return await self.call(RelateRequest(relations=tuple(changes)))

    async def relations(self, id_: UUID) -> list[Relation]:
        return list((await self.call(GetRequest(ids=(id_,)))).found[0].relations)

    async def recall(self, query: str, **asked: Any) -> Answer:
        """Answer a question with any ranking, of which the operation takes presets and some numbers.

        Without `min_score` weak matches are left as they are: most tests are about order, not about silence.
        """
        question = Question(query, **asked)
        if question.ranking.min_score is None:
            question = replace(
                question, ranking=replace(question.ranking, min_score=0.0)
            )
        return await answer(self.context, question)

    async def pages(self, query: str, **asked: Any) -> list[Answer]:
        """Recall one page after another, at most 100."""
        found = [await self.recall(query, **asked)]
        while found[-1].cursor is not None and len(found) < 100:
            found.append(await self.recall(query, cursor=found[-1].cursor, **asked))
        return found

    async def search(
        self, query: str, filters: FiltersRequest | None = None, **asked: Any
    ) -> Answer:
        return await self.call(
            SearchRequest(query=query, filters=filters or FiltersRequest(), **asked)
        )


def contents(answer: Answer) -> list[str]:
    return [result.memory.content for result in answer.memories]


def ids(answer: Answer) -> list[UUID]:
    return [result.memory.id for result in answer.memories]
