"""Merge memories into one: texts, tags and relations united, the others superseded, all of it undone in one step."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from mcp import Client

from folklore.contract.memories import Changes, UndoRequest, UpdateRequest
from folklore.errors import Conflict, InvalidInput, NotFound, Refused
from folklore.model import Draft, Memory, Relation
from tests.cli.test_confirmed import command_place  # noqa: F401 - a fixture
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.memory.auth.test_isolation import holder, owner_of_two  # noqa: F401 - a fixture
from tests.memory.records.test_pinned import FILTER
from tests.person import NOON, Person, contents

OLD = "We deploy on Mondays."
NEW = "We deploy on Tuesdays, by the pipeline."
OTHER = "Deploys happen weekly."


async def merge(person: Person, target: UUID, *others: UUID, **fields: Any) -> Memory:
    return await person.call(
        UpdateRequest(id=target, merge=others, changes=Changes(**fields))
    )


@pytest.fixture
async def three(person: Person) -> list[UUID]:
    """Three memories about the same: the target, the newest, another one."""
    [old] = await person.keep(Draft(OLD, tags=("deploy",)))
    [new] = await person.at(NOON + timedelta(days=2)).keep(
        Draft(NEW, tags=("pipeline", "deploy"), summary="Tuesdays.")
    )
    [other] = await person.at(NOON + timedelta(days=1)).keep(
        Draft(OTHER, tags=("weekly",))
    )
    return [old, new, other]


def later(person: Person, days: int = 9) -> Person:
    return person.at(NOON + timedelta(days=days))


async def test_the_target_gets_the_newest_text_and_all_tags_and_supersedes_the_others(
    person: Person, three: list[UUID]
) -> None:
    old, new, other = three

    merged = await merge(later(person), *three)

    assert (merged.id, merged.content, merged.summary) == (old, NEW, "Tuesdays.")
    assert merged.tags == ("deploy", "pipeline", "weekly")
    assert merged.when == NOON + timedelta(days=2)
    assert [memory.superseded_by for memory in await person.get(new, other)] == [
        old,
        old,
    ]
    assert contents(await later(person).recall("when do we deploy")) == [NEW]
    assert contents(await later(person).search("Tuesdays")) == [NEW]
    assert contents(await later(person).search("Mondays")) == []
    for id_ in (new, other):
        [revision] = await person.history(id_)
        assert (revision.action, revision.reason) == ("supersede", "merged")
    [revision] = await person.history(old)
    assert (revision.action, revision.before["content"], revision.before["tags"]) == (
        "merge",
        OLD,
        ["deploy"],
    )


async def test_a_redo_merges_again_what_an_undo_parted(
    person: Person, three: list[UUID]
) -> None:
    [friend] = await person.keep("Fridays are quiet.")
    await person.relate(Relation(three[1], "relates_to", friend))
    merged = await merge(later(person), *three)
    related = {(item.type, item.to_id) for item in await person.relations(three[0])}
    await later(person, 10).undo(three[0])

    again = await later(person, 11).redo(three[0])

    assert (again.content, again.tags, again.summary) == (
        merged.content,
        merged.tags,
        merged.summary,
    )
    assert [memory.superseded_by for memory in await person.get(*three[1:])] == [
        three[0],
        three[0],
    ]
    assert {
        (item.type, item.to_id) for item in await person.relations(three[0])
    } == related
    await later(person, 12).undo(three[0])
    assert [memory.superseded_by for memory in await person.get(*three)] == [
        None,
        None,
        None,
    ]


async def test_given_fields_replace_those_of_the_merged_memories(
    person: Person, three: list[UUID]
) -> None:
    merged = await merge(
        later(person),
        *three,
        content="We deploy weekly, on Tuesdays.",
        tags=("release",),
    )

    assert (merged.content, merged.summary, merged.tags) == (
        "We deploy weekly, on Tuesdays.",
        None,
        ("release",),
    )
    assert merged.when == NOON


async def test_a_target_that_is_the_newest_keeps_its_text(
    person: Person, three: list[UUID]
) -> None:
    old, new, _ = three

    merged = await merge(later(person), new, old)

    assert (merged.id, merged.content, merged.occurred_at) == (new, NEW, None)


async def test_the_target_gets_the_relations_of_the_others(
    person: Person, three: list[UUID]
) -> None:
    old, new, other = three
    cause, effect = await person.keep("The tests are slow.", "Fridays are quiet.")
    await person.relate(
        Relation(new, "causes", effect), Relation(cause, "causes", other, 0.5), Relation(old, "relates_to", new),
        Relation(new, "relates_to", other), Relation(old, "causes", effect, 0.3),
    )  # fmt: skip

    await merge(later(person), *three)

    found = {
        (item.from_id, item.type, item.to_id): item.strength
        for item in await person.relations(old)
    }
    assert found == {
        (old, "causes", effect): 0.3, (cause, "causes", old): 0.5, (old, "relates_to", new): 1.0,
        (old, "supersedes", new): 1.0, (old, "supersedes", other): 1.0,
    }  # fmt: skip
    assert len(await person.relations(new)) == 4, "the superseded memory keeps its own"


async def test_one_undo_takes_everything_back(
    person: Person, three: list[UUID]
) -> None:
    old, new, other = three
    (friend,) = await person.keep("Fridays are quiet.")
    await person.relate(Relation(new, "relates_to", friend))
    before = {id_: (memory.content, memory.tags, memory.summary, memory.occurred_at) for id_, memory in zip(
        three, await person.get(*three), strict=True)}  # fmt: skip
    relations = {id_: await person.relations(id_) for id_ in three}
    await merge(later(person), *three)

    await later(person, 10).undo(old)

    for memory in await person.get(*three):
        assert before[memory.id] == (
            memory.content,
            memory.tags,
            memory.summary,
            memory.occurred_at,
        )
        assert (memory.superseded_by, memory.superseded_at) == (None, None)
        assert await person.relations(memory.id) == relations[memory.id]
        assert (await person.history(memory.id))[0].action == "undo"
    assert sorted(contents(await later(person, 11).search("deploy"))) == sorted(
        [OLD, NEW, OTHER]
    )
    assert contents(await later(person, 11).search("Mondays")) == [OLD]
    with pytest.raises(NotFound, match="undone already"):
        await person.undo(old)
    again = await merge(later(person, 12), *three)
    assert again.content == NEW
    await later(person, 13).undo(old)
    assert [memory.superseded_by for memory in await person.get(new, other)] == [
        None,
        None,
    ]


async def test_an_undo_is_refused_whole_while_another_memory_has_a_text(
    person: Person, three: list[UUID]
) -> None:
    old, new, _ = three
    await merge(later(person), *three)
    await later(person, 10).keep(OTHER)

    with pytest.raises(Conflict, match="has this text"):
        await later(person, 11).undo(old)

    assert [memory.superseded_by for memory in await person.get(old, new)] == [
        None,
        old,
    ]


async def test_further_memories_are_merged_later_and_the_same_ones_change_nothing(
    person: Person, three: list[UUID]
) -> None:
    old, new, other = three
    first = await merge(later(person), old, new)
    assert await merge(later(person, 10), old, new) == first
    merged = await merge(later(person, 10), *three)

    assert merged.content == NEW
    await later(person, 11).undo(old)
    assert [memory.superseded_by for memory in await person.get(new, other)] == [
        old,
        None,
    ]


async def test_memories_that_cannot_be_merged_are_refused_and_nothing_is_written(
    person: Person, three: list[UUID]
) -> None:
    old, new, _ = three
    (elsewhere,) = await person.keep("The crane is red.", namespace="board")
    (gone, replaced) = await person.keep("Gone.", "Replaced.")
    await person.forget(gone)
    await person.keep(Draft("Replacing.", supersedes=replaced))
    refusals: list[tuple[tuple[UUID, ...], type[Exception], str]] = [
        ((old, old), InvalidInput, "names the memory itself"),
        (
            (old, *(uuid4() for _ in range(51))),
            InvalidInput,
            "must hold 0 to 50, got 51",
        ),
        ((old, new, uuid4()), NotFound, "There is no memory"),
        ((old, new, elsewhere), Conflict, "is in board, not in notes"),
        ((old, new, gone), Conflict, "merge.1.: the memory .* was forgotten"),
        ((old, new, replaced), Conflict, "was superseded by"),
        ((gone, new), NotFound, "was forgotten"),
    ]
    for ids, error, message in refusals:
        with pytest.raises(error, match=message):
            await merge(later(person), *ids)
    with pytest.raises(Conflict, match="at revision 1, not 7"):
        await person.call(UpdateRequest(id=old, merge=(new,), if_revision=7))

    assert [memory.revision for memory in await person.get(*three)] == [1, 1, 1]


async def test_a_merge_needs_the_role_of_a_writer(owner: Person) -> None:
    one, two = await owner.keep(
        "the crane is blue", "the crane is new", namespace="payments"
    )
    reader, writer = [
        await holder(owner, role, f"payments:{role}") for role in ("reader", "writer")
    ]
    stranger = await holder(owner, "s", "board:admin")

    with pytest.raises(Refused):
        await merge(reader, one, two)
    with pytest.raises(NotFound):
        await merge(stranger, one, two)
    assert (await merge(writer.at(NOON + timedelta(days=1)), one, two)).id == one
    undone = await writer.at(NOON + timedelta(days=2)).call(UndoRequest(id=one))
    assert (undone.revision.action, undone.memory.content) == (
        "merge",
        "the crane is blue",
    )
    assert [memory.superseded_by for memory in await owner.get(two)] == [None]


async def test_the_tool_merges_memories(client: Client) -> None:
    stored = await client.call_tool(
        "memory_store", {"memories": [{"content": text} for text in (OLD, NEW)]}
    )
    assert stored.structured_content is not None
    one, two = [item["id"] for item in stored.structured_content["stored"]]

    answer = await client.call_tool(
        "memory_update", {"id": one, "merge": [two], "content": "We deploy weekly."}
    )
    listed = await client.call_tool("memory_list", {})

    assert answer.structured_content is not None
    assert answer.structured_content["content"] == "We deploy weekly."
    assert listed.structured_content is not None
    assert [memory["id"] for memory in listed.structured_content["memories"]] == [one]


async def test_the_command_merges_memories_here_and_at_a_server(
    folklore: CommandLine, where: tuple[str, ...]
) -> None:
    ids = []
    for text in (OLD, NEW, OTHER):
        ids += [
            item["id"]
            for item in (await folklore.json("store", text, "-n", "notes", *where))[
                "stored"
            ]
        ]

    merged = await folklore.json("merge", *ids, *where)
    assert (merged["id"], merged["content"]) == (ids[0], OTHER)
    assert "undone: merge" in await folklore.done("undo", ids[0], *where)
    assert f"merged into {ids[0]}" in await folklore.done(
        "merge", *ids, "--content", "Both.", *where
    )
    assert (await folklore("merge", ids[0], *where)).code == 2
    listed = await folklore.json("list", *where)
    assert [memory["content"] for memory in listed["memories"]] == ["Both."]


async def test_a_merged_history_is_exported_and_undone_after_an_import(
    folklore: CommandLine, tmp_path: Any
) -> None:
    ids = [
        (await folklore.json("store", text))["stored"][0]["id"] for text in (OLD, NEW)
    ]
    await folklore.done("merge", *ids)
    await folklore.done("export", tmp_path / "all.jsonl")
    await folklore.done("namespaces", "delete", "notes", "--erase", "--yes")
    await folklore.done("import", tmp_path / "all.jsonl")

    await folklore.done("undo", ids[0])

    listed = await folklore.json("list")
    assert sorted(memory["content"] for memory in listed["memories"]) == sorted(
        [OLD, NEW]
    )


async def test_the_target_is_pinned_if_one_of_them_is_and_expires_with_its_new_text(
    person: Person, three: list[UUID]
) -> None:
    old, new, other = three
    await person.update(other, pinned=True)
    await person.update(old, expires_at=NOON + timedelta(days=20))
    await person.update(new, expires_at=NOON + timedelta(days=30))

    merged = await merge(later(person), *three)

    assert (merged.pinned, merged.expires_at) == (True, NOON + timedelta(days=30))
    assert contents(await person.list_memories(filters=FILTER)) == [NEW]
    undone = await later(person, 10).undo(old)
    assert (undone.pinned, undone.expires_at) == (False, NOON + timedelta(days=20))
