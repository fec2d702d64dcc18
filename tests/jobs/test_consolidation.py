"""Reflections of similar memories: made once, hidden when a member changes, erased with a member."""

from uuid import UUID

import asyncpg
import pytest

from folklore.contract.filters import FiltersRequest
from folklore.db.stores.namespaces import NamespaceInfo
from folklore.db.stores.reflections import Reflections, Sources
from folklore.jobs.consolidation import apply_plan, plan_changes
from folklore.model import Draft, Filters
from tests.background_jobs import DAY, BackgroundJobs, everything, field_of, holding
from tests.person import NOON, Person, contents

SAME = [
    "PgBouncer in transaction mode loses prepared statements of asyncpg. Ann found out.",
    "PgBouncer in transaction mode loses prepared statements of asyncpg. Bob saw it again.",
    "In transaction mode PgBouncer loses the prepared statements of asyncpg.",
]
OTHER = [
    "Lunch is at noon.",
    "We deploy from the release branch.",
    "The colour of the logo is green.",
]


async def reflections(connection: asyncpg.Connection) -> list[asyncpg.Record]:
    return list(
        await connection.fetch(
            "select * from memories where trust = 'derived' order by id"
        )
    )


@pytest.fixture
async def members(person: Person) -> list[UUID]:
    """Three similar memories among others."""
    await person.keep(*OTHER)
    return await person.keep(*SAME)


@pytest.fixture
async def reflection(
    jobs: BackgroundJobs, connection: asyncpg.Connection, members: list[UUID]
) -> asyncpg.Record:
    """The reflection of the members."""
    assert len(members) == 3
    await jobs("consolidation")
    (made,) = await reflections(connection)
    return made


async def test_similar_memories_are_summarised_in_a_reflection(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    members: list[UUID],
) -> None:
    assert (await jobs.dry_run("consolidation"))["to_make"] == 1
    assert await jobs("consolidation") == {"considered": 6, "made": 1}

    (reflection,) = await reflections(connection)
    first, *lines = reflection["content"].splitlines()
    assert reflection["kind"] == "reflection"
    assert first.startswith("3 memories about ")
    assert {"PgBouncer", "asyncpg"} <= set(
        first.rstrip(":").split("about ")[1].split(", ")
    )
    assert sorted(lines) == [
        "- In transaction mode PgBouncer loses the prepared statements of asyncpg.",
        "- PgBouncer in transaction mode loses prepared statements of asyncpg.",
    ]
    assert await members_of(connection, reflection) == set(members)
    assert reflection["author"] == "folklore"
    found = await person.recall("PgBouncer", filters=Filters(kinds=("reflection",)))
    assert [result.memory.id for result in found.memories] == [reflection["id"]]


async def members_of(
    connection: asyncpg.Connection, reflection: asyncpg.Record
) -> set[UUID]:
    rows = await connection.fetch(
        "select to_id from relations where from_id = $1", reflection["id"]
    )
    return {row["to_id"] for row in rows}


async def keys(connection: asyncpg.Connection) -> list[str]:
    return [
        row["key"] for row in await connection.fetch("select key from idempotency_keys")
    ]


async def test_the_same_memories_give_the_same_reflection_once(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    members: list[UUID],
) -> None:
    await jobs("consolidation")
    before = await everything(connection)

    assert await jobs("consolidation") == {"unchanged": 1}
    await person.keep("Something else entirely: penguins.")
    assert await jobs("consolidation") == {"considered": 7, "kept": 1}
    after = await everything(connection)
    assert set(before["relations"]) == set(after["relations"])
    assert {row for row in before["memories"] if "derived" in row} <= set(
        after["memories"]
    )

    (old,) = await reflections(connection)
    (key,) = await keys(connection)
    await connection.execute("delete from memories where id = $1", old["id"])
    await connection.execute("delete from jobs")
    await jobs("consolidation")
    (new,) = await reflections(connection)
    assert new["content"] == old["content"]
    assert await keys(connection) == [key]


@pytest.mark.parametrize(
    "change",
    [
        "forgotten_at = $2",
        "superseded_at = $2",
        "expires_at = $2",
        "content = 'It is the other way round.', updated_at = $2::timestamptz + interval '1 second'",
    ],
)
async def test_a_reflection_is_hidden_when_a_member_changes_and_withdrawn_by_the_next_run(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    members: list[UUID],
    change: str,
) -> None:
    await jobs("consolidation")
    later = person.at(NOON + DAY)
    assert (
        len(
            (
                await later.recall("PgBouncer", filters=Filters(kinds=("reflection",)))
            ).memories
        )
        == 1
    )

    await connection.execute(
        f"update memories set {change} where id = $1", members[0], NOON
    )

    assert (
        await later.recall("PgBouncer", filters=Filters(kinds=("reflection",)))
    ).memories == ()
    assert (
        await later.search("PgBouncer", filters=FiltersRequest(kinds=("reflection",)))
    ).memories == ()
    if "expires" in change:
        jobs.now = NOON + DAY
        await jobs("expiry")
    await connection.execute("delete from jobs")
    assert (await jobs("consolidation"))["withdrawn"] == 1
    for row in await reflections(connection):
        stale = (
            members[0] in await members_of(connection, row)
            and "other way round" not in row["content"]
        )
        assert not stale, "a new one quotes the present texts"


