"""Postings: packed and fresh ones give the same answers, whatever happens while they are packed."""

import asyncio
import random
from typing import Any
from uuid import UUID

import pytest
from asyncpg import Connection

from folklore.contract.namespaces import MergeNamespacesRequest
from folklore.contract.token_secrets import key_of
from folklore.db.database import Database
from folklore.db.stores.postings import PostingStore
from folklore.db.stores.recall_rows import Scope
from folklore.errors import DatabaseUnavailable
from folklore.memory.context import MemoryContext, names_by_id
from folklore.model import Draft, Filters
from tests.background_jobs import BackgroundJobs
from tests.person import NOON, Person, contents

WORDS = [
    f"{first}{last}"
    for first in ("am", "bir", "ce", "del", "fjor", "gro")
    for last in ("ber", "ch", "dar", "ta")
]
QUESTIONS = (
    "amber",
    "birch cedar delta",
    "fjorta groch amta",
    "amber OR grober",
    '"amber birta"',
    "tag:odd amber",
)


def draft(number: int) -> Draft:
    chosen = random.Random(number)
    text = " ".join(
        chosen.choices(WORDS, range(len(WORDS), 0, -1), k=chosen.randint(3, 40))
    )
    return Draft(f"{text} number{number}", tags=("odd",) if number % 2 else ())


@pytest.fixture
async def many(database: Database) -> Person:
    """700 memories, so that common words fill blocks."""
    person = Person(MemoryContext.of(database, None))
    for start in (0, 350):
        await person.keep(*(draft(number) for number in range(start, start + 350)))
    return person


@pytest.fixture
def postings(database: Database) -> PostingStore:
    return PostingStore(database)


async def pack(person: Person, postings: PostingStore, name: str = "notes") -> UUID:
    [namespace] = await person.library.find_namespaces([name])
    while await postings.pack(namespace.id):
        pass
    return namespace.id


async def found(person: Person, **asked: Any) -> list[list[tuple[UUID, float | None]]]:
    answers = [
        await person.recall(question, limit=40, **asked) for question in QUESTIONS
    ]
    return [
        [(item.memory.id, item.score) for item in answer.memories] for answer in answers
    ]


async def counts(connection: Connection) -> tuple[int, int, int]:
    """Return how many memories are fresh and packed, and how many packed ones were removed."""
    fresh = await connection.fetchval("select count(*) from fresh_words")
    counted = "select coalesce(sum(documents), 0) as packed, coalesce(sum(dead), 0) as dead from packed_namespaces"
    [totals] = await connection.fetch(counted)
    return fresh, totals["packed"], totals["dead"]


@pytest.mark.parametrize("filters", [Filters(), Filters(tags=("odd",))])
async def test_packed_words_give_the_answers_of_fresh_ones(
    many: Person, postings: PostingStore, connection: Connection, filters: Filters
) -> None:
    fresh = await found(many, filters=filters)
    await pack(many, postings)
    assert await counts(connection) == (0, 700, 0)
    assert await found(many, filters=filters) == fresh

    [id_] = await many.keep(
        Draft("amber amber and its own, zebra " + "filler " * 60, tags=("rare", "odd"))
    )
    before = await found(many, filters=filters)
    await pack(many, postings)
    assert await counts(connection) == (0, 701, 0)
    assert await found(many, filters=filters) == before
    assert [item.memory.id for item in (await many.search("zebra")).memories] == [id_]
    hidden = await many.recall("amber", limit=1, filters=Filters(tags=("rare",)))
    assert [item.memory.id for item in hidden.memories] == [id_], (
        "filters come before the limit"
    )


