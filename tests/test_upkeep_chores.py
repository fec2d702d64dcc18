"""What each chore does to a real database, what it leaves alone, and that a rehearsal writes nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from folklore.db.database import Database
from folklore.db.stores.embeddings import FIRST, Debts
from folklore.db.stores.maintenance import Hygiene
from folklore.jobs import all_jobs as chores
from folklore.jobs.job import Rules
from folklore.memory.context import MemoryContext
from folklore.memory.models.pending_embeddings import pay
from folklore.memory.models.vectors import vectors_of
from folklore.memory.requests import DeleteNamespaceRequest
from folklore.model import Draft
from tests.embedders import MODEL, ByLetter, Down
from tests.housework import DAY, Housekeeper, everything, field_of, holding
from tests.person import NOON, Person, contents

SECRET_WORD = "quetzalcoatl"


async def forget(connection: asyncpg.Connection, *ids: UUID, at: object = NOON) -> None:
    await connection.execute("update memories set forgotten_at = $2 where id = any($1)", list(ids), at)


# Embedding debt


async def test_what_was_stored_while_the_model_was_down_gets_its_vector(
    database: Database, connection: asyncpg.Connection
) -> None:
    await Person(MemoryContext.of(database, Down())).keep("one", "two", "three")
    up = MemoryContext.of(database, ByLetter())

    assert await Housekeeper(database, up).rehearse("embeddings") == {"owing": 3}
    assert await Housekeeper(database, up)("embeddings") == {"embedded": 3}
    assert await Housekeeper(database, up)("embeddings") == {}
    assert (await connection.fetchval("select count(*) from embeddings where model_id = $1", MODEL.id)) == 3
    assert contents(await Person(up).recall("two", limit=1)) == ["two"]


async def test_debt_is_paid_in_batches_of_a_constant_number_of_statements(
    database: Database, queries: list[str]
) -> None:
    await Person(MemoryContext.of(database, Down())).keep(*(f"text number {place}" for place in range(100)))
    embedder = ByLetter()
    debts = Debts(database)
    namespaces = [one.id for one in await MemoryContext.of(database, embedder).namespaces.find(None)]
    await asyncio.sleep(0)
    queries.clear()

    paid = [one.written async for one in pay(debts, embedder, namespaces, now=NOON, batch=40)]
    await asyncio.sleep(0)

    assert paid == [40, 40, 20]
    assert [len(call) for call in embedder.calls] == [40, 40, 20]
    said = [query for query in queries if query.startswith(("insert", "with", "select"))]
    assert len(said) == 3 * 3, "a look, the model and the vectors, however many memories"


async def test_a_text_that_changed_while_it_was_embedded_does_not_get_the_old_vector(
    database: Database, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, Down()))
    changed, same = await person.keep("before", "same")
    debts, embedder = Debts(database), ByLetter()
    (notebook,) = await person.library.find_namespaces([])
    owing = await debts.batch(notebook.id, MODEL.id, after=FIRST, most=10)
    await connection.execute("update memories set content = 'after', digest = '\\x00' where id = $1", changed)

    vectors = await vectors_of(embedder, [item.content for item in owing])

    assert await debts.pay(notebook.id, owing, vectors, NOON) == 1
    assert await connection.fetchval("select memory_id from embeddings") == same


async def test_forgotten_memories_and_texts_without_a_word_owe_nothing_for_ever(
    database: Database, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, Down()))
    forgotten, _wordless, _owing = await person.keep("to be forgotten", "zzz", "an ordinary text")
    await forget(connection, forgotten)
    housekeeper = Housekeeper(database, MemoryContext.of(database, ByLetter()))

    assert await housekeeper("embeddings") == {"embedded": 1, "wordless": 1}
    assert await housekeeper("embeddings") == {"wordless": 1}


async def test_a_model_that_is_down_is_told_and_tried_again_soon(database: Database) -> None:
    housekeeper = Housekeeper(database, MemoryContext.of(database, Down()))
    await Person(housekeeper.library).keep("owing")

    ran = await housekeeper.run(chores.named()["embeddings"])

    assert (ran.outcome, ran.error) == ("failed", "The embedding service does not answer.")


# Expiry


async def test_what_expired_is_forgotten_and_its_text_may_be_stated_anew(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    soon, later, never = await person.keep(
        Draft("today's special", expires_at=NOON + DAY), Draft("next week", expires_at=NOON + 7 * DAY), Draft("always")
    )
    housekeeper.now = NOON + 2 * DAY

    assert await housekeeper.rehearse("expiry") == {"expired": 1}
    assert await housekeeper("expiry") == {"forgotten": 1}
    assert await housekeeper("expiry") == {}
    assert await field_of(connection, soon, "forgotten_at") == housekeeper.now
    assert [await field_of(connection, id_, "forgotten_at") for id_ in (later, never)] == [None, None]
    (again,) = await person.at(housekeeper.now).keep("today's special")
    assert again != soon


async def test_a_text_that_is_stored_again_after_its_time_is_seen_again(person: Person) -> None:
    """Also before upkeep came by: a store that answers with an id nobody can find would have lost the text."""
    (old,) = await person.keep(Draft("today's special", expires_at=NOON + DAY))
    later = person.at(NOON + 2 * DAY)

    assert await later.keep("today's special") == [old]
    assert contents(await later.recall("special")) == ["today's special"]


# Retention


async def test_what_was_forgotten_long_ago_is_nowhere_in_the_database(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    gone, kept = await person.keep(
        Draft(f"{SECRET_WORD} text", summary=SECRET_WORD, tags=(SECRET_WORD,), source=SECRET_WORD), "another text"
    )
    (notebook,) = await person.library.find_namespaces([])
    await connection.execute(
        "insert into relations values ($1, $2, 'relates_to', $3, 1, 'tester', $4)", notebook.id, kept, gone, NOON
    )
    await forget(connection, gone)
    assert set(await holding(connection, SECRET_WORD)) == {"memories", "postings"}
    housekeeper.now = NOON + 31 * DAY

    assert await housekeeper.rehearse("retention") == {"to_erase": 1, "usage_to_drop": 0}
    assert await housekeeper("retention") == {"erased": 1}
    assert await holding(connection, SECRET_WORD) == []
    assert await holding(connection, str(gone)) == ["audit"], "which says that it was there, and not what it said"
    assert contents(await person.recall("text")) == ["another text"]


@pytest.mark.parametrize("days", [0, 29.9])
async def test_within_the_retention_time_nothing_is_erased(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection, days: float
) -> None:
    (id_,) = await person.keep("a text")
    await forget(connection, id_)
    housekeeper.now = NOON + timedelta(days=days)

    assert await housekeeper("retention") == {}
    assert await field_of(connection, id_, "content") == "a text"


async def test_superseded_memories_are_history_and_outlast_what_replaced_them(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    old, new = await person.keep("the old fact", "the new fact")
    await connection.execute("update memories set superseded_at = $2, superseded_by = $3 where id = $1", old, NOON, new)
    await forget(connection, new)
    housekeeper.now = NOON + 31 * DAY

    assert await housekeeper("retention") == {"erased": 1}
    assert await field_of(connection, old, "superseded_by") is None
    assert await field_of(connection, old, "superseded_at") == NOON


async def test_many_are_erased_in_batches_and_the_retention_time_is_a_setting(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    await forget(connection, *await person.keep(*(f"text {place}" for place in range(250))))
    housekeeper.rules = replace(housekeeper.rules, retention=DAY)
    housekeeper.now = NOON + 2 * DAY

    assert await housekeeper("retention") == {"erased": 250}
    held = await everything(connection)
    assert (held["memories"], held["postings"], held["embeddings"]) == ([], [], [])


@pytest.mark.parametrize("count", [2, 60])
async def test_a_batch_takes_the_same_number_of_statements_however_many_are_in_it(
    database: Database, person: Person, connection: asyncpg.Connection, queries: list[str], count: int
) -> None:
    hygiene = Hygiene(database)
    await forget(connection, *await person.keep(*(f"text {place}" for place in range(count))))
    kept = await person.keep(*(f"used {place}" for place in range(count)))
    await connection.execute("update memories set recall_count = 1 where id = any($1)", kept)
    (notebook,) = await person.library.find_namespaces([])
    await asyncio.sleep(0)
    queries.clear()

    assert await hygiene.erase_forgotten(notebook.id, NOON + DAY, 100) == count
    worths = await hygiene.worths(notebook.id, after=FIRST, batch=100)
    assert await hygiene.write_qualities(notebook.id, [(worth, 0.5) for worth in worths]) == count
    await asyncio.sleep(0)

    said = [query for query in queries if query.split(maxsplit=1)[0] in ("select", "with", "update", "delete")]
    assert len(said) == 6 + 1 + 1


async def test_who_is_being_brought_back_is_not_erased(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")
    await forget(connection, id_)
    housekeeper.now = NOON + 31 * DAY
    async with connection.transaction():
        await connection.execute("update memories set forgotten_at = null where id = $1", id_)
        assert await housekeeper("retention") == {}

    assert contents(await person.recall("text")) == ["a text"]


# Quality


async def test_what_was_of_use_is_scored_and_fades_out_of_recall_unless_it_is_protected(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    faded, decided, pinned, important, unused = await person.keep(
        "a text that faded",
        Draft("a text decided", kind="decision"),
        Draft("a text pinned", tags=("pinned",)),
        Draft("a text of importance", importance=0.9),
        "a text nobody recalled",
    )
    await connection.execute("update memories set recall_count = 1, last_recalled_at = $2 where id <> $1", unused, NOON)
    housekeeper.now = NOON + 10 * DAY
    assert await housekeeper.rehearse("quality") == {"seen": 4, "to_score": 4}
    assert await housekeeper("quality") == {"seen": 4, "scored": 4}
    assert await field_of(connection, faded, "quality") == pytest.approx(0.5 * 0.5 ** (10 / 90))
    housekeeper.now = NOON + 400 * DAY

    assert await housekeeper("quality") == {"seen": 4, "scored": 1}
    assert set(contents(await person.at(housekeeper.now).recall("text"))) == {
        "a text decided",
        "a text pinned",
        "a text of importance",
        "a text nobody recalled",
    }
    assert [await field_of(connection, id_, "quality") for id_ in (decided, pinned, important)] == [0.5, 0.5, 0.5]
    assert await field_of(connection, faded, "forgotten_at") is None, "nothing is deleted by decay"


async def test_what_faded_is_seen_again_when_somebody_states_it_again(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text that faded")
    await connection.execute("update memories set recall_count = 1, last_recalled_at = $1", NOON)
    housekeeper.now = NOON + 400 * DAY
    await housekeeper("quality")
    later = person.at(housekeeper.now)
    assert contents(await later.recall("text")) == []

    assert await later.keep("a text that faded") == [id_]
    assert contents(await later.recall("text")) == ["a text that faded"]
    assert await housekeeper("quality") == {"seen": 1, "scored": 1}
    assert contents(await later.recall("text")) == ["a text that faded"]


async def test_what_faded_is_seen_again_when_it_says_something_else_and_after_another_change_with_the_next_run(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    said, tagged = await person.keep("The harbour is closed.", "The harbour is deep.")
    await connection.execute("update memories set recall_count = 1, last_recalled_at = $1", NOON)
    housekeeper.now = NOON + 400 * DAY
    await housekeeper("quality")
    later = person.at(housekeeper.now)
    assert contents(await later.recall("harbour")) == []

    await later.update(said, content="The harbour is open.")
    await later.update(tagged, tags=("sea",))

    assert contents(await later.recall("harbour")) == ["The harbour is open."]
    assert await housekeeper("quality") == {"seen": 2, "scored": 2}
    assert len((await later.recall("harbour")).memories) == 2


async def test_a_score_that_hardly_changed_is_not_written_again(person: Person, housekeeper: Housekeeper) -> None:
    await person.keep("a text")
    await person.keep("a text")  # confirmed
    assert await housekeeper("quality") == {"seen": 1, "scored": 1}
    housekeeper.now = NOON + DAY / 24

    assert await housekeeper("quality") == {"seen": 1}


# All of them


async def test_a_rehearsal_changes_nothing(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection, database: Database
) -> None:
    await Person(MemoryContext.of(database, None)).keep("owes its vector")
    ids = await person.keep(Draft("expired", expires_at=NOON + DAY), "forgotten", "used", *["same words here"] * 1)
    await person.keep(*(f"the very same words here {place}" for place in range(4)))
    await forget(connection, ids[1])
    await connection.execute("update memories set recall_count = 2, last_recalled_at = $2 where id = $1", ids[2], NOON)
    before = await everything(connection)
    housekeeper.now = NOON + 60 * DAY

    would = {chore.name: await housekeeper.rehearse(chore.name) for chore in chores.ALL}

    assert await everything(connection) == before
    assert would["embeddings"]["owing"] == 1
    assert would["expiry"]["expired"] == 1
    assert would["retention"]["to_erase"] == 1
    assert would["quality"]["to_score"] == 1
    assert would["consolidation"]["to_make"] == 1


async def test_chores_pass_over_what_somebody_holds_and_wait_for_nobody(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    ids = await person.keep(Draft("expired", expires_at=NOON + DAY), "used")
    await connection.execute("update memories set recall_count = 1 where id = $1", ids[1])
    housekeeper.now = NOON + 2 * DAY

    async with connection.transaction(), asyncio.timeout(10):
        await connection.fetch("select from memories for update")
        assert await housekeeper("expiry") == {}
        assert await housekeeper("quality") == {"seen": 1}
    assert await housekeeper("expiry") == {"forgotten": 1}
    assert await housekeeper("quality") == {"seen": 1, "scored": 1}


async def test_two_that_do_the_same_chore_at_once_do_it_once(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    """Without any lease: even if two had one at the same time, no work would be done twice or lost."""
    await Person(MemoryContext.of(database, None)).keep(*(f"owing {place}" for place in range(150)))
    await forget(connection, *await person.keep(*(f"forgotten {place}" for place in range(120))))
    await person.keep(*(Draft(f"expired {place}", expires_at=NOON + DAY) for place in range(120)))
    keepers = [Housekeeper(database, person.library, NOON + 31 * DAY) for _ in range(2)]

    done: dict[str, int] = {}
    for name in ("embeddings", "expiry", "retention"):
        jobs = [replace(keeper.runner()._job, done={}, notes={}) for keeper in keepers]
        await asyncio.gather(*(chores.named()[name].work(job) for job in jobs))
        for job in jobs:
            for what, count in job.done.items():
                done[what] = done.get(what, 0) + count

    assert done["embedded"] == 150
    assert done["forgotten"] == 120
    assert done["erased"] == 120
    assert await connection.fetchval("select count(*) from memories") == 270


def test_rules_are_what_the_documents_say() -> None:
    assert Rules().retention == 30 * DAY
    assert [chore.name for chore in chores.ALL] == [
        "embeddings",
        "expiry",
        "retention",
        "quality",
        "consolidation",
        "statistics",
        "indexes",
    ]


async def test_a_namespace_deleted_long_ago_is_erased(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    await person.keep(SECRET_WORD, namespace="gone")
    await person.keep("another text")
    await person.call(DeleteNamespaceRequest(name="gone"))
    housekeeper.now = NOON + 29 * DAY
    kept = await housekeeper("retention")
    housekeeper.now = NOON + 31 * DAY

    rehearsed = await housekeeper.rehearse("retention")
    erased = await housekeeper("retention")

    assert (kept, erased) == ({}, {"namespaces_erased": 1})
    assert rehearsed["namespaces_to_erase"] == 1
    assert await holding(connection, SECRET_WORD) == []


async def test_a_namespace_restored_while_retention_runs_is_not_erased(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    for name in ("first", "second"):
        await person.keep(f"a text of the {name}", namespace=name)
        await person.call(DeleteNamespaceRequest(name=name))
    # Both are held, so that retention has listed them and waits.
    held = connection.transaction()
    await held.start()
    await connection.execute("select from namespaces for update")
    housekeeper.now = NOON + 31 * DAY
    retention = asyncio.create_task(housekeeper("retention"))
    while not await connection.fetchval("select count(*) from pg_locks where not granted"):
        await asyncio.sleep(0.01)
    await connection.execute("update namespaces set deleted_at = null, deleted_by = null")
    await held.commit()

    assert await retention == {}
    found = contents(await person.recall("text", namespaces=["first", "second"]))
    assert sorted(found) == ["a text of the first", "a text of the second"]


async def test_what_expired_keeps_a_revision_of_it(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    [id_] = await person.keep(Draft("Until tomorrow.", expires_at=NOON + DAY))
    housekeeper.now = NOON + 2 * DAY

    assert await housekeeper("expiry") == {"forgotten": 1}

    row = await connection.fetchrow("select action, author, before::text from revisions where memory_id = $1", id_)
    assert row is not None
    assert (row["action"], row["author"], row["before"]) == ("expire", "upkeep", '{"forgotten_at": null}')
    assert await field_of(connection, id_, "revision") == 2


async def test_what_expired_stays_when_that_is_undone(person: Person, housekeeper: Housekeeper) -> None:
    [id_] = await person.keep(Draft("Until tomorrow.", expires_at=NOON + DAY))
    housekeeper.now = NOON + 2 * DAY
    await housekeeper("expiry")
    later = person.at(housekeeper.now)

    undone = await later.undo(id_)

    assert (undone.forgotten_at, undone.expires_at) == (None, None)
    assert await housekeeper("expiry") == {}
    assert contents(await later.recall("tomorrow")) == ["Until tomorrow."]
    assert (await later.history(id_))[0].before["expires_at"] is not None
