"""Document frequencies of a large scope come from a sample, so that the dense branch needs no words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from uuid import UUID

import pytest

from folklore.db.database import Database, Plans, PoolLimits, Row, Session
from folklore.embedding.protocol import Embedder
from folklore.memory.context import MemoryContext
from tests import embedders
from tests.person import Person, sampled

MANY = 1_000


async def keep(person: Person, texts: Sequence[str]) -> list[UUID]:
    return [id_ for start in range(0, len(texts), 500) for id_ in await person.keep(*texts[start : start + 500])]


async def texts(person: Person) -> Sequence[str] | None:
    return (await sampled(person, embedders.MODEL.id)).texts


async def test_the_beginnings_of_the_oldest_texts_are_sampled_without_forgotten_ones(
    person: Person,
) -> None:
    kept = [f"fact {place} " + "and more of it " * 30 for place in range(MANY + 2)]
    first, *_ = await keep(person, kept)
    assert await texts(person) == [text[:200] for text in kept[:MANY]]

    await person.forget(first)

    assert await texts(person) == [text[:200] for text in kept[1 : MANY + 1]]


async def test_the_texts_of_a_small_scope_are_not_sampled(person: Person) -> None:
    await keep(person, [f"fact {place}" for place in range(MANY - 1)])

    assert await texts(person) is None


class _LateWords(Session):
    """Session whose lexemes arrive only after the dense statement has begun."""

    def __init__(self, inner: Session, dense: asyncio.Event) -> None:
        super().__init__(inner.connection)
        self._dense = dense

    async def rows(self, name: str, /, **values: object) -> list[Row]:
        if name.startswith("recall/dense"):
            self._dense.set()
        if name == "recall/lexemes":
            await self._dense.wait()
        return await super().rows(name, **values)


class _Delayed(AbstractAsyncContextManager[Session]):
    def __init__(self, inner: AbstractAsyncContextManager[Session], dense: asyncio.Event) -> None:
        self._inner, self._dense = inner, dense

    async def __aenter__(self) -> Session:
        return _LateWords(await self._inner.__aenter__(), self._dense)

    async def __aexit__(self, *left: Any) -> bool | None:
        return await self._inner.__aexit__(*left)


class Waiting(Database):
    """Database that delays lexemes until the dense statement has begun, once `dense` is set."""

    dense: asyncio.Event | None = None

    def session(
        self, plans: Plans = "kept", *, release_later: bool = False, guarded: bool = False
    ) -> AbstractAsyncContextManager[Session]:
        session = super().session(plans, release_later=release_later, guarded=guarded)
        return session if self.dense is None else _Delayed(session, self.dense)


@pytest.fixture
async def waiting(database_url: str) -> AsyncIterator[Waiting]:
    opened = Waiting(database_url, PoolLimits(minimum=0, maximum=10))
    await opened.open()
    yield opened
    await opened.close()


async def test_the_dense_branch_of_a_known_large_scope_does_not_wait_for_the_words(
    waiting: Waiting, embedder: Embedder
) -> None:
    person = Person(MemoryContext.of(waiting, embedder))
    await keep(person, ["Turing is the cat's name.", *(f"fact {place} about harbours" for place in range(MANY))])
    await person.recall("harbours", namespaces=("notes",))
    waiting.dense = asyncio.Event()

    async with asyncio.timeout(120):
        answer = await person.recall("what is the name of the cat", namespaces=("notes",))

    assert answer.memories[0].memory.content == "Turing is the cat's name."
    assert not answer.degraded