async def test_a_changed_memory_has_present_words(
    many: Person, postings: PostingStore, connection: Connection
) -> None:
    changed, forgotten, erased, kept = await many.keep(
        *(f"{word} quay" for word in ("zebra", "yak", "wolf", "lynx"))
    )
    await pack(many, postings)

    await many.update(changed, content="giraffe quay")
    await many.forget(forgotten)
    await many.forget(erased, erase=True)

    assert await counts(connection) == (1, 702, 2)
    assert contents(await many.search("zebra OR wolf OR yak")) == []
    assert contents(await many.search("giraffe")) == ["giraffe quay"]
    await many.undo(forgotten)
    await many.undo(changed)
    assert set(contents(await many.recall("quay"))) >= {
        "zebra quay",
        "yak quay",
        "lynx quay",
    }
    await pack(many, postings)
    assert contents(await many.search("zebra")) == ["zebra quay"]
    assert [item.memory.id for item in (await many.search("lynx")).memories] == [kept]


async def test_entries_of_removed_memories_are_deleted_where_they_are_many(
    many: Person, postings: PostingStore, connection: Connection, jobs: BackgroundJobs
) -> None:
    await pack(many, postings)
    every = [
        row["id"]
        for row in await connection.fetch("select id from memories order by id")
    ]
    for start in range(0, 300, 100):
        await many.forget(*every[start : start + 100], erase=True)
    before = await connection.fetchval(
        "select sum(octet_length(entries)) from postings"
    )
    assert await counts(connection) == (0, 400, 300)

    assert (await jobs("postings"))["cleaned"] == 300

    assert await counts(connection) == (0, 400, 0)
    assert (
        await connection.fetchval("select sum(octet_length(entries)) from postings")
        < before * 2 / 3
    )
    named = (
        "select distinct word from memories, folklore_named_words(search, created_at)"
    )
    assert (
        await connection.fetch(
            f"(select word from postings where documents > 0) except ({named})"
        )
        == []
    )
    assert (
        await connection.fetch(
            "select from postings where documents = 0 and entries = ''"
        )
        == []
    )
    rows = await connection.fetch("select content, tags from memories")
    await many.keep(
        *(Draft(row["content"], tags=tuple(row["tags"])) for row in rows),
        namespace="fresh",
    )
    cleaned, fresh = [
        await many.recall("amber", limit=40, namespaces=(name,))
        for name in ("notes", "fresh")
    ]
    assert [item.score for item in cleaned.memories] == [
        item.score for item in fresh.memories
    ]


async def test_packed_words_of_cues_are_numbers_of_memories_alone(
    person: Person, postings: PostingStore, connection: Connection, jobs: BackgroundJobs
) -> None:
    drafts = [
        Draft(f"amber number{number}", cues=("retry a payment", f"cue{number} of many"))
        for number in range(600)
    ]
    ids = [*await person.keep(*drafts[:300]), *await person.keep(*drafts[300:])]

    async def answers() -> list[list[tuple[UUID, float | None]]]:
        asked = [
            await person.recall(question, limit=40)
            for question in ("retry the payment", "amber cue7", '"retry a payment"')
        ]
        return [
            [(item.memory.id, item.score) for item in answer.memories]
            for answer in asked
        ]

    fresh = await answers()
    await pack(person, postings)
    assert await counts(connection) == (0, 600, 0)
    assert await answers() == fresh

    async def bytes_of(lexeme: str) -> int:
        held = "select sum(octet_length(entries)) from postings where word = folklore_word($1)"
        return int(await connection.fetchval(held, lexeme))

    assert await bytes_of("amber") == 8 * 600
    assert await bytes_of("~payment") == 4 * 600
    for start in (0, 100):
        await person.forget(*ids[start : start + 100], erase=True)
    left = await answers()
    assert (await jobs("postings"))["cleaned"] == 200
    assert await bytes_of("~payment") == 4 * 400
    assert await answers() == left


