"""Updates: the previous values are kept with author and time, and can be restored."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from mcp import Client

from folklore.callers import Caller
from folklore.db.database import Database
from folklore.db.stores.memories import Vectors
from folklore.errors import Conflict, NotFound, Refused
from folklore.memory.context import MemoryContext
from folklore.memory.records import update as revise
from folklore.memory.records.embedding import embed
from folklore.model import Draft, Relation
from tests import embedders
from tests.mcp.test_tools import call, refusal
from tests.memory.records.test_store_concurrent import whole
from tests.person import NOON, Person, contents


async def test_an_update_changes_only_the_given_fields(client: Client) -> None:
    fields = {
        "tags": ["build"],
        "importance": 0.5,
        "metadata": {"a": 1},
        "source": "ci.md",
        "session": "s",
    }
    [item] = (
        await call(
            client,
            "memory_store",
            memories=[{"content": "We build with make.", **fields}],
        )
    )["stored"]

    changed = await call(
        client, "memory_update", id=item["id"], tags=["build", "ci"], kind="semantic"
    )

    assert changed["id"] == item["id"]
    assert changed["revision"] == 2
    assert (changed["tags"], changed["kind"]) == (["build", "ci"], "semantic")
    kept = ("content", "importance", "metadata", "source", "session", "position")
    assert [changed[name] for name in kept] == [
        "We build with make.",
        0.5,
        {"a": 1},
        "ci.md",
        "s",
        0,
    ]


async def test_an_updated_memory_is_found_by_its_new_text_only(
    person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep(Draft("The zebra crossing is closed.", occurred_at=NOON))
    before = await connection.fetchval("select vector::text from embeddings")

    await person.update(id_, content="The giraffe enclosure is closed.", tags=["zoo"])

    assert contents(await person.search("giraffe")) == [
        "The giraffe enclosure is closed."
    ]
    assert contents(await person.search("tag:zoo")) == [
        "The giraffe enclosure is closed."
    ]
    assert contents(await person.search("zebra")) == []
    assert await connection.fetchval("select vector::text from embeddings") != before
    held = "select position(int4send(folklore_word($1)) in words) > 0 from fresh_words"
    assert [await connection.fetchval(held, word) for word in ("zebra", "giraff")] == [
        False,
        True,
    ]
    lengths = "select e.length = p.length from embeddings e join fresh_words p using (namespace_id)"
    assert await connection.fetchval(lengths)
    await whole(connection)


async def test_an_update_of_other_fields_keeps_the_embedding(
    person: Person, connection: asyncpg.Connection
) -> None:
    (id_,) = await person.keep("The gate opens at nine.")
    before = await connection.fetchval("select vector::text from embeddings")

    await person.update(id_, tags=["opening-hours"], summary="nine o'clock")

    assert await connection.fetchval("select vector::text from embeddings") == before
    lengths = "select e.length = p.length from embeddings e join fresh_words p using (namespace_id)"
    assert await connection.fetchval(lengths)
    assert contents(await person.search("summary:clock")) == ["The gate opens at nine."]


async def test_an_update_keeps_relations_and_usage_counts(
    person: Person, connection: asyncpg.Connection
) -> None:
    a, b = await person.keep("a fact", "its cause")
    await person.keep("a fact")
    await person.relate(Relation(b, "causes", a))

    await person.update(a, content="another fact")

    assert len(await person.relations(a)) == 1
    assert (
        await connection.fetchval(
            "select confirmed_count from memories where id = $1", a
        )
        == 1
    )


async def test_every_update_keeps_a_revision_with_author_time_and_previous_values(
    client: Client, person: Person
) -> None:
    (id_,) = await person.keep(Draft("first", tags=("x",)))
    await Person(person.library, "sarah", NOON + timedelta(hours=1)).update(
        id_, content="second"
    )
    await Person(person.library, "tom", NOON + timedelta(hours=2)).update(
        id_, tags=["y"], kind="bug"
    )

    last, first = await person.history(id_)

    assert (first.author, first.changed_at, dict(first.before)) == (
        "sarah",
        NOON + timedelta(hours=1),
        {"content": "first", "changed_by": None, "changed_at": None},
    )
    assert (last.author, last.revision, dict(last.before)) == (
        "tom",
        2,
        {"tags": ["x"], "kind": "note"},
    )


async def test_an_update_without_a_difference_writes_no_revision(
    person: Person,
) -> None:
    (id_,) = await person.keep(Draft("same", importance=0.1, occurred_at=NOON))

    memory = await person.update(id_, content="same", importance=0.1, occurred_at=NOON)

    assert memory.revision == 1
    assert await person.history(id_) == []


async def test_a_concurrent_update_is_not_overwritten(client: Client) -> None:
    [item] = (await call(client, "memory_store", content="one"))["stored"]
    await call(client, "memory_update", id=item["id"], content="two", if_revision=1)

    told = await refusal(
        client, "memory_update", id=item["id"], content="three", if_revision=1
    )

    assert "revision 2" in told
    assert "memory_get" in told
    [memory] = (await call(client, "memory_get", ids=[item["id"]]))["memories"]
    assert memory["content"] == "two"


async def test_an_update_to_the_text_of_another_memory_is_rejected_with_its_id(
    person: Person,
) -> None:
    a, b = await person.keep("We deploy by tag.", "We deploy by branch.")

    with pytest.raises(Conflict, match=str(a)):
        await person.update(b, content="We  deploy by tag.")
    assert sorted(contents(await person.recall("*"))) == [
        "We deploy by branch.",
        "We deploy by tag.",
    ]


async def test_optional_fields_can_be_cleared(client: Client) -> None:
    full = {
        "content": "x",
        "summary": "s",
        "tags": ["t"],
        "importance": 0.5,
        "paths": ["p"],
        "metadata": {"a": 1},
    }
    [item] = (await call(client, "memory_store", memories=[full]))["stored"]

    changed = await call(
        client,
        "memory_update",
        id=item["id"],
        clear=["summary", "tags", "importance", "paths", "metadata"],
    )

    assert not {"summary", "tags", "importance", "paths", "metadata"} & changed.keys()


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "without a change"), ({"clear": ["content"]}, "content cannot be empty"), ({"clear": ["mood"]}, "mood"),
    ({"clear": ["summary"], "summary": "s"}, "clear: summary"), ({"content": "  "}, "without a change"),
    ({"importance": 2}, "importance"), ({"expires_at": "2020-01-01T00:00:00Z"}, "expires_at"),
    ({"kind": "???"}, "kind"),
]  # fmt: skip


async def test_invalid_values_are_rejected_by_the_name_of_their_field_and_nothing_is_written(
    client: Client,
) -> None:
    [item] = (await call(client, "memory_store", content="kept"))["stored"]

    for fields, words in BAD:
        assert words in await refusal(
            client, "memory_update", id=item["id"], **fields
        ), fields
    assert "There is no memory" in await refusal(
        client, "memory_update", id=str(uuid4()), content="x"
    )
    [memory] = (await call(client, "memory_get", ids=[item["id"]]))["memories"]
    assert (memory["content"], memory["revision"]) == ("kept", 1)


async def test_forgotten_and_superseded_memories_cannot_be_updated(
    person: Person,
) -> None:
    old, gone = await person.keep("old", "gone")
    (new,) = await person.keep(Draft("new", supersedes=old))
    await person.forget(gone)

    with pytest.raises(Conflict, match=str(new)):
        await person.update(old, content="older")
    with pytest.raises(NotFound, match="was forgotten"):
        await person.update(gone, content="back")


async def test_a_new_session_appends_the_memory_and_a_new_language_stems_its_words(
    person: Person,
) -> None:
    await person.keep(
        Draft("a", session="s"),
        Draft("b", session="s"),
        Draft("z", session="full", position=2**31 - 1),
    )
    (id_,) = await person.keep(Draft("Die Häuser sind alt.", session="t"))

    memory = await person.update(id_, session="s", language="de")

    assert (memory.session, memory.position, memory.language) == ("s", 2, "german")
    assert (await person.update(id_, session="full")).position == 2**31 - 1
    assert contents(await person.search("Haus")) == ["Die Häuser sind alt."]


async def test_an_update_without_an_embedder_leaves_a_pending_embedding(
    database: Database, connection: asyncpg.Connection
) -> None:
    (id_,) = await Person(MemoryContext.of(database, embedders.ByLetter())).keep(
        "old words"
    )

    await Person(MemoryContext.of(database, embedders.Down())).update(
        id_, content="new words"
    )

    assert await connection.fetchval("select count(*) from embeddings") == 0
    assert await connection.fetchval("select content from memories") == "new words"


async def test_a_read_only_caller_cannot_update(person: Person) -> None:
    (id_,) = await person.keep("fixed")

    with pytest.raises(Refused):
        await replace(person, caller=Caller("r", may_write=False)).update(
            id_, content="x"
        )


# Undo


async def test_updates_are_undone_one_by_one_the_last_first(person: Person) -> None:
    (id_,) = await person.keep(Draft("one", tags=("a",), session="s"))
    await person.update(id_, content="two", tags=["b"])
    await person.update(id_, content="three", session="t")

    assert (await person.undo(id_)).content == "two"
    first = await person.undo(id_)

    assert (first.content, first.tags, first.session, first.position) == (
        "one",
        ("a",),
        "s",
        0,
    )
    assert contents(await person.search("one")) == ["one"]
    assert contents(await person.search("two")) == []
    with pytest.raises(
        NotFound, match=r"Every change of the memory .* was undone already"
    ):
        await person.undo(id_)
    assert [change.action for change in await person.history(id_)] == [
        "undo",
        "undo",
        "update",
        "update",
    ]
    assert [(await person.redo(id_)).content for _ in range(2)] == ["two", "three"]
    assert [(change.action, change.undoes) for change in await person.history(id_)][
        :2
    ] == [("undo", 3), ("undo", 4)]
    assert contents(await person.search("three")) == ["three"]
    with pytest.raises(NotFound, match="no undo that could be redone"):
        await person.redo(id_)
    assert (await person.undo(id_)).content == "two"


async def test_an_undo_with_a_revision_is_applied_once(person: Person) -> None:
    [id_] = await person.keep("one")
    await person.update(id_, content="two")
    await person.update(id_, content="three")

    with pytest.raises(Conflict, match="is at revision 3, not 2"):
        await person.undo(id_, revision=2)
    back = await person.undo(id_, revision=3)
    with pytest.raises(Conflict, match="is at revision 4, not 3"):
        await person.undo(id_, revision=3)

    assert (back.content, back.revision) == ("two", 4)
    assert (await person.undo(id_, revision=4)).content == "one"
    # although nothing is left to undo
    with pytest.raises(Conflict, match="is at revision 5, not 4"):
        await person.undo(id_, revision=4)


async def test_one_of_two_concurrent_undos_with_one_revision_is_applied(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other undo commits between the read of the memory and the change."""
    [id_] = await person.keep("one")
    await person.update(id_, content="two")
    await person.update(id_, content="three")
    others = [3]

    async def overtaken(library: MemoryContext, texts: Sequence[str]) -> Vectors | None:
        if others:
            assert (await person.undo(id_, revision=others.pop())).content == "two"
        return await embed(library, texts)

    monkeypatch.setattr(revise, "embed", overtaken)

    with pytest.raises(Conflict, match="is at revision 4, not 3"):
        await person.undo(id_, revision=3)


async def test_a_change_after_an_undo_is_undone_before_it(person: Person) -> None:
    (id_,) = await person.keep("one")
    await person.update(id_, content="two")
    await person.update(id_, content="three")
    await person.undo(id_)
    await person.update(id_, content="four")

    assert [(await person.undo(id_)).content for _ in range(2)] == ["two", "one"]


async def test_an_undo_does_not_restore_a_text_that_another_memory_has(
    person: Person,
) -> None:
    (id_,) = await person.keep("one")
    await person.update(id_, content="two")
    (other,) = await person.keep("one")

    with pytest.raises(Conflict, match=str(other)):
        await person.undo(id_)
    assert (await person.update(id_, content="two")).revision == 2, (
        "nothing was written"
    )
