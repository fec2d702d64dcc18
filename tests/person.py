"""Somebody who stores and recalls: the use cases with the arguments that rarely matter to a test filled in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Any
from uuid import UUID

from folklore.memory.keywords import search
from folklore.memory.library import Library
from folklore.memory.recall import RecallRequest, recall
from folklore.memory.store import StoreResult, store
from folklore.model import Answer, Caller, Draft

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Person:
    """`now` stands still unless `at` moves it."""

    library: Library
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

    async def recall(self, query: str, **asked: Any) -> Answer:
        return await recall(self.library, RecallRequest(query, **asked), now=self.now)

    async def search(self, query: str, **asked: Any) -> Answer:
        return await search(self.library, query, now=self.now, **asked)


def contents(answer: Answer) -> list[str]:
    return [result.memory.content for result in answer.memories]


def ids(answer: Answer) -> list[UUID]:
    return [result.memory.id for result in answer.memories]
