"""Reflections: made of memories that say nearly the same, the same each time, and gone when a member is."""

from __future__ import annotations

from uuid import UUID

import asyncpg
import pytest

from folklore.db.database import Database
from folklore.db.stores.reflections import Reflections
from folklore.memory.context import MemoryContext
from folklore.memory.records.consolidate import carry_out, plan
from folklore.model import Draft
from folklore.ranking.clusters import Clustering
from tests.housework import DAY, Housekeeper, everything, field_of, holding
from tests.person import NOON, Person, contents

SAME = [
    "PgBouncer in transaction mode loses prepared statements of asyncpg. Ann found out.",
    "PgBouncer in transaction mode loses prepared statements of asyncpg. Bob saw it again.",
    "In transaction mode PgBouncer loses the prepared statements of asyncpg.",
]
OTHER = ["Lunch is at noon.", "We deploy from the release branch.", "The colour of the logo is green."]


async def reflections(connection: asyncpg.Connection) -> list[asyncpg.Record]:
    return list(await connection.fetch("select * from memories where trust = 'derived' order by id"))


@pytest.fixture
async def members(person: Person) -> list[UUID]:
    """Three memories that say nearly the same, among others."""
    await person.keep(*OTHER)
    return await person.keep(*SAME)


@pytest.fixture
async def reflection(housekeeper: Housekeeper, connection: asyncpg.Connection, members: list[UUID]) -> asyncpg.Record:
    """What upkeep made of them."""
    assert len(members) == 3
    await housekeeper("consolidation")
    (made,) = await reflections(connection)
    return made


