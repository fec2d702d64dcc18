"""Who changed a text last is shown wherever its author is."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from folklore.contract.filters import FiltersRequest
from folklore.contract.hooks import HookRequest
from folklore.contract.memories import Changes, ListRequest, UpdateRequest, record_json
from folklore.contract.recall import recalled_json
from folklore.contract.transfer import Report
from folklore.model import Draft, Memory
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.memory.auth.test_isolation import holder
from tests.memory.transfer.test_transfer import Mover, new_mover  # noqa: F401 - the fixture `mover`
from tests.person import NOON, Person
from tests.team import Team
from tests.visitor import texts

RULE = "Dumps of the ledger stay on the backup host."
OTHER = "Dumps of the ledger go to the host of the vendor."
BOB = "by alice, changed by bob 2026-05-05"


def named(person: Person, name: str, days: int = 0) -> Person:
    return replace(person, name=name, now=NOON + timedelta(days=days))


@pytest.fixture
def alice(person: Person) -> Person:
    return named(person, "alice")


@pytest.fixture
def bob(person: Person) -> Person:
    return named(person, "bob", days=1)


@pytest.fixture
async def rule(alice: Person) -> UUID:
    """A decision of alice."""
    [id_] = await alice.keep(Draft(RULE, kind="decision", source="runbook"))
    return id_


def changer(memory: Memory) -> tuple[str, str | None, Any]:
    return memory.author, memory.changed_by, memory.changed_at


UNCHANGED = ("alice", None, None)
CHANGED = ("alice", "bob", NOON + timedelta(days=1))


@pytest.mark.parametrize(
    "fields",
    [{"content": OTHER}, {"summary": "To the vendor."}, {"source": "the vendor"}],
    ids=lambda fields: str(next(iter(fields))),
)
async def test_a_change_of_the_words_by_another_person_is_known(
    bob: Person, rule: UUID, fields: dict[str, Any]
) -> None:
    assert changer(await bob.update(rule, **fields)) == CHANGED


async def test_other_fields_and_own_changes_leave_the_words_with_their_author(
    alice: Person, bob: Person, rule: UUID
) -> None:
    await bob.update(rule, tags=["ledger"], importance=0.9, pinned=True)
    await alice.update(rule, content="Dumps of the ledger stay where they are.")

    [memory] = await alice.get(rule)

    assert changer(memory) == UNCHANGED


async def test_the_author_takes_a_text_back_by_writing_it_and_not_by_its_summary(
    alice: Person, bob: Person, rule: UUID
) -> None:
    await bob.update(rule, content=OTHER)
    summed_up = await alice.update(rule, summary="Dumps.")
    written = await alice.update(rule, content=RULE)

    assert changer(summed_up) == CHANGED
    assert changer(written) == UNCHANGED


async def test_undo_and_redo_restore_who_changed_the_text(
    person: Person, bob: Person, rule: UUID
) -> None:
    carol = named(person, "carol", days=2)
    dave = named(person, "dave", days=3)
    await bob.update(rule, content=OTHER)
    await carol.update(rule, content="Dumps are made no more.")

    assert changer(await dave.undo(rule)) == CHANGED
    assert changer(await dave.undo(rule)) == UNCHANGED
    assert changer(await dave.redo(rule)) == CHANGED


async def test_a_text_as_of_a_time_is_by_who_had_written_it_then(
    alice: Person, bob: Person, rule: UUID
) -> None:
    await bob.update(rule, content=OTHER)

    then = await alice.list_memories(
        filters=FiltersRequest(as_of=NOON + timedelta(hours=1))
    )

    [result] = then.memories
    assert result.memory.content == RULE
    assert changer(result.memory) == UNCHANGED


async def test_a_merge_into_a_memory_changes_its_text_and_its_undo_and_redo_too(
    bob: Person, rule: UUID
) -> None:
    [newer] = await bob.keep(OTHER)

    merged = await bob.call(UpdateRequest(id=rule, merge=(newer,), changes=Changes()))

    assert (merged.content, *changer(merged)) == (OTHER, *CHANGED)
    assert changer(await bob.undo(rule)) == UNCHANGED
    assert changer(await bob.redo(rule)) == CHANGED


async def test_an_import_over_a_memory_of_another_person_changes_its_text(
    mover: Mover, person: Person, alice: Person, rule: UUID
) -> None:
    writer = await holder(person, "bob", "notes:writer")
    member = replace(mover, caller=writer.caller)
    line = {"id": str(rule), "content": OTHER, "author": "alice", "changed_by": None}

    report: Report = await member.put([line], on_conflict="overwrite")
    [memory] = await alice.get(rule)
    undone = await named(person, "carol", days=2).undo(rule)

    assert report.failures == []
    assert (memory.content, memory.author, memory.changed_by) == (OTHER, "alice", "bob")
    assert (undone.content, *changer(undone)) == (RULE, *UNCHANGED)


async def test_a_member_can_not_state_who_changed_a_text(
    mover: Mover, person: Person, alice: Person
) -> None:
    writer = await holder(person, "bob", "new:writer")
    member = replace(mover, caller=writer.caller)

    await member.put(
        [{"content": OTHER, "changed_by": "carol", "author": "alice"}], "new"
    )

    [line] = await mover.memories("new")
    assert (line["author"], line.get("changed_by")) == ("bob", None)


async def test_an_export_has_who_changed_a_text_and_an_import_keeps_it(
    mover: Mover, bob: Person, rule: UUID
) -> None:
    await replace(bob, now=NOON).update(rule, content=OTHER)
    lines = await mover.take("notes")

    elsewhere = [
        json.loads(line) | {"namespace": "elsewhere"}
        for line in lines
        if '"memory"' in line[:20]
    ]
    await mover.put(elsewhere)

    [line] = await mover.memories("elsewhere")
    assert (line["author"], line["changed_by"]) == ("alice", "bob")
    assert line["changed_at"] == "2026-05-04T12:00:00+00:00"


async def test_an_author_finds_own_memories_and_those_whose_text_is_theirs(
    alice: Person, bob: Person, rule: UUID
) -> None:
    await alice.keep("The vendor is in Linz.")
    await bob.update(rule, content=OTHER)

    async def found(author: str) -> list[UUID]:
        filters = FiltersRequest(author=author)
        answer = await alice.call(ListRequest(filters=filters))
        return [result.memory.id for result in answer.memories]

    assert await found("bob") == [rule]
    assert rule in await found("alice")
    assert len(await found("alice")) == 2


async def test_tools_name_who_changed_the_text_in_every_form(
    bob: Person, rule: UUID
) -> None:
    await bob.update(rule, content=OTHER)
    [result] = (await bob.list_memories()).memories

    for value in (recalled_json(result, "concise"), record_json(result.memory)):
        assert (value["author"], value["changed_by"]) == ("alice", "bob")
        assert value["changed_at"] == "2026-05-05T12:00:00Z"


async def test_a_store_of_a_similar_text_names_who_changed_the_other(
    bob: Person, rule: UUID
) -> None:
    await bob.update(rule, content=OTHER)

    stored = await bob.store("Dumps of the ledger go to the host of our vendor.")

    [similar] = stored.stored[0].similar
    assert (similar.author, similar.changed_by) == ("alice", "bob")


async def test_hooks_name_who_changed_the_text(bob: Person, rule: UUID) -> None:
    await bob.update(rule, content=OTHER)

    reader = replace(bob, project="notes")
    start = await reader.call(HookRequest(event="SessionStart", session="a"))
    prompt = await reader.call(
        HookRequest(prompt="Where do dumps of the ledger go?", session="b")
    )

    assert BOB in start.text
    assert BOB in prompt.text


async def test_commands_name_who_changed_the_text(
    folklore: CommandLine, alice: Person, bob: Person, rule: UUID
) -> None:
    await bob.update(rule, content=OTHER)

    assert BOB in await folklore.done("recall", "where do dumps of the ledger go")
    assert BOB in await folklore.done("list")
    shown = await folklore.done("show", str(rule))
    assert "changed_by" in shown


async def test_pages_of_the_console_name_who_changed_the_text(team: Team) -> None:
    owner = replace(team.owner, name="alice")
    [id_] = await owner.keep(RULE, namespace="harbour")
    await replace(owner, name="bob", now=NOON + timedelta(days=1)).update(
        id_, content=OTHER
    )

    async with team.visitor("ann", "harbour:reader") as ann:
        pages: Sequence[Any] = [
            await ann.get("/"),
            await ann.get("/search", q="dumps of the ledger"),
            await ann.get(f"/memories/{id_}"),
        ]

    for page in pages:
        assert "alice, changed by bob 2026-05-05" in texts(page)
