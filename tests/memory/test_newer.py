"""An older memory is never given without the newer one on its subject, which says that it replaces it."""

from dataclasses import replace
from datetime import timedelta
from typing import get_args
from uuid import UUID

import pytest

from folklore.contract.compact import Format
from folklore.contract.hooks import HookRequest
from folklore.contract.ids import short
from folklore.contract.memories import stored_json
from folklore.contract.recall import RecallRequest, answer_json
from folklore.model import Draft, Link, Relation
from tests.person import NOON, Person, contents

OLD = Draft(
    "All packages are tested with Jest and ts-jest, one config in the root.",
    kind="decision",
    paths=("packages/jest.config.js",),
    cues=("which test runner for a new package", "is it jest?", "tests are slow"),
)
NEW = Draft(
    "Packages are tested with Vitest; Jest remains only in apps/mobile.",
    kind="decision",
    cues=("which test runner for a new package", "vitest or jest", "slow tests"),
)
OTHER = Draft(
    "Tokens rest in the keychain through secureStore.",
    cues=("where do I keep a token", "login state on the phone"),
)
QUESTION = "which test runner does a new package use, jest?"
DAY = (NOON - timedelta(days=90)).date()


async def reversed_decision(person: Person) -> tuple[UUID, UUID]:
    """Store a decision, and months later its reversal, and return their ids."""
    earlier = person.at(NOON - timedelta(days=90))
    old, _ = await earlier.keep(OLD, OTHER, namespace="shop")
    [new] = await person.keep(NEW, namespace="shop")
    return old, new


async def hook(person: Person, **arguments: str) -> str:
    """Return the text of a hook in a session of its own."""
    request = HookRequest(session=str(arguments), **arguments)
    in_project = replace(person, project="shop")
    return (await in_project.call(request)).text


async def test_recall_says_in_every_format_what_a_newer_memory_replaces(
    person: Person,
) -> None:
    old, new = await reversed_decision(person)

    answer = await person.recall(QUESTION, namespaces=("shop",))

    assert contents(answer)[:2] == [NEW.content, OLD.content]
    for form in get_args(Format):
        first, second, *_ = answer_json(answer, form)["memories"]
        assert (first["id"], second["id"]) == (str(new), str(old))
        assert first["replaces"] == [{"id": str(old), "when": f"{DAY}T12:00:00Z"}]
        assert "replaces" not in second


async def test_several_questions_bring_the_newer_one_before_the_older_one(
    person: Person,
) -> None:
    await reversed_decision(person)

    queries = ("ts-jest config in the root", QUESTION)
    answer = await person.call(RecallRequest(queries=queries, namespaces=("shop",)))

    found = contents(answer)
    assert found.index(NEW.content) < found.index(OLD.content)


@pytest.mark.parametrize("type_", ["relates_to", "distinct_from"])
async def test_a_relation_says_that_both_hold(person: Person, type_: str) -> None:
    old, new = await reversed_decision(person)
    await person.relate(Relation(new, type_, old))

    answer = await person.recall(QUESTION, namespaces=("shop",))

    assert [result.replaces for result in answer.memories if result.replaces] == []


async def test_an_edit_gets_the_newer_memory_in_place_of_the_older_one(
    person: Person,
) -> None:
    old, _ = await reversed_decision(person)

    text = await hook(
        person, event="PostToolUse", path="packages/jest.config.js", text="export {}"
    )

    assert NEW.content in text
    assert OLD.content not in text
    assert f"replaces [{short(old)}] of {DAY}" in text


async def test_a_prompt_gets_the_newer_memory_in_place_of_the_older_one(
    person: Person,
) -> None:
    old, _ = await reversed_decision(person)

    text = await hook(person, event="UserPromptSubmit", prompt=QUESTION)

    assert NEW.content in text
    assert OLD.content not in text
    assert f"replaces [{short(old)}] of {DAY}" in text


