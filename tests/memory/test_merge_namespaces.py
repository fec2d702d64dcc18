"""Merge two namespaces: every memory moves with its id, history, relations, revisions, usage and vectors."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from folklore.contract.filters import FiltersRequest
from folklore.contract.namespaces import (
    DeleteNamespaceRequest,
    MergedNamespaces,
    MergeNamespacesRequest,
    RestoreNamespaceRequest,
)
from folklore.db.stores.events.usage import UsageStore
from folklore.errors import Conflict, InvalidInput, NotFound, Refused
from folklore.model import Draft, Link, Relation
from tests.cli.test_confirmed import command_place  # noqa: F401 - a fixture
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.memory.auth.test_isolation import audited, holder, owner_of_two  # noqa: F401 - a fixture
from tests.memory.test_usage import used
from tests.person import NOON, Person, contents, ids
from tests.waiting import STUCK

TABLES = (
    "memories",
    "fresh_words",
    "embeddings",
    "relations",
    "revisions",
    "usage",
    "idempotency_keys",
    "injections",
)


async def merge(
    person: Person, name: str = "old", into: str = "notes", **asked: bool
) -> MergedNamespaces:
    return await person.call(MergeNamespacesRequest(name=name, into=into, **asked))


async def rows(
    connection: asyncpg.Connection, table: str, *namespaces: str
) -> list[dict[str, Any]]:
    found = await connection.fetch(
        f"select t.* from {table} t join namespaces n on n.id = t.namespace_id"
        " where n.name = any($1) and n.deleted_at is null",
        list(namespaces),
    )
    return [
        {
            name: value
            for name, value in row.items()
            if name not in ("namespace_id", "revision")
        }
        for row in found
    ]


def later(person: Person, days: int = 9) -> Person:
    return person.at(NOON + timedelta(days=days))


async def test_everything_moves_and_the_other_namespace_is_deleted(
    person: Person, connection: asyncpg.Connection
) -> None:
    [cat, dog, gone] = await person.keep(
        Draft("The cat is Turing.", idempotency_key="k1", tags=("pets",), metadata={"team": "red"}, pinned=True),
        "The dog is Hopper.", "The bird is gone.", namespace="old",
    )  # fmt: skip
    await person.keep(
        Draft("The cat sleeps.", related=(Link(cat),)),
        "The lease ends in March.",
        namespace="old",
    )
    [new] = await later(person, 1).keep(
        Draft("The dog is Ada.", supersedes=dog), namespace="old"
    )
    await person.update(cat, content="The cat is called Turing.")
    await person.forget(gone)
    await UsageStore(person.library.database).record([used(cat, namespace="old")])
    given = "0, 'bea', 's', 'UserPromptSubmit', now(), 'heading', 'The cat…', 5, now(), 'read', now(), false"
    await connection.execute(
        f"insert into injections select namespace_id, id, id, {given} from memories where pinned"
    )
    await person.keep("The harbour is grey.", "The crane is red.")
    before = {table: await rows(connection, table, "old", "notes") for table in TABLES}

    done = await merge(later(person))

    assert (done.name, done.into, done.memories, done.duplicates, done.known) == (
        "old",
        "notes",
        6,
        0,
        0,
    )
    after = {table: await rows(connection, table, "old", "notes") for table in TABLES}
    moves = [row for row in after["revisions"] if row["action"] == "move"]
    assert {row["reason"] for row in moves} == {"from old"}
    assert len(moves) == 6
    after["revisions"] = [row for row in after["revisions"] if row["action"] != "move"]
    for table in TABLES:
        assert sorted(map(repr, after[table])) == sorted(map(repr, before[table])), (
            table
        )
    for table in TABLES:
        assert await connection.fetchval(
            f"select count(*) from {table} t join namespaces n on n.id = t.namespace_id where n.name = 'old'"
        ) == 0  # fmt: skip
    assert contents(await later(person).recall("what is the cat called", limit=1)) == [
        "The cat is called Turing."
    ]
    assert contents(await later(person).search("Ada")) == ["The dog is Ada."]
    assert (await later(person).recall("cat")).searched == ("notes",)
    [repeated] = await later(person).keep(
        Draft("The cat is Turing.", idempotency_key="k1")
    )
    assert repeated == cat
    assert (await later(person).undo(cat)).content == "The cat is Turing."
    assert (await later(person).undo(gone)).forgotten_at is None
    assert (await later(person).undo(dog)).superseded_by is None
    assert [item.action for item in await person.history(cat)] == [
        "undo",
        "move",
        "update",
    ]
    with pytest.raises(NotFound, match="was never changed"):
        await later(person).undo(new)


async def test_a_text_that_both_have_is_superseded_by_the_one_that_stays(
    person: Person,
) -> None:
    [here] = await person.keep("The cat is Turing.")
    [there, other] = await person.keep(
        "The cat is Turing.", "The dog is Hopper.", namespace="old"
    )

    done = await merge(later(person))

    assert (done.memories, done.duplicates) == (2, 1)
    assert sorted(contents(await later(person).list_memories())) == [
        "The cat is Turing.",
        "The dog is Hopper.",
    ]
    assert [
        memory.superseded_by for memory in await person.get(there, other, here)
    ] == [here, None, None]
    assert [(item.action, item.reason) for item in await person.history(there)] == [
        ("move", "from old"), ("supersede", "merged"),
    ]  # fmt: skip
    with pytest.raises(Conflict, match="has this text"):
        await later(person).undo(there)


async def test_a_session_that_both_have_continues_in_order(person: Person) -> None:
    await person.keep(Draft("one", session="s"), Draft("two", session="s"))
    moved = await person.keep(
        Draft("three", session="s"), Draft("four", session="s"), "none", namespace="old"
    )
    [alone] = await person.keep(Draft("alone", session="t"), namespace="old")

    await merge(later(person))

    assert [memory.position for memory in await person.get(*moved, alone)] == [
        2,
        3,
        None,
        0,
    ]


async def copied(folklore: CommandLine, tmp_path: Path) -> UUID:
    """Store a memory, and copy it under its id to the namespace `old`."""
    stored = await folklore.json("store", "The cat is Turing.")
    await folklore.done("export", tmp_path / "all.jsonl")
    await folklore.done("import", tmp_path / "all.jsonl", "--namespace", "old")
    return UUID(stored["stored"][0]["id"])


async def test_a_memory_that_both_have_under_one_id_stays_behind(
    folklore: CommandLine, person: Person, tmp_path: Path
) -> None:
    id_ = await copied(folklore, tmp_path)
    [linked, successor] = await person.keep(
        Draft("The dog is Hopper.", related=(Link(id_),)),
        Draft("The cat is Ada.", supersedes=id_),
        namespace="old",
    )

    done = await merge(later(person))

    assert (done.memories, done.known) == (2, 1)
    assert len(contents(await later(person).list_memories())) == 3
    assert [(item.from_id, item.to_id) for item in await person.relations(linked)] == [
        (linked, id_)
    ]
    assert await later(person).call(RestoreNamespaceRequest(name="old")) == "old"
    everything = FiltersRequest(include_superseded=True)
    left = await later(person).list_memories(namespaces=("old",), filters=everything)
    assert contents(left) == ["The cat is Turing."]
    assert successor not in ids(left)


async def test_an_undo_moves_the_memories_back_as_they_are(person: Person) -> None:
    [cat, dog] = await person.keep(
        "The cat is Turing.", "The dog is Hopper.", namespace="old"
    )
    await person.relate(Relation(cat, "relates_to", dog))
    [same_here, here] = await person.keep("The gate is open.", "The crane is red.")
    [same_there] = await person.keep("The gate is open.", namespace="old")
    await merge(later(person))
    await later(person, 10).update(cat, content="The cat is called Turing.")
    await person.relate(Relation(cat, "relates_to", here))
    [new] = await later(person, 10).keep(Draft("The dog is Ada.", supersedes=dog))

    undone = await merge(later(person, 11), undo=True)

    assert (undone.name, undone.into, undone.memories) == ("notes", "old", 3)
    old, notes = [
        await later(person, 12).list_memories(namespaces=(name,))
        for name in ("old", "notes")
    ]
    assert sorted(contents(old)) == ["The cat is called Turing.", "The gate is open."]
    assert set(ids(notes)) == {same_here, here, new}
    assert contents(await later(person, 12).search("Turing", namespaces=("old",))) == [
        "The cat is called Turing."
    ]
    assert [memory.superseded_by for memory in await person.get(same_there, dog)] == [
        None,
        None,
    ]
    assert {(item.from_id, item.to_id) for item in await person.relations(cat)} == {
        (cat, dog)
    }
    assert [(item.action, item.reason) for item in await person.history(cat)] == [
        ("move", "from notes"), ("update", None), ("move", "from old"),
    ]  # fmt: skip
    assert (await later(person, 13).undo(cat)).content == "The cat is Turing."
    with pytest.raises(NotFound, match="No namespace 'old' was deleted"):
        await merge(later(person, 13), undo=True)
    assert (await merge(later(person, 14))).memories == 3
    assert (await merge(later(person, 15), undo=True)).memories == 3


async def test_an_undo_and_an_erasure_at_the_same_moment_do_not_deadlock(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("The cat is Turing.", namespace="old")
    await person.keep("The dog is Hopper.")
    await merge(later(person))
    old = await connection.fetchval("select id from namespaces where name = 'old'")

    async with connection.transaction():
        await connection.fetch("select folklore_lock($1)", old)
        undoing = asyncio.create_task(merge(later(person, 11), undo=True))
        async with asyncio.timeout(STUCK):
            while not await connection.fetchval(
                "select count(*) from pg_locks where not granted"
            ):
                continue
        # as an erasure goes on
        await connection.fetch("select from namespaces where id = $1 for update", old)

    undone = await undoing
    assert (undone.name, undone.memories) == ("notes", 1)


async def test_an_undo_is_refused_where_it_is_not_possible(person: Person) -> None:
    await person.keep("The cat is Turing.", namespace="old")
    await person.keep("The dog is Hopper.")
    await person.call(DeleteNamespaceRequest(name="old"))
    with pytest.raises(NotFound, match="old was not merged into notes"):
        await merge(later(person), undo=True)
    await person.call(RestoreNamespaceRequest(name="old"))
    await merge(later(person))
    await later(person).keep("The bird is Ada.", namespace="old")

    with pytest.raises(Conflict, match="Another namespace has the name 'old' now"):
        await merge(later(person), undo=True)
    with pytest.raises(Conflict, match="was deleted more than 30 days ago"):
        await merge(later(person, 60), undo=True)
    with pytest.raises(InvalidInput, match="dry_run: does not go with undo"):
        await merge(later(person), undo=True, dry_run=True)
    assert len((await person.list_memories(namespaces=("notes",))).memories) == 2


async def test_different_memories_under_one_id_are_refused_and_nothing_moves(
    folklore: CommandLine, person: Person, tmp_path: Path
) -> None:
    id_ = await copied(folklore, tmp_path)
    await person.keep("The dog is Hopper.", namespace="old")
    await folklore.done("forget", id_, "-n", "notes", "--yes")

    with pytest.raises(
        Conflict, match=f"different memories under the same id: {id_}"
    ) as refused:
        await merge(later(person))

    assert "folklore forget --erase -n old ID" in str(refused.value)
    assert len((await person.list_memories(namespaces=("old",))).memories) == 2


async def test_questions_are_read_in_the_languages_of_both(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("The harbour is grey.")
    await person.keep(
        Draft("Die Häuser am Hafen sind grau.", language="german"), namespace="old"
    )

    await merge(later(person))

    assert await connection.fetchval(
        "select languages from namespaces where name = 'notes'"
    ) == ["english", "german"]
    assert contents(await later(person).search("Haus")) == [
        "Die Häuser am Hafen sind grau."
    ]


async def test_more_memories_than_one_statement_moves(person: Person) -> None:
    await person.keep("The harbour is grey.")
    for batch in range(3):
        await person.keep(
            *(f"harbour {batch} {n}" for n in range(500)), namespace="old"
        )

    assert (await merge(later(person))).memories == 1_500
    assert len((await person.list_memories(limit=1_000)).memories) == 1_000
    assert (await later(person).recall("harbour 2 77", limit=1)).memories != ()


async def test_unknown_names_and_one_name_twice_are_refused(person: Person) -> None:
    await person.keep("The cat is Turing.")

    with pytest.raises(NotFound, match="no namespace 'absent'"):
        await merge(person, "absent")
    with pytest.raises(NotFound, match="no namespace 'absent'"):
        await merge(person, "notes", "absent")
    with pytest.raises(InvalidInput, match="into: is the namespace itself"):
        await merge(person, "notes", "Notes")


async def test_a_merge_needs_the_role_of_an_admin_in_both_and_is_logged(
    owner: Person,
) -> None:
    request = MergeNamespacesRequest(name="payments", into="board")
    for name, grants in (
        ("w", ("payments:admin", "board:writer")),
        ("v", ("payments:writer", "board:admin")),
    ):
        with pytest.raises(Refused):
            await (await holder(owner, name, *grants)).call(request)
    with pytest.raises(NotFound):
        await (await holder(owner, "s", "payments:admin")).call(request)
    admin = await holder(owner, "admin", "payments:admin", "board:admin")

    assert (await admin.call(request)).memories == 1

    assert len(contents(await owner.list_memories(namespaces=("board",)))) == 2
    before, after = [
        await audited(owner, "board", action=action) for action in ("store", "move")
    ]
    assert [entry.amount for entry in (*before, *after)] == [1, 1, 1], (
        "the log of the other namespace moved too"
    )
    [entry] = await audited(owner, "board", action="namespace_merge")
    assert (entry.principal, entry.amount, entry.detail) == ("admin", 1, "payments")


async def test_the_command_merges_namespaces_here_and_at_a_server(
    folklore: CommandLine, where: tuple[str, ...]
) -> None:
    for text, namespace in (
        ("The gate is green.", "old"),
        ("The gate is open.", "notes"),
        ("The gate is open.", "old"),
    ):
        await folklore.done("store", text, "-n", namespace, *where)
    named = ("namespaces", "merge", "old", "--into", "notes", *where)

    moved = "2 memories (1 superseded by the same text) from old into notes"
    assert f"would move {moved}" in await folklore.done(*named, "--dry-run")
    assert f"moved {moved}" in await folklore.done(*named, "--yes")
    listed = await folklore.json("list", "-n", "notes", *where)
    assert len(listed["memories"]) == 2
    assert (await folklore(*named)).code == 4
    assert "moved 2 memories from notes into old" in await folklore.done(
        *named, "--undo"
    )
