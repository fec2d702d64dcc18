"""Pending embeddings: read page by page, made in batches, never written for a text that has changed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
import pytest
from numpy.typing import NDArray

from folklore.db.database import Database
from folklore.db.stores.embeddings import Coverage, Embeddings
from folklore.embedding.protocol import Embedder
from folklore.errors import EmbedderUnavailable
from folklore.memory.context import MemoryContext
from folklore.memory.models import backfill
from folklore.memory.models.backfill import Backfill, Filled, Pace, Report
from folklore.model import Draft
from tests import embedders
from tests.person import NOON, Person

TEXTS = [f"fact {number} about the harbour" for number in range(7)]


@pytest.fixture
async def author(database: Database) -> Person:
    """A person whose memories were stored while the model was down."""
    person = Person(MemoryContext.of(database, embedders.Down()))
    await person.keep(*TEXTS)
    return person


async def test_superseded_memories_are_pending_since_as_of_finds_them(
    author: Person, database: Database
) -> None:
    old, _ = await author.keep("the pier is open", "elsewhere", namespace="pier")
    await author.keep(Draft("the pier is shut", supersedes=old), namespace="pier")
    [namespace] = await author.library.find_namespaces(["pier"])
    embeddings = Embeddings(database)

    assert (
        len(
            await embeddings.pending(
                namespace=namespace.id, model=embedders.MODEL.id, most=10
            )
        )
        == 3
    )
    assert await embeddings.coverage([namespace.id], embedders.MODEL.id) == {
        namespace.id: Coverage(3, 0)
    }


# Backfill


@pytest.fixture
async def several(author: Person) -> list[UUID]:
    """Two namespaces with pending embeddings, the one with later ids first; each begins with a text without a word."""
    for name in ("early", "late"):
        await author.keep(
            "zzz", *(f"{name} {text}" for text in TEXTS[:4]), namespace=name
        )
    return [
        (await author.library.find_namespaces([name]))[0].id
        for name in ("late", "early")
    ]


async def test_locked_memories_are_counted_as_skipped(
    several: list[UUID], database: Database, connection: asyncpg.Connection
) -> None:
    async with connection.transaction():
        await connection.execute(
            "select from memories where namespace_id = $1 for no key update", several[0]
        )
        [filled] = [
            batch
            async for batch in filling(database, embedders.ByLetter()).batches(
                several[:1]
            )
        ]

    assert (filled.memories, filled.embeddings, filled.wordless, filled.skipped) == (
        5,
        0,
        1,
        4,
    )


async def pending_of(database: Database, namespaces: list[UUID]) -> list[int]:
    coverage = await Embeddings(database).coverage(namespaces, embedders.MODEL.id)
    return [coverage[namespace].pending for namespace in namespaces]


@dataclass
class Clock:
    """Time that passes only in `sleep`."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(backfill, "monotonic", made)
    monkeypatch.setattr(backfill, "asyncio", made)
    return made


@dataclass
class Failing(embedders.ByLetter):
    """Fails the first `times` calls."""

    times: int = 0

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.times:
            self.times -= 1
            raise EmbedderUnavailable("The embedding service does not answer.")
        return await super().embed(texts)


def filling(
    database: Database,
    embedder: Embedder,
    model: UUID = embedders.MODEL.id,
    report: Report = lambda _done: None,
    **pace: Any,
) -> Backfill:
    return Backfill(
        Embeddings(database),
        embedder,
        model,
        now=lambda: NOON,
        pace=Pace(**pace),
        report=report,
    )


async def test_a_backfill_fills_every_namespace_and_reports_progress(
    several: list[UUID], database: Database, clock: Clock
) -> None:
    reported: list[int] = []

    filled = await filling(
        database, embedders.ByLetter(), report=reported.append, batch=2
    ).fill(several)

    assert filled == Filled(memories=10, embeddings=8, wordless=2)
    assert reported == [2, 4, 5, 7, 9, 10]
    assert clock.slept == []
    assert await filling(database, embedders.ByLetter()).fill(several) == Filled(
        memories=2, embeddings=0, wordless=2
    )


async def test_a_backfill_keeps_to_its_rate(
    several: list[UUID], database: Database, clock: Clock
) -> None:
    await filling(database, embedders.ByLetter(), batch=2, per_second=2.0).fill(several)

    assert clock.slept == [1.0, 1.0, 0.5, 1.0, 1.0, 0.5], "ten memories at two a second"


async def test_a_backfill_waits_longer_after_each_failure_until_its_time_limit(
    several: list[UUID], database: Database, clock: Clock
) -> None:
    waits = [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]

    filled = await filling(database, Failing(times=6)).fill(several)

    assert (filled.embeddings, clock.slept) == (8, waits)
    for patience, waited in ((0.0, []), (29.0, waits[:4]), (30.0, waits[:5])):
        clock.slept.clear()
        with pytest.raises(EmbedderUnavailable):
            await filling(database, Failing(times=100), patience=patience).fill(several)
        assert clock.slept == waited


async def test_a_backfill_refuses_vectors_of_another_model(
    several: list[UUID], database: Database
) -> None:
    another = UUID(int=7)

    with pytest.raises(EmbedderUnavailable, match=r"by-letter, which is not the model"):
        await filling(database, embedders.ByLetter(), another).fill(several)

    assert await pending_of(database, several) == [5, 5]