async def test_storing_the_text_of_a_hidden_reflection_makes_it_a_stated_memory(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    members: list[UUID],
    reflection: asyncpg.Record,
) -> None:
    later = person.at(NOON + DAY)
    await later.keep(reflection["content"])
    assert [row["id"] for row in await reflections(connection)] == [reflection["id"]]
    await later.update(members[0], content="It is the other way round.")
    assert (
        await later.recall("PgBouncer", filters=Filters(kinds=("reflection",)))
    ).memories == ()

    (kept,) = await later.keep(reflection["content"])

    assert kept == reflection["id"]
    jobs.now = NOON + 2 * DAY
    await connection.execute("delete from jobs")
    await jobs("consolidation")
    assert reflection["content"] in contents(
        await later.recall("PgBouncer", filters=Filters(kinds=("reflection",)))
    )


async def test_a_reflection_whose_text_a_person_changed_is_not_withdrawn(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    members: list[UUID],
    reflection: asyncpg.Record,
) -> None:
    later = person.at(NOON + DAY)
    await later.update(reflection["id"], tags=["pool"])
    assert len(await reflections(connection)) == 1
    await later.update(reflection["id"], content="PgBouncer: use session mode.")
    await later.update(members[0], content="It is the other way round.")

    jobs.now = NOON + 2 * DAY
    await connection.execute("delete from jobs")
    await jobs("consolidation")

    assert "PgBouncer: use session mode." in contents(
        await later.recall("PgBouncer session mode")
    )


async def test_erasing_members_erases_their_reflection(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    ids = await person.keep(
        *(f"quetzalcoatl prepared statements of asyncpg {place}" for place in range(3))
    )
    await jobs("consolidation")
    assert len(await reflections(connection)) == 1
    await connection.execute(
        "update memories set forgotten_at = $2 where id = any($1)", ids, NOON
    )
    jobs.now = NOON + 31 * DAY

    assert (await jobs("retention"))["erased"] == 4
    assert await holding(connection, "quetzalcoatl") == []


async def test_a_reflection_that_lacks_a_member_is_hidden(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    members: list[UUID],
) -> None:
    """A member may be deleted by a statement that does not know of reflections."""
    await jobs("consolidation")

    await connection.execute("delete from memories where id = $1", members[0])

    assert (
        await person.recall("PgBouncer", filters=Filters(kinds=("reflection",)))
    ).memories == ()


async def test_a_reflection_that_a_person_forgot_is_not_made_again(
    person: Person,
    jobs: BackgroundJobs,
    connection: asyncpg.Connection,
    members: list[UUID],
) -> None:
    await jobs("consolidation")
    await connection.execute(
        "update memories set forgotten_at = $1 where trust = 'derived'", NOON
    )
    await connection.execute("delete from jobs")

    assert await jobs("consolidation") == {"considered": 6}
    assert len(await reflections(connection)) == 1


async def test_a_plan_that_is_applied_twice_makes_one_reflection(
    jobs: BackgroundJobs, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    namespace, sources = await sources_of(jobs)
    run = jobs.new_run()

    plan = await plan_changes(sources, [], pause=run.pause)
    made = [await apply_plan(run, namespace, plan) for _ in range(2)]

    assert made == [(1, 0), (0, 0)]
    assert len(await reflections(connection)) == 1
    assert await connection.fetchval("select count(*) from relations") == 3


async def test_no_reflection_is_made_if_a_member_changes_meanwhile(
    jobs: BackgroundJobs, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    namespace, sources = await sources_of(jobs)
    run = jobs.new_run()

    plan = await plan_changes(sources, [], pause=run.pause)
    await connection.execute(
        "update memories set superseded_at = $2 where id = $1", members[0], NOON
    )

    assert await apply_plan(run, namespace, plan) == (0, 0)
    assert await reflections(connection) == []


async def test_a_stated_memory_of_kind_reflection_is_a_memory_like_any_other(
    person: Person, jobs: BackgroundJobs, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep(
        Draft("My own thoughts", kind="reflection", metadata={"members": "many"})
    )

    assert await jobs("consolidation") == {"considered": 1}
    assert contents(await person.recall("thoughts")) == ["My own thoughts"]
    assert await field_of(connection, id_, "trust") == "stated"


async def sources_of(jobs: BackgroundJobs) -> tuple[NamespaceInfo, Sources]:
    (namespace,) = await jobs.context.find_namespaces([])
    assert jobs.context.embedder is not None
    model = await jobs.context.embedder.model()
    return namespace, await Reflections(jobs.database).sources(
        namespace.id, model.id, 100
    )