async def test_a_prompt_gets_the_newest_of_several_that_replaced_each_other(
    person: Person,
) -> None:
    await person.at(NOON - timedelta(days=90)).keep(OLD, OTHER, namespace="shop")
    middle = replace(
        NEW, content="Packages are tested with Mocha, one config in the root."
    )
    await person.at(NOON - timedelta(days=60)).keep(middle, namespace="shop")
    await person.keep(NEW, namespace="shop")

    text = await hook(person, event="UserPromptSubmit", prompt="is it jest?")

    assert NEW.content in text
    assert OLD.content not in text
    assert middle.content not in text


async def test_what_replaces_a_memory_may_have_none_of_its_names(
    person: Person,
) -> None:
    need = ("hide unfinished work", "roll out step by step", "for some users only")
    older = Draft("Flags are read from the service LaunchPad.", cues=need)
    newer = Draft("Flags are rows of the table settings.", cues=need[:2])
    await person.at(NOON - timedelta(days=90)).keep(older, OTHER, namespace="shop")
    await person.keep(newer, namespace="shop")

    text = await hook(
        person, event="UserPromptSubmit", prompt="show the new page for some users only"
    )

    assert newer.content in text
    assert older.content not in text


async def test_a_session_starts_with_the_newer_memory_before_the_older_one(
    person: Person,
) -> None:
    old, _ = await reversed_decision(person)
    await person.at(NOON - timedelta(days=90)).call(
        HookRequest(event="SessionStart", session="earlier")
    )

    text = await hook(person, event="SessionStart")

    assert text.index(NEW.content) < text.index("Jest and ts-jest")
    assert f"replaces [{short(old)}] of {DAY}" in text


async def test_a_store_asks_once_whether_it_replaces_what_is_on_its_subject(
    person: Person,
) -> None:
    old, other = await person.at(NOON - timedelta(days=90)).keep(
        OLD, OTHER, namespace="shop"
    )

    result = await person.store(NEW, namespace="shop")

    [item] = result.stored
    assert [older.id for older in item.same_subject] == [old]
    shown = stored_json(result)
    assert [one["id"] for one in shown["stored"][0]["same_subject"]] == [str(old)]
    assert "Does it replace one in same_subject?" in shown["note"]

    again = await person.store(Draft(NEW.content, supersedes=old), namespace="shop")
    assert (again.stored[0].id, again.stored[0].same_subject) == (item.id, ())
    assert contents(await person.recall(QUESTION, namespaces=("shop",)))[0] == (
        NEW.content
    )
    assert [memory.superseded_by for memory in await person.get(old)] == [item.id]
    assert other != old


@pytest.mark.parametrize("stated", ["supersedes", "related"])
async def test_a_store_that_says_so_itself_is_not_asked(
    person: Person, stated: str
) -> None:
    [old] = await person.at(NOON - timedelta(days=90)).keep(OLD, namespace="shop")
    draft = (
        replace(NEW, supersedes=old)
        if stated == "supersedes"
        else replace(NEW, related=(Link(old, "relates_to"),))
    )

    result = await person.store(draft, namespace="shop")

    assert result.stored[0].same_subject == ()
    assert "same_subject" not in (result.note or "")


async def test_texts_of_two_namespaces_or_of_one_day_do_not_replace_each_other(
    person: Person,
) -> None:
    lamp = "The {} lamp is red and its crane stands at harbour {}."
    earlier = person.at(NOON - timedelta(days=90))
    await earlier.keep(Draft(lamp.format(1, 1)), namespace="east")
    await person.keep(Draft(lamp.format(2, 2)), namespace="west")
    await person.at(NOON - timedelta(hours=1)).keep(
        Draft(lamp.format(3, 3)), namespace="west"
    )

    answer = await person.recall("red lamp harbour", namespaces=("east", "west"))

    assert len(answer.memories) == 3
    assert [result.replaces for result in answer.memories] == [(), (), ()]
