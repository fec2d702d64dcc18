"""Effects of each background job on a real database; a dry run writes nothing."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import asyncpg
import pytest

from folklore.contract.filters import FiltersRequest
from folklore.contract.namespaces import DeleteNamespaceRequest
from folklore.db.database import Database
from folklore.db.stores.embeddings import FIRST, Embeddings
from folklore.db.stores.upkeep.maintenance import Maintenance
from folklore.jobs.definitions import BY_NAME, JOBS
from folklore.memory.context import MemoryContext
from folklore.memory.models.backfill import Backfill, Pace
from folklore.model import Draft, Filters
from tests.background_jobs import DAY, BackgroundJobs, everything, field_of, holding
from tests.embedders import MODEL, ByLetter, Down
from tests.person import NOON, Person, contents
from tests.waiting import STUCK

SECRET_WORD = "quetzalcoatl"


async def forget(connection: asyncpg.Connection, *ids: UUID, at: object = NOON) -> None:
    await connection.execute(
        "update memories set forgotten_at = $2 where id = any($1)", list(ids), at
    )


# embeddings


async def test_memories_stored_while_the_model_was_down_get_their_embeddings(
    database: Database, connection: asyncpg.Connection
) -> None:
    await Person(MemoryContext.of(database, Down())).keep("one", "two", "three")
    up = MemoryContext.of(database, ByLetter())

    assert await BackgroundJobs(database, up).dry_run("embeddings") == {"pending": 3}
    assert await BackgroundJobs(database, up)("embeddings") == {"embedded": 3}
    assert await BackgroundJobs(database, up)("embeddings") == {}
    assert (
        await connection.fetchval(
            "select count(*) from embeddings where model_id = $1", MODEL.id
        )
    ) == 3
    assert contents(await Person(up).recall("two", limit=1)) == ["two"]


async def test_pending_embeddings_are_made_in_batches_of_three_statements(
    database: Database, queries: list[str]
) -> None:
    await Person(MemoryContext.of(database, Down())).keep(
        *(f"text number {place}" for place in range(100))
    )
    embedder = ByLetter()
    ids = [
        one.id
        for one in await MemoryContext.of(database, embedder).namespaces.find(None)
    ]
    backfill = Backfill(
        Embeddings(database), embedder, MODEL.id, now=lambda: NOON, pace=Pace(batch=40)
    )
    await asyncio.sleep(0)
    queries.clear()

    written = [filled.embeddings async for filled in backfill.batches(ids)]
    await asyncio.sleep(0)

    assert written == [40, 40, 20]
    assert [len(call) for call in embedder.calls] == [40, 40, 20]
    said = [
        query for query in queries if query.startswith(("insert", "with", "select"))
    ]
    assert len(said) == 3 * 3 + 2, (
        "pending memories, the model, the embeddings; the first time the model is written; last the pending cues"
    )


async def test_forgotten_memories_and_texts_without_a_known_word_get_no_embedding(
    database: Database, connection: asyncpg.Connection
) -> None:
    person = Person(MemoryContext.of(database, Down()))
    forgotten, _wordless, _pending = await person.keep(
        "to be forgotten", "zzz", "an ordinary text"
    )
    await forget(connection, forgotten)
    jobs = BackgroundJobs(database, MemoryContext.of(database, ByLetter()))

    assert await jobs("embeddings") == {"embedded": 1, "wordless": 1}
    assert await jobs("embeddings") == {"wordless": 1}


async def test_a_job_whose_model_is_down_fails_with_the_reason(
    database: Database,
) -> None:
    jobs = BackgroundJobs(database, MemoryContext.of(database, Down()))
    await Person(jobs.context).keep("pending")

    report = await jobs.run(BY_NAME["embeddings"])

    assert (report.outcome, report.error) == (
        "failed",
        "The embedding service does not answer.",
    )


# expiry


async def test_an_expired_memory_is_forgotten_with_a_revision_and_its_text_can_be_stored_again(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    soon, later, never = await person.keep(
        Draft("today's special", expires_at=NOON + DAY),
        Draft("next week", expires_at=NOON + 7 * DAY),
        Draft("always"),
    )
    jobs.now = NOON + 2 * DAY

    assert await jobs.dry_run("expiry") == {"expired": 1}
    assert await jobs("expiry") == {"forgotten": 1}
    assert await jobs("expiry") == {}
    assert await field_of(connection, soon, "forgotten_at") == jobs.now
    row = await connection.fetchrow(
        "select action, author, before::text from revisions where memory_id = $1", soon
    )
    assert tuple(row or ()) == ("expire", "folklore", '{"forgotten_at": null}')
    assert await field_of(connection, soon, "revision") == 2
    assert [
        await field_of(connection, id_, "forgotten_at") for id_ in (later, never)
    ] == [None, None]
    (again,) = await person.at(jobs.now).keep("today's special")
    assert again != soon


async def test_storing_an_expired_text_again_makes_it_visible_before_the_job_has_run(
    person: Person,
) -> None:
    """A store that answered with the id of an invisible memory would have lost the text."""
    (old,) = await person.keep(Draft("today's special", expires_at=NOON + DAY))
    later = person.at(NOON + 2 * DAY)

    assert await later.keep("today's special") == [old]
    assert contents(await later.recall("special")) == ["today's special"]


# retention


async def test_after_the_retention_time_no_table_holds_a_forgotten_text(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    gone, kept = await person.keep(
        Draft(
            f"{SECRET_WORD} text",
            summary=SECRET_WORD,
            tags=(SECRET_WORD,),
            source=SECRET_WORD,
        ),
        "another text",
    )
    (namespace,) = await person.library.find_namespaces([])
    await connection.execute(
        "insert into relations values ($1, $2, 'relates_to', $3, 1, 'tester', $4)",
        namespace.id,
        kept,
        gone,
        NOON,
    )
    await forget(connection, gone)
    assert set(await holding(connection, SECRET_WORD)) == {"memories"}
    jobs.now = NOON + 31 * DAY

    assert await jobs.dry_run("retention") == {"to_erase": 1, "usage_to_drop": 0}
    assert await jobs("retention") == {"erased": 1}
    assert await holding(connection, SECRET_WORD) == []
    assert await holding(connection, str(gone)) == ["audit"], (
        "which records ids and no texts"
    )
    assert contents(await person.recall("text")) == ["another text"]


@pytest.mark.parametrize("days", [0, 29.9])
async def test_nothing_is_erased_within_the_retention_time(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection, days: float
) -> None:
    (id_,) = await person.keep("a text")
    await forget(connection, id_)
    jobs.now = NOON + timedelta(days=days)

    assert await jobs("retention") == {}
    assert await field_of(connection, id_, "content") == "a text"


async def test_a_superseded_memory_outlives_the_erased_memory_that_superseded_it(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    old, new = await person.keep("the old fact", "the new fact")
    await connection.execute(
        "update memories set superseded_at = $2, superseded_by = $3 where id = $1",
        old,
        NOON,
        new,
    )
    await forget(connection, new)
    jobs.now = NOON + 31 * DAY

    assert await jobs("retention") == {"erased": 1}
    assert await field_of(connection, old, "superseded_by") is None
    assert await field_of(connection, old, "superseded_at") == NOON


async def test_memories_are_erased_in_batches_after_the_configured_retention_time(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    await forget(
        connection, *await person.keep(*(f"text {place}" for place in range(250)))
    )
    jobs.options = replace(jobs.options, retention=DAY)
    jobs.now = NOON + 2 * DAY

    assert await jobs("retention") == {"erased": 250}
    held = await everything(connection)
    assert (held["memories"], held["fresh_words"], held["embeddings"]) == ([], [], [])


@pytest.mark.parametrize("count", [2, 60])
async def test_the_number_of_statements_does_not_depend_on_the_size_of_a_batch(
    database: Database,
    person: Person,
    connection: asyncpg.Connection,
    queries: list[str],
    count: int,
) -> None:
    maintenance = Maintenance(database)
    await forget(
        connection, *await person.keep(*(f"text {place}" for place in range(count)))
    )
    kept = await person.keep(*(f"used {place}" for place in range(count)))
    await connection.execute(
        "update memories set recall_count = 1 where id = any($1)", kept
    )
    (namespace,) = await person.library.find_namespaces([])
    await asyncio.sleep(0)
    queries.clear()

    assert await maintenance.erase_forgotten(namespace.id, NOON + DAY, 100) == count
    used = await maintenance.used_memories(
        namespace=namespace.id, after=FIRST, batch=100
    )
    scored = {
        "ids": [memory.id for memory in used],
        "uses": [1] * count,
        "qualities": [0.5] * count,
    }
    assert await maintenance.write_quality(namespace=namespace.id, **scored) == count
    await asyncio.sleep(0)

    said = [
        query
        for query in queries
        if query.split(maxsplit=1)[0] in ("select", "with", "update", "delete")
    ]
    assert len(said) == 6 + 1 + 1


async def test_a_memory_that_is_being_restored_is_not_erased(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("a text")
    await forget(connection, id_)
    jobs.now = NOON + 31 * DAY
    async with connection.transaction():
        await connection.execute(
            "update memories set forgotten_at = null where id = $1", id_
        )
        assert await jobs("retention") == {}

    assert contents(await person.recall("text")) == ["a text"]


# quality


async def test_used_memories_are_scored_and_fade_from_recall_unless_they_are_protected(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    faded, decided, _pinned, important, unused = await person.keep(
        "a text that faded",
        Draft("a text decided", kind="decision"),
        Draft("a text pinned", pinned=True),
        Draft("a text of importance", importance=0.9),
        "a text never recalled",
    )
    await connection.execute(
        "update memories set recall_count = 1, last_recalled_at = $2 where id <> $1",
        unused,
        NOON,
    )
    jobs.now = NOON + 10 * DAY
    assert await jobs.dry_run("quality") == {"seen": 4, "to_score": 4}
    assert await jobs("quality") == {"seen": 4, "scored": 4}
    assert await field_of(connection, faded, "quality") == pytest.approx(
        0.5 * 0.5 ** (10 / 90)
    )
    jobs.now = NOON + 400 * DAY

    assert await jobs("quality") == {"seen": 4, "scored": 2}
    assert set(contents(await person.at(jobs.now).recall("text"))) == {
        "a text decided", "a text pinned", "a text of importance", "a text never recalled",
    }  # fmt: skip
    for of_faded in (await person.list_memories(filters=FiltersRequest(faded=True)), await person.at(jobs.now).recall(
        "text", filters=Filters(faded=True)
    )):  # fmt: skip
        assert contents(of_faded) == ["a text that faded"]
    assert [
        await field_of(connection, id_, "quality") for id_ in (decided, important)
    ] == [0.5, 0.5]
    assert await field_of(connection, faded, "forgotten_at") is None, (
        "nothing is deleted by decay"
    )


async def test_a_faded_memory_is_visible_after_its_text_is_changed_or_stored_again_and_else_with_the_next_run(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    said, tagged, again = await person.keep(
        "The harbour is closed.", "The harbour is deep.", "The harbour is blue."
    )
    await connection.execute(
        "update memories set recall_count = 1, last_recalled_at = $1", NOON
    )
    jobs.now = NOON + 400 * DAY
    await jobs("quality")
    later = person.at(jobs.now)
    assert contents(await later.recall("harbour")) == []

    await later.update(said, content="The harbour is open.")
    await later.update(tagged, tags=("sea",))
    assert await later.keep("The harbour is blue.") == [again]

    assert set(contents(await later.recall("harbour"))) == {
        "The harbour is open.",
        "The harbour is blue.",
    }
    assert await jobs("quality") == {"seen": 3, "scored": 3}
    assert len((await later.recall("harbour")).memories) == 3


async def test_a_score_that_hardly_changed_is_not_written(
    person: Person, jobs: BackgroundJobs
) -> None:
    await person.keep("a text")
    await person.keep("a text")  # confirmed
    assert await jobs("quality") == {"seen": 1, "scored": 1}
    jobs.now = NOON + DAY / 24

    assert await jobs("quality") == {"seen": 1}


# all jobs


async def test_a_dry_run_of_every_job_changes_nothing(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    database: Database,
) -> None:
    await Person(MemoryContext.of(database, None)).keep("has no embedding")
    ids = await person.keep(
        Draft("expired", expires_at=NOON + DAY),
        "forgotten",
        "used",
        *["same words here"] * 1,
    )
    await person.keep(*(f"the very same words here {place}" for place in range(4)))
    await forget(connection, ids[1])
    await connection.execute(
        "update memories set recall_count = 2, last_recalled_at = $2 where id = $1",
        ids[2],
        NOON,
    )
    before = await everything(connection)
    jobs.now = NOON + 60 * DAY

    would = {job.name: await jobs.dry_run(job.name) for job in JOBS}

    assert await everything(connection) == before
    assert would["embeddings"]["pending"] == 1
    assert would["expiry"]["expired"] == 1
    assert would["retention"]["to_erase"] == 1
    assert would["quality"]["to_score"] == 1
    assert would["consolidation"]["to_make"] == 1


async def test_jobs_skip_locked_memories_without_waiting(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    ids = await person.keep(Draft("expired", expires_at=NOON + DAY), "used")
    await connection.execute(
        "update memories set recall_count = 1 where id = $1", ids[1]
    )
    jobs.now = NOON + 2 * DAY

    async with connection.transaction(), asyncio.timeout(STUCK):
        await connection.fetch("select from memories for update")
        assert await jobs("expiry") == {}
        assert await jobs("quality") == {"seen": 1}
    assert await jobs("expiry") == {"forgotten": 1}
    assert await jobs("quality") == {"seen": 1, "scored": 1}


async def test_two_concurrent_runs_of_a_job_do_no_work_twice(
    database: Database, person: Person, connection: asyncpg.Connection
) -> None:
    """Without a lease, as if two processes held it at the same time."""
    await Person(MemoryContext.of(database, None)).keep(
        *(f"pending {place}" for place in range(150))
    )
    await forget(
        connection, *await person.keep(*(f"forgotten {place}" for place in range(120)))
    )
    await person.keep(
        *(Draft(f"expired {place}", expires_at=NOON + DAY) for place in range(120))
    )
    jobs = BackgroundJobs(database, person.library, NOON + 31 * DAY)

    done: dict[str, int] = {}
    for name in ("embeddings", "expiry", "retention"):
        runs = [jobs.new_run() for _ in range(2)]
        await asyncio.gather(*(BY_NAME[name].work(run) for run in runs))
        for run in runs:
            for what, count in run.done.items():
                done[what] = done.get(what, 0) + count

    assert done["embedded"] == 150
    assert done["forgotten"] == 120
    assert done["erased"] == 120
    assert await connection.fetchval("select count(*) from memories") == 270


async def test_a_namespace_is_erased_after_the_retention_time(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    await person.keep(SECRET_WORD, namespace="gone")
    await person.keep("another text")
    await person.call(DeleteNamespaceRequest(name="gone"))
    jobs.now = NOON + 29 * DAY
    kept = await jobs("retention")
    jobs.now = NOON + 31 * DAY

    planned = await jobs.dry_run("retention")
    erased = await jobs("retention")

    assert (kept, erased) == ({}, {"namespaces_erased": 1})
    assert planned["namespaces_to_erase"] == 1
    assert await holding(connection, SECRET_WORD) == []


async def test_a_namespace_restored_while_retention_runs_is_not_erased(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    for name in ("first", "second"):
        await person.keep(f"a text of the {name}", namespace=name)
        await person.call(DeleteNamespaceRequest(name=name))
    # Both are held, so that retention has listed them and waits.
    held = connection.transaction()
    await held.start()
    await connection.execute("select from namespaces for update")
    jobs.now = NOON + 31 * DAY
    retention = asyncio.create_task(jobs("retention"))
    while not await connection.fetchval(
        "select count(*) from pg_locks where not granted"
    ):
        await asyncio.sleep(0.01)
    await connection.execute(
        "update namespaces set deleted_at = null, deleted_by = null"
    )
    await held.commit()

    assert await retention == {}
    found = contents(await person.recall("text", namespaces=["first", "second"]))
    assert sorted(found) == ["a text of the first", "a text of the second"]


async def test_an_expired_memory_stays_after_undo(
    person: Person, jobs: BackgroundJobs
) -> None:
    [id_] = await person.keep(Draft("Until tomorrow.", expires_at=NOON + DAY))
    jobs.now = NOON + 2 * DAY
    await jobs("expiry")
    later = person.at(jobs.now)

    undone = await later.undo(id_)

    assert (undone.forgotten_at, undone.expires_at) == (None, None)
    assert await jobs("expiry") == {}
    assert contents(await later.recall("tomorrow")) == ["Until tomorrow."]
    assert (await later.history(id_))[0].before["expires_at"] is not None
