"""Rename a tag on all memories of a namespace, into another one too; one call takes it back."""

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from folklore.contract.memories import RenamedTag, RenameTagRequest
from folklore.errors import InvalidInput, NotFound, Refused
from folklore.model import Draft, Filters
from tests.cli.test_confirmed import command_place  # noqa: F401 - a fixture
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.memory.auth.test_isolation import audited, holder, owner_of_two  # noqa: F401 - a fixture
from tests.person import NOON, Person, contents

TEXTS = {
    "harbour fees": ("fees", "area:pay"),
    "harbour refunds": ("area:pay/refunds", "ops"),
    "harbour both": ("money:refunds", "area:pay", "money", "ops"),
    "harbour paying": ("area:paying", "payments"),
    "harbour plain": (),
}


async def rename(person: Person, tag: str, to: str, **asked: Any) -> RenamedTag:
    return await person.call(
        RenameTagRequest(tag=tag, to=to, namespace="notes", **asked)
    )


async def tags(person: Person) -> dict[str, tuple[str, ...]]:
    answer = await person.list_memories(namespaces=("notes",), limit=100)
    return {result.memory.content: result.memory.tags for result in answer.memories}


@pytest.fixture
async def tagger(person: Person) -> Person:
    await person.keep(*(Draft(text, tags=given) for text, given in TEXTS.items()))
    await person.keep(Draft("elsewhere", tags=("area:pay",)), namespace="board")
    return person.at(NOON + timedelta(days=1))


async def test_a_tag_and_those_below_it_are_renamed_and_kept_once(
    tagger: Person,
) -> None:
    done = await rename(tagger, "Area: Pay", "money")

    assert (done.memories, dict(done.tags)) == (
        3,
        {"area:pay": "money", "area:pay/refunds": "money/refunds"},
    )
    assert await tags(tagger) == TEXTS | {
        "harbour fees": ("fees", "money"),
        "harbour refunds": ("money/refunds", "ops"),
        "harbour both": ("money:refunds", "money", "ops"),
    }
    [elsewhere] = (await tagger.list_memories(namespaces=("board",))).memories
    assert elsewhere.memory.tags == ("area:pay",)
    wanted = {"harbour fees", "harbour refunds", "harbour both"}
    assert (
        set(contents(await tagger.recall("harbour", filters=Filters(tags=("money",)))))
        == wanted
    )
    assert (
        set(contents(await tagger.search("tag:money", namespaces=("notes",)))) == wanted
    )
    assert contents(await tagger.search("tag:pay", namespaces=("notes",))) == []
    assert contents(await tagger.search("area", namespaces=("notes",))) == [
        "harbour paying"
    ]


async def test_postings_and_lengths_are_those_of_a_fresh_store(
    tagger: Person, connection: asyncpg.Connection
) -> None:
    await rename(tagger, "area:pay", "money in three words")
    renamed = await tags(tagger)
    fresh = tagger.at(NOON)
    await fresh.keep(
        *(Draft(text, tags=renamed[text]) for text in TEXTS), namespace="fresh"
    )

    async def index(namespace: str) -> list[tuple[Any, ...]]:
        rows = await connection.fetch(
            "select m.content, p.words, p.frequencies, p.length, e.length as of_vector from memories m"
            " join namespaces n on n.id = m.namespace_id and n.name = $1"
            " join fresh_words p on p.namespace_id = m.namespace_id and p.memory_id = m.id"
            " left join embeddings e on e.namespace_id = m.namespace_id and e.memory_id = m.id order by 1, 2",
            namespace,
        )
        return [tuple(row) for row in rows]

    assert await index("notes") == await index("fresh")