async def test_what_says_nearly_the_same_is_summed_up(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    assert (await housekeeper.rehearse("consolidation"))["to_make"] == 1
    assert await housekeeper("consolidation") == {"considered": 6, "made": 1}

    (reflection,) = await reflections(connection)
    first, *lines = reflection["content"].splitlines()
    assert reflection["kind"] == "reflection"
    assert first.startswith("3 memories about ")
    assert {"PgBouncer", "asyncpg"} <= set(first.rstrip(":").split("about ")[1].split(", "))
    assert sorted(lines) == [
        "- In transaction mode PgBouncer loses the prepared statements of asyncpg.",
        "- PgBouncer in transaction mode loses prepared statements of asyncpg.",
    ]
    links = await connection.fetch("select to_id from relations where from_id = $1", reflection["id"])
    assert {row["to_id"] for row in links} == set(members)
    assert reflection["author"] == "folklore"
    found = await person.recall("PgBouncer", filters=_only("reflection"))
    assert [result.memory.id for result in found.memories] == [reflection["id"]]


async def test_the_same_memories_give_the_same_reflection_and_it_is_made_once(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    await housekeeper("consolidation")
    before = await everything(connection)

    assert await housekeeper("consolidation") == {"unchanged": 1}
    await person.keep("Something else entirely: penguins.")
    assert await housekeeper("consolidation") == {"considered": 7, "kept": 1}
    after = await everything(connection)
    assert set(before["relations"]) == set(after["relations"])
    assert {row for row in before["memories"] if "derived" in row} <= set(after["memories"])

    (old,) = await reflections(connection)
    await connection.execute("delete from memories where id = $1", old["id"])
    await connection.execute("delete from jobs")
    await housekeeper("consolidation")
    (new,) = await reflections(connection)
    assert (new["content"], new["idempotency_key"]) == (old["content"], old["idempotency_key"])


@pytest.mark.parametrize(
    "change",
    [
        "forgotten_at = $2",
        "superseded_at = $2",
        "expires_at = $2",
        "content = 'It is the other way round.', updated_at = $2::timestamptz + interval '1 second'",
    ],
)
async def test_a_reflection_is_unseen_at_once_when_a_member_changes_and_then_withdrawn(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection, members: list[UUID], change: str
) -> None:
    await housekeeper("consolidation")
    later = person.at(NOON + DAY)
    assert len((await later.recall("PgBouncer", filters=_only("reflection"))).memories) == 1

    await connection.execute(f"update memories set {change} where id = $1", members[0], NOON)

    assert (await later.recall("PgBouncer", filters=_only("reflection"))).memories == ()
    assert (await later.search("PgBouncer", filters=_only("reflection"))).memories == ()
    if "expires" in change:
        housekeeper.now = NOON + DAY
        await housekeeper("expiry")
    await connection.execute("delete from jobs")
    assert (await housekeeper("consolidation"))["withdrawn"] == 1
    for row in await reflections(connection):
        stale = members[0] in await _members(connection, row["id"]) and "other way round" not in row["content"]
        assert not stale, "one made anew says what its members say now"


async def test_who_stores_the_text_of_a_reflection_that_is_unseen_keeps_it(
    person: Person,
    housekeeper: Housekeeper,
    connection: asyncpg.Connection,
    members: list[UUID],
    reflection: asyncpg.Record,
) -> None:
    later = person.at(NOON + DAY)
    await later.keep(reflection["content"])
    assert [row["id"] for row in await reflections(connection)] == [reflection["id"]], "seen, it stays upkeep's"
    await later.update(members[0], content="It is the other way round.")
    assert (await later.recall("PgBouncer", filters=_only("reflection"))).memories == ()

    (kept,) = await later.keep(reflection["content"])

    assert kept == reflection["id"]
    housekeeper.now = NOON + 2 * DAY
    await connection.execute("delete from jobs")
    await housekeeper("consolidation")
    assert reflection["content"] in contents(await later.recall("PgBouncer", filters=_only("reflection")))


async def test_a_reflection_that_a_person_wrote_anew_is_that_persons(
    person: Person,
    housekeeper: Housekeeper,
    connection: asyncpg.Connection,
    members: list[UUID],
    reflection: asyncpg.Record,
) -> None:
    later = person.at(NOON + DAY)
    await later.update(reflection["id"], tags=["pool"])
    assert len(await reflections(connection)) == 1
    await later.update(reflection["id"], content="PgBouncer: use session mode.")
    await later.update(members[0], content="It is the other way round.")

    housekeeper.now = NOON + 2 * DAY
    await connection.execute("delete from jobs")
    await housekeeper("consolidation")

    assert "PgBouncer: use session mode." in contents(await later.recall("PgBouncer session mode"))


async def test_what_is_erased_is_not_kept_by_a_reflection(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    ids = await person.keep(*(f"quetzalcoatl prepared statements of asyncpg {place}" for place in range(3)))
    await housekeeper("consolidation")
    assert len(await reflections(connection)) == 1
    await connection.execute("update memories set forgotten_at = $2 where id = any($1)", ids, NOON)
    housekeeper.now = NOON + 31 * DAY

    assert (await housekeeper("retention"))["erased"] == 4
    assert await holding(connection, "quetzalcoatl") == []


async def test_a_reflection_without_its_members_is_not_seen(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    """Were a member erased by somebody who knows nothing of reflections."""
    await housekeeper("consolidation")

    await connection.execute("delete from memories where id = $1", members[0])

    assert (await person.recall("PgBouncer", filters=_only("reflection"))).memories == ()


async def test_a_reflection_that_a_person_forgot_is_not_made_again(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    await housekeeper("consolidation")
    await connection.execute("update memories set forgotten_at = $1 where trust = 'derived'", NOON)
    await connection.execute("delete from jobs")

    assert await housekeeper("consolidation") == {"considered": 6}
    assert len(await reflections(connection)) == 1


async def test_two_that_consolidate_at_once_make_one_reflection(
    database: Database, library: MemoryContext, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    store = Reflections(database)
    (notebook,) = await library.find_namespaces([])
    assert library.embedder is not None
    model = await library.embedder.model()
    sources = await store.sources(notebook.id, model.id, 100)

    async def breathe() -> None: ...

    made = 0
    planned = await plan(sources, [], Clustering(), breathe)
    for _ in range(2):
        done = await carry_out(store, library, notebook, sources, planned, now=NOON, breathe=breathe)
        made += done[0]

    assert made == 1
    assert len(await reflections(connection)) == 1
    assert await connection.fetchval("select count(*) from relations") == 3


async def test_a_member_that_changes_while_its_reflection_is_made_prevents_it(
    database: Database, library: MemoryContext, connection: asyncpg.Connection, members: list[UUID]
) -> None:
    store = Reflections(database)
    (notebook,) = await library.find_namespaces([])
    assert library.embedder is not None
    model = await library.embedder.model()
    sources = await store.sources(notebook.id, model.id, 100)

    async def breathe() -> None: ...

    planned = await plan(sources, [], Clustering(), breathe)
    await connection.execute("update memories set superseded_at = $2 where id = $1", members[0], NOON)

    assert await carry_out(store, library, notebook, sources, planned, now=NOON, breathe=breathe) == (0, 0)
    assert await reflections(connection) == []


async def test_a_memory_that_calls_itself_a_reflection_is_one_like_any_other(
    person: Person, housekeeper: Housekeeper, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep(Draft("My own thoughts", kind="reflection", metadata={"members": "many"}))

    assert await housekeeper("consolidation") == {"considered": 1}
    assert contents(await person.recall("thoughts")) == ["My own thoughts"]
    assert await field_of(connection, id_, "trust") == "stated"


async def _members(connection: asyncpg.Connection, reflection: UUID) -> set[UUID]:
    rows = await connection.fetch("select to_id from relations where from_id = $1", reflection)
    return {row["to_id"] for row in rows}


def _only(kind: str) -> object:
    from folklore.model import Filters

    return Filters(kinds=(kind,))
