"""Superseding: the older memory is hidden from recall, visible as of a past time, and can be restored."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from mcp import Client

from folklore.db.sql_loader import statement
from folklore.db.stores.embeddings import Neighbour
from folklore.db.stores.postings import PostingStore
from folklore.errors import Conflict, FolkloreError, InvalidInput, NotFound
from folklore.memory.records.similar import NEAREST, NEWEST
from folklore.memory.records.subjects import subjects_of
from folklore.model import Draft, Link, Relation
from tests.mcp.test_tools import call
from tests.person import NOON, Person, contents

DAY = timedelta(days=1)


async def store(client: Client, content: str, **fields: Any) -> str:
    stored = (await call(client, "memory_store", content=content, **fields))["stored"]
    return str(stored[0]["id"])


async def recalled(client: Client, query: str, **asked: Any) -> list[str]:
    answer = await call(client, "memory_recall", query=query, **asked)
    return [memory["content"] for memory in answer["memories"]]


async def test_a_superseded_memory_is_left_out_of_recall_search_and_list(
    client: Client,
) -> None:
    old = await store(client, "We release on Fridays.")

    answer = await call(
        client, "memory_store", content="We release on Mondays.", supersedes=old
    )

    [item] = answer["stored"]
    assert item["status"] == "superseded_old"
    assert item["superseded"]["id"] == old
    assert await recalled(client, "when do we release") == ["We release on Mondays."]
    for tool in (
        {"name": "search_keywords", "query": "release"},
        {"name": "memory_list"},
    ):
        found = await call(client, tool.pop("name"), **tool)
        assert [memory["content"] for memory in found["memories"]] == [
            "We release on Mondays."
        ]
    assert set(
        await recalled(client, "release", filters={"include_superseded": True})
    ) == {
        "We release on Fridays.",
        "We release on Mondays.",
    }


async def test_the_answer_says_what_was_superseded_however_unlike(
    client: Client,
) -> None:
    secrets = "Secrets live in Vault only."
    first, second, lunch = [
        await store(client, content)
        for content in (secrets, f"Really: {secrets}", "Lunch is at noon.")
    ]

    stored = await call(
        client, "memory_store", content="Lunch moved.", cues=["a"], supersedes=first
    )
    related = await call(
        client,
        "memory_relate",
        relations=[{"from": lunch, "type": "supersedes", "to": second}],
    )

    [item] = stored["stored"]
    assert item["superseded"].items() >= {"id": first, "content": secrets}.items()
    [hidden] = related["superseded"]
    assert hidden["id"] == second
    assert hidden["content"] == f"Really: {secrets}"
    assert hidden["author"] == item["superseded"]["author"]
    again = await call(
        client,
        "memory_relate",
        relations=[{"from": lunch, "type": "supersedes", "to": second}],
    )
    assert "superseded" not in again


async def test_only_a_current_memory_of_the_same_namespace_can_be_superseded(
    person: Person,
) -> None:
    old, gone = await person.keep("one", "two")
    (elsewhere,) = await person.keep("three", namespace="other")
    (new,) = await person.keep(Draft("uno", supersedes=old))
    await person.forget(gone)

    for target, error, words in (
        (old, Conflict, f"superseded by {new}"),
        (gone, Conflict, "was forgotten"),
        (elsewhere, NotFound, f"memory {elsewhere} in this namespace"),
        (missing := uuid4(), NotFound, f"memory {missing} in this namespace"),
    ):
        with pytest.raises(error, match=words):
            await person.keep(Draft("eins", supersedes=target))
    with pytest.raises(InvalidInput, match="names the memory itself"):
        await person.keep(Draft("uno", supersedes=new))
    assert contents(await person.recall("*")) == ["uno", "three"], (
        "nothing of a refused store stays"
    )


async def test_repeating_a_superseding_store_changes_nothing(
    person: Person, connection: asyncpg.Connection
) -> None:
    (old,) = await person.keep("We use tabs.")
    draft = Draft("We use spaces.", supersedes=old)

    first, second = [(await person.store(draft)).stored[0] for _ in range(2)]

    assert first == second
    assert await connection.fetchval("select count(*) from revisions") == 1
    assert await connection.fetchval("select count(*) from relations") == 1


async def test_one_call_cannot_supersede_a_memory_twice(person: Person) -> None:
    a, b = await person.keep("a", "b")

    with pytest.raises(InvalidInput, match=r"memories\[0\].supersedes"):
        await person.keep(Draft("a", supersedes=b), Draft("b", supersedes=a))
    result = await person.store(Draft("c", supersedes=a), Draft("d", supersedes=a))

    [refused] = result.refused
    assert (refused.index, refused.field) == (1, "supersedes")
    assert "two memories would supersede" in refused.reason
    assert sorted(contents(await person.recall("*"))) == ["b", "c"]


async def test_a_memory_with_a_change_that_is_not_possible_is_refused_without_the_others(
    person: Person, connection: asyncpg.Connection
) -> None:
    (old,) = await person.keep("We release on Fridays.")

    result = await person.store(
        Draft("We use spaces.", supersedes=uuid4()),
        Draft("We release on Mondays.", supersedes=old),
        Draft("Requests time out.", related=(Link(uuid4(), "causes"),)),
        "The pool has ten connections.",
        Draft("The pool is small.", related=(Link(old, "relates_to"),)),
    )

    assert [(item.index, item.field, item.code) for item in result.refused] == [
        (0, "supersedes", "not_found"),
        (2, "related", "not_found"),
    ]
    assert [item.status for item in result.stored] == [
        "superseded_old",
        "stored",
        "stored",
    ]
    assert await connection.fetchval("select count(*) from memories") == 4
    assert await connection.fetchval("select count(*) from embeddings") == 4
    assert (
        await connection.fetchval("select count(*) from audit where action = 'store'")
        == 2
    )


async def test_a_new_memory_can_be_related_to_an_existing_one(person: Person) -> None:
    (cause,) = await person.keep("The pool was too small.")

    (effect,) = await person.keep(
        Draft("Requests time out.", related=(Link(cause, "derived_from", 0.5),))
    )

    [relation] = await person.relations(effect)
    assert (relation.from_id, relation.type, relation.to_id, relation.strength) == (
        effect,
        "derived_from",
        cause,
        0.5,
    )


async def test_a_memory_with_an_invalid_relation_is_not_stored(person: Person) -> None:
    (gone,) = await person.keep("The pool was too small.")
    await person.forget(gone)
    refused: list[tuple[Link, type[FolkloreError], str]] = [
        (Link(uuid4(), "causes"), NotFound, "no memory"),
        (Link(gone, "causes"), NotFound, "no memory"),
        (Link(uuid4(), "No Type!"), InvalidInput, "related"),
        (Link(uuid4(), "supersedes"), InvalidInput, "field supersedes"),
        (Link(uuid4(), "causes", 2.0), InvalidInput, "strength"),
    ]
    for link, error, words in refused:
        with pytest.raises(error, match=words):
            await person.keep(Draft("Requests time out.", related=(link,)))
    assert contents(await person.recall("*")) == []


# Near-duplicates


async def test_near_duplicates_are_reported_with_their_author_and_stay_unchanged(
    client: Client,
) -> None:
    old = await store(client, "The deploy script needs Node 20 and a clean checkout.")

    answer = await call(
        client,
        "memory_store",
        content="The deploy script needs Node 20 and a clean checkout, always.",
    )

    [item] = answer["stored"]
    assert item["status"] == "stored"
    [near] = item["similar"]
    assert near["id"] == old
    assert 0.92 <= near["similarity"] <= 1
    assert (near["author"], near["content"]) == (
        "tester",
        "The deploy script needs Node 20 and a clean checkout.",
    )
    assert len((await call(client, "memory_list"))["memories"]) == 2


async def test_near_duplicates_within_a_batch_are_reported_at_most_three_each(
    person: Person,
) -> None:
    result = await person.store(
        *(
            f"The deploy script needs Node 20 and a clean checkout, {n}."
            for n in range(6)
        )
    )

    assert [len(item.similar) for item in result.stored] == [3] * 6
    assert all(
        item.id not in {near.id for near in item.similar} for item in result.stored
    )


async def test_forgotten_superseded_and_foreign_memories_are_no_near_duplicates(
    person: Person,
) -> None:
    text = "The deploy script needs Node 20 and a clean checkout"
    old, forgotten = await person.keep(f"{text}, one.", f"{text}, two.")
    await person.forget(forgotten)
    await person.keep(f"{text}, three.", namespace="other")
    await person.at(NOON - timedelta(days=2)).keep(
        Draft(f"{text}, five.", expires_at=NOON - timedelta(days=1))
    )

    result = await person.store(Draft(f"{text}, four.", supersedes=old))

    assert result.stored[0].similar == ()


async def test_an_old_near_duplicate_is_found_by_its_rare_words(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("folklore.memory.records.similar.NEWEST", 5)
    (old,) = await person.keep(
        "The zeppelin hangar opens at dawn for the mooring crew."
    )
    await person.keep(
        *(f"Another thought about harbours, number {n}" for n in range(30))
    )
    [namespace] = await person.library.find_namespaces(["notes"])
    # words are sought among packed memories
    await PostingStore(person.library.database).pack(namespace.id)

    result = await person.store(
        "The zeppelin hangar opens at dawn for the mooring crews."
    )

    assert [near.id for near in result.stored[0].similar] == [old]


async def test_a_batch_of_near_duplicates_reads_three_neighbours_of_each_memory(
    person: Person, connection: asyncpg.Connection
) -> None:
    old = await person.keep(
        *(f"note number {n} about widget assembly line {n % 40}" for n in range(300))
    )
    await person.forget(*old[:40])
    new = await person.keep(
        *(
            f"note number {n} about widget assembly line {n % 40}"
            for n in range(300, 340)
        )
    )
    await connection.execute("analyze")
    [notebook] = await person.library.find_namespaces(["notes"])
    asked = statement("embeddings/neighbours")
    given = {
        "namespace": notebook.id,
        "ids": new,
        "similar": 0.92,
        "asked": [],
        "most": 0,
        "least": 1.0,
        "newest": 3_000,
        "now": NOON,
    }
    given["model"] = await connection.fetchval("select id from models")

    rows = await connection.fetch(asked.sql, *asked.arguments(given))
    explained = await connection.fetchval(
        f"explain (analyze, timing off, format json) {asked.sql}",
        *asked.arguments(given),
    )
    pairs = await connection.fetch(
        """
        select place, memory_id, id from (
            select a.memory_id, b.memory_id as id, row_number() over (
                partition by a.memory_id order by a.vector <=> b.vector, b.memory_id
            ) as place
            from embeddings a join embeddings b on b.memory_id <> a.memory_id and a.vector <=> b.vector <= 0.08
            join memories m on m.id = b.memory_id and m.forgotten_at is null
            where a.memory_id = any($1)
        ) as near
        where place <= 3 order by memory_id, place
        """,
        new,
    )

    met: list[float] = []

    def walk(node: dict[str, Any]) -> None:
        if node["Node Type"] in (
            "Nested Loop",
            "Hash Join",
            "Merge Join",
            "Append",
            "Merge Append",
            "WindowAgg",
        ):
            met.append(node["Actual Rows"] * node["Actual Loops"])
        for child in node.get("Plans", []):
            walk(child)

    walk(json.loads(explained)[0]["Plan"])
    assert [(row["memory_id"], row["id"]) for row in rows] == [
        (row["memory_id"], row["id"]) for row in pairs
    ]
    assert len(rows) == 3 * len(new)
    assert max(met) <= 3 * len(new), met


async def test_a_memory_has_the_same_neighbours_alone_as_among_others(
    person: Person, connection: asyncpg.Connection
) -> None:
    """They are compared by two forms of a statement."""
    ids = await person.keep(
        *(f"note {n} about the widget assembly line {n % 4}" for n in range(40))
    )
    await person.forget(*ids[:3])
    await person.relate(Relation(ids[-1], "refines", ids[-5]))
    [notebook] = await person.library.find_namespaces(["notes"])
    model = await connection.fetchval("select id from models")

    async def neighbours(*of: UUID) -> dict[UUID, list[Neighbour]]:
        found = await person.library.embeddings.neighbours(
            notebook.id,
            of,
            model,
            newest=NEWEST,
            now=NOON,
            similar=NEAREST,
            subjects=subjects_of(of),
        )
        return {id_: [near for near in found if near.memory_id == id_] for id_ in of}

    together = await neighbours(*ids[3:])

    assert [near.settled for near in together[ids[-1]]].count(True) == 1
    assert len(together[ids[-1]]) == 11, "room is left for what is settled"
    for id_ in ids[3:]:
        assert (await neighbours(id_))[id_] == together[id_]


async def test_a_failed_search_for_near_duplicates_is_reported_and_the_store_succeeds(
    person: Person, connection: asyncpg.Connection
) -> None:
    await person.keep("The deploy script needs Node 20.")
    # to which no distance can be measured
    await connection.execute("update embeddings set vector = '[1, 2, 3]'")

    result = await person.store("The deploy script needs Node 20, always.", "nul\x00")

    assert [(item.status, item.similar) for item in result.stored] == [
        ("stored", ()),
        ("stored", ()),
    ]
    assert result.note is not None
    assert result.note.startswith("Invisible characters were removed")
    assert (
        "Everything is stored, but similar memories could not be looked up: "
        in result.note
    )
    assert contents(await person.search("always")) == [
        "The deploy script needs Node 20, always."
    ]