async def test_packing_may_be_killed_among_stores(
    many: Person, postings: PostingStore, connection: Connection
) -> None:
    [namespace] = await many.library.find_namespaces([])
    seen = []

    async def killed() -> None:
        async with postings._database.transaction() as session:
            [begun] = await session.rows("postings/begin", namespace=namespace.id)
            await session.rows(
                "postings/pack", namespace=namespace.id, next=begun["next"], most=1_000
            )
            async with asyncio.timeout(60):
                await many.keep("a zebra while words are packed")
                assert contents(await many.search("zebra")) == [
                    "a zebra while words are packed"
                ]
            seen.append(await found(many))
            pid = await session.connection.fetchval("select pg_backend_pid()")
            await connection.fetchval("select pg_terminate_backend($1)", pid)
            await session.rows("postings/cleaned", namespace=namespace.id, dead=0)

    with pytest.raises(DatabaseUnavailable):
        await killed()

    assert await counts(connection) == (701, 0, 0)
    assert seen == [await found(many)]


async def test_a_merge_carries_packed_memories(
    many: Person, postings: PostingStore, connection: Connection
) -> None:
    await many.keep("the zebra crossing", "the yak crossing", namespace="zoo")
    await pack(many, postings, "zoo")
    await pack(many, postings)

    await many.call(MergeNamespacesRequest(name="zoo", into="notes"))

    assert contents(await many.search("zebra", namespaces=("notes",))) == [
        "the zebra crossing"
    ]
    assert (await counts(connection))[0] == 2
    await pack(many, postings)
    assert contents(await many.search("yak", namespaces=("notes",))) == [
        "the yak crossing"
    ]


async def test_a_token_finds_words_of_its_namespaces_alone(
    database: Database, postings: PostingStore
) -> None:
    owner = Person(MemoryContext.of(database, None))
    for name in ("garden", "harbour"):
        await owner.keep(f"a packed zebra of {name}", namespace=name)
        await pack(owner, postings, name)
        await owner.keep(f"a fresh zebra of {name}", namespace=name)
    key = key_of((await owner.create_token("alice", "garden:writer")).secret)
    alice = Person(MemoryContext.of(database.for_token(key), None))
    scope = Scope(names_by_id(await owner.library.find_namespaces([])), Filters(), NOON)

    of_all, of_alice = [
        await person.library.statements.lexemes(
            scope, (), ["zebra", "harbour"], (), 100
        )
        for person in (owner, alice)
    ]

    assert set(contents(await alice.recall("zebra"))) == {
        "a packed zebra of garden",
        "a fresh zebra of garden",
    }
    assert [of_all.documents(word) for word in ("zebra", "harbour")] == [4, 2]
    assert [of_alice.documents(word) for word in ("zebra", "harbour")] == [2, 0]
    assert (of_all.corpus.total, of_alice.corpus.total) == (4, 2)


async def test_small_namespaces_are_packed_where_their_sum_is_large(
    database: Database, postings: PostingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(MemoryContext.of(database, None))
    for number in range(6):
        await person.keep(
            *(f"zebra {number} {place}" for place in range(number + 1)),
            namespace=f"space-{number}",
        )
    assert await postings.due() == ([], {})
    before = {
        item.memory.id: item.score
        for item in (await person.recall("zebra 3", limit=40)).memories
    }
    monkeypatch.setattr("folklore.db.stores.postings._MOST_FRESH", 12)

    due, _ = await postings.due()
    for namespace in due:
        await postings.pack(namespace)

    assert len(due) == 3, "21 memories, of which 6, 5 and 4 leave 6"
    after = {
        item.memory.id: item.score
        for item in (await person.recall("zebra 3", limit=40)).memories
    }
    assert after == pytest.approx(before)


async def test_a_table_of_many_pages_is_packed_whole_so_that_a_vacuum_truncates_it(
    database: Database, postings: PostingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person(MemoryContext.of(database, None))
    for number in range(3):
        await person.keep(f"zebra {number}", namespace=f"space-{number}")
    monkeypatch.setattr("folklore.db.stores.postings._MOST_FRESH", 2)

    monkeypatch.setattr("folklore.db.stores.postings._MOST_PAGES", 0)

    due, _ = await postings.due()
    assert len(due) == 3
