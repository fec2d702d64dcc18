"""The field `cues`: phrases that say when a memory is needed; stated, added to, united, taken over, and checked."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from mcp import Client

from folklore.contract.memories import UpdateRequest
from folklore.errors import InvalidInput, Refused
from folklore.model import Draft, Relation
from tests.cli.test_confirmed import command_place  # noqa: F401 - a fixture
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.mcp.test_tools import call
from tests.person import Person

TEXT = "Outgoing calls go through shop/http.py, which waits two seconds."
CUES = ("add a retry", "the site hangs")


async def cues(person: Person, id_: UUID) -> tuple[str, ...]:
    [memory] = await person.get(id_)
    return memory.cues


async def test_cues_are_kept_in_lines_of_their_own_without_repetitions(
    person: Person,
) -> None:
    given = ("  add a\n retry ", "Add a retry", "", "the site hangs")

    [id_] = await person.keep(Draft(TEXT, cues=given))

    assert await cues(person, id_) == CUES


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("x" * 121,), r"cues\[0\]: must be at most 120 characters, got 121"),
        (tuple(f"cue {n}" for n in range(9)), "cues: must hold at most 8 phrases"),
    ],
)
async def test_cues_that_are_too_long_or_too_many_are_refused(
    person: Person, given: tuple[str, ...], said: str
) -> None:
    [id_] = await person.keep(TEXT)

    with pytest.raises(InvalidInput, match=said):
        await person.keep(Draft("Another text.", cues=given))
    with pytest.raises(InvalidInput, match=said):
        await person.update(id_, cues=given)


async def test_a_secret_in_a_cue_is_refused(person: Person) -> None:
    key = "".join(("AKIA", "IOSFODNN7", "QWERTYU"))

    with pytest.raises(Refused, match="cues"):
        await person.keep(Draft(TEXT, cues=(f"the key {key} fails",)))


async def test_a_change_of_cues_is_a_revision_that_can_be_undone(
    person: Person,
) -> None:
    [id_] = await person.keep(Draft(TEXT, cues=CUES))

    changed = await person.update(id_, cues=["wrap a call"])

    assert changed.cues == ("wrap a call",)
    [revision] = await person.history(id_)
    assert revision.before == {"cues": list(CUES)}
    assert (await person.undo(id_)).cues == CUES
    assert (await person.redo(id_)).cues == ("wrap a call",)
    assert (await person.update(id_, clear=("cues",))).cues == ()


async def test_a_known_text_gains_the_cues_with_which_it_is_stored_again(
    person: Person,
) -> None:
    [id_] = await person.keep(Draft(TEXT, cues=CUES[:1]))

    again = await person.store(Draft(TEXT, cues=CUES), Draft("A new text.", cues=CUES))
    same = await person.store(Draft(TEXT, cues=CUES))

    assert [(item.id == id_, item.status, item.cues) for item in again.stored] == [
        (True, "duplicate", "added"),
        (False, "stored", None),
    ]
    assert same.stored[0].cues is None
    assert await cues(person, id_) == CUES
    assert (await person.undo(id_)).cues == CUES[:1]


async def test_of_more_than_eight_cues_those_with_new_words_are_kept(
    person: Person,
) -> None:
    repeating = tuple(f"calls {word}" for word in ("two", "seconds", "outgoing"))
    telling = tuple(f"{word} fails" for word in "abcdefgh")
    [id_] = await person.keep(Draft(TEXT, cues=repeating))

    await person.store(Draft(TEXT, cues=telling))

    assert await cues(person, id_) == telling


async def test_a_memory_takes_over_the_cues_of_what_it_supersedes(
    person: Person,
) -> None:
    [old] = await person.keep(Draft(TEXT, cues=CUES))

    [new] = await person.keep(Draft("Outgoing calls are direct.", supersedes=old))
    [newest] = await person.keep(
        Draft("There are no outgoing calls.", supersedes=new, cues=("call a partner",))
    )

    assert await cues(person, new) == CUES
    assert await cues(person, newest) == ("call a partner",)


async def test_a_relation_that_supersedes_hands_over_cues_too(person: Person) -> None:
    old, new = await person.keep(Draft(TEXT, cues=CUES), "Outgoing calls are direct.")

    await person.relate(Relation(new, "supersedes", old))

    assert await cues(person, new) == CUES
    assert (await person.undo(new)).cues == ()


async def test_a_merge_unites_the_cues(person: Person) -> None:
    target, other = await person.keep(
        Draft(TEXT, cues=CUES), Draft("Calls wait.", cues=("a timeout", "Add a retry"))
    )

    merged = await person.call(UpdateRequest(id=target, merge=(other,)))

    assert merged.cues == (*CUES, "a timeout")
    assert (await person.undo(target)).cues == CUES


async def test_tools_take_them_and_show_them_in_details_alone(client: Client) -> None:
    await call(client, "memory_store", content=TEXT, cues=list(CUES))
    stored = await call(
        client, "memory_store", memories=[{"content": "A gate.", "cues": ["enter"]}]
    )
    id_ = stored["stored"][0]["id"]

    changed = await call(client, "memory_update", id=id_, cues=["walk in"])
    [read] = (await call(client, "memory_get", ids=[id_]))["memories"]
    concise = await call(client, "memory_recall", query="how do I walk in")
    detailed = await call(
        client, "memory_recall", query="how do I walk in", format="detailed"
    )

    assert changed["cues"] == read["cues"] == ["walk in"]
    assert all("cues" not in memory for memory in concise["memories"])
    assert detailed["memories"][0]["cues"] == ["walk in"]


async def test_an_answer_says_once_in_a_session_how_to_add_cues(client: Client) -> None:
    async def note_of(content: str, session: str, **fields: Any) -> str:
        meta: Any = {"folklore/sessionId": session}
        arguments = {"content": content, "namespace": "notes", **fields}
        answer = await client.call_tool("memory_store", arguments, meta=meta)
        return str((answer.structured_content or {}).get("note", ""))

    assert "cues" not in await note_of("With cues.", "one", cues=["a door"])
    assert (await note_of("Without cues.", "one")).endswith("adds them.")
    assert "cues" not in await note_of("Again without.", "one")
    assert "memory_update" in await note_of("In another session.", "two")


async def test_commands_state_and_export_them(
    folklore: CommandLine, tmp_path: Path
) -> None:
    await folklore.done("store", TEXT, "--cue", CUES[0], "--cue", CUES[1])
    await folklore.done("export", tmp_path / "all.jsonl")
    await folklore.done("import", tmp_path / "all.jsonl", "--namespace", "copy")

    found = await folklore.json(
        "recall", "the site hangs", "-n", "copy", "--format", "detailed"
    )

    assert [memory["cues"] for memory in found["memories"]] == [list(CUES)]
    lines = map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())
    assert [line["cues"] for line in lines if "content" in line] == [list(CUES)]