async def test_one_call_takes_a_renaming_back_but_for_what_changed_since(
    tagger: Person,
) -> None:
    await rename(tagger, "area:pay", "money")
    later = tagger.at(NOON + timedelta(days=2))
    [fees] = [item.memory for item in (await later.search("fees")).memories]
    await later.update(fees.id, importance=0.5)

    preview = await rename(later, "area:pay", "money", undo=True, dry_run=True)
    undone = await rename(later, "area:pay", "money", undo=True)

    assert preview == undone
    assert (undone.memories, undone.kept, dict(undone.tags)) == (
        2,
        1,
        {"money": "area:pay"},
    )
    assert await tags(later) == TEXTS | {"harbour fees": ("fees", "money")}
    assert contents(await later.search("tag:refunds", namespaces=("notes",))) != []
    assert [item.action for item in await later.history(fees.id)] == ["update", "retag"]
    await later.undo(fees.id)
    assert (await later.undo(fees.id)).tags == TEXTS["harbour fees"]
    with pytest.raises(
        NotFound, match="area:pay was not renamed to money, or that was undone"
    ):
        await rename(later, "area:pay", "money", undo=True)


async def test_an_undo_takes_back_the_last_renaming_alone(tagger: Person) -> None:
    await rename(tagger, "area:pay", "money")
    await tagger.keep(Draft("harbour late", tags=("area:pay",)))
    second = tagger.at(NOON + timedelta(days=2))
    assert (await rename(second, "area:pay", "money")).memories == 1

    assert (
        await rename(
            second.at(NOON + timedelta(days=3)), "area:pay", "money", undo=True
        )
    ).memories == 1
    assert (await tags(second))["harbour late"] == ("area:pay",)
    assert (await tags(second))["harbour fees"] == ("fees", "money")
    assert (
        await rename(
            second.at(NOON + timedelta(days=4)), "area:pay", "money", undo=True
        )
    ).memories == 3


async def test_more_memories_than_one_statement_changes_are_renamed_in_one_transaction(
    person: Person,
) -> None:
    for batch in range(3):
        await person.keep(
            *(Draft(f"harbour {batch} {n}", tags=("old",)) for n in range(500))
        )

    done = await rename(person, "old", "new")

    assert done.memories == 1_500
    listed = await person.list_memories(limit=1_000)
    assert {result.memory.tags for result in listed.memories} == {("new",)}
    assert (await rename(person, "old", "new", undo=True)).memories == 1_500


async def test_an_unusable_name_is_refused_and_nothing_is_written(
    tagger: Person,
) -> None:
    for tag, to, error, message in (
        ("area:pay", "area:pay", InvalidInput, "to: is the tag itself"),
        ("area:pay", " ", InvalidInput, "to: tag 1 is empty"),
        ("area:pay", "x" * 95, InvalidInput, "to: tag 1 has 103 characters"),
        ("absent", "money", NotFound, "No memory of notes has the tag absent."),
    ):
        with pytest.raises(error, match=message):
            await rename(tagger, tag, to)
        assert await tags(tagger) == TEXTS


async def test_a_renaming_needs_the_role_of_a_writer_and_is_logged(
    owner: Person,
) -> None:
    await owner.keep(Draft("tagged crane", tags=("old",)), namespace="payments")
    request = RenameTagRequest(tag="old", to="new", namespace="payments")
    reader, writer = [
        await holder(owner, role, f"payments:{role}") for role in ("reader", "writer")
    ]
    stranger = await holder(owner, "stranger", "board:admin")

    with pytest.raises(Refused):
        await reader.call(request)
    with pytest.raises(NotFound):
        await stranger.call(request)
    assert (await writer.call(request)).memories == 1
    [entry] = await audited(owner, "payments", action="retag")
    assert (entry.principal, entry.amount) == ("writer", 1)
    assert (await writer.call(request.model_copy(update={"undo": True}))).memories == 1


async def test_the_command_renames_a_tag_here_and_at_a_server(
    folklore: CommandLine, where: tuple[str, ...]
) -> None:
    await folklore.done(
        "store", "The gate is green.", "--tag", "colour:gate", "-n", "notes", *where
    )
    named = ("colour", "paint", "-n", "notes", *where)

    assert "would be renamed on 1 memory" in await folklore.done(
        "tags", "rename", *named, "--dry-run"
    )
    done = await folklore.json("tags", "rename", *named)
    assert done == {
        "namespace": "notes",
        "tags": {"colour:gate": "paint:gate"},
        "memories": 1,
    }
    assert "paint → colour: renamed on 1 memory" in await folklore.done(
        "tags", "rename", *named, "--undo"
    )
    assert (await folklore("tags", "rename", *named, "--undo")).code == 4
