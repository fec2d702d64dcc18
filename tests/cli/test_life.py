"""Changing memories from the command line: show, history, edit, forget, undo, relate, namespaces."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.commands import CommandLine, answers, command_line  # noqa: F401 - the fixture `folklore`


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """`editor(script)`: set $EDITOR to a program that changes the file by a line of Python over its text `t`."""

    def choose(script: str) -> None:
        path = tmp_path / "e.py"
        path.write_text(
            f"import sys, pathlib\np = pathlib.Path(sys.argv[1])\nt = p.read_text()\n{script}\np.write_text(t)\n"
        )
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(path)]))

    return choose


async def test_superseding_relations_and_revisions_are_shown(
    folklore: CommandLine,
) -> None:
    old = await folklore.keep("We release on Fridays.")
    stored = await folklore.json(
        "store",
        "We release on Mondays.",
        "--supersedes",
        old,
        "--supersede-reason",
        "freeze",
    )
    new = stored["stored"][0]["id"]
    await folklore.done("relate", new, "derived_from", old, "--strength", "0.5")

    (memory,) = (await folklore.json("show", old))["memories"]
    shown = await folklore.done("show", old)
    changes = await folklore.json("history", old)

    assert stored["stored"][0]["status"] == "superseded_old"
    assert memory["superseded_by"] == new
    assert {relation["type"] for relation in memory["relations"]} == {
        "supersedes",
        "derived_from",
    }
    assert f"{new} supersedes this" in shown
    assert "revisions" in shown
    assert [
        (change["action"], change["reason"]) for change in changes["revisions"]
    ] == [("supersede", "freeze")]
    assert "supersede by tester, from revision 1: freeze" in await folklore.done(
        "history", old
    )


async def test_storing_says_in_sentences_what_it_did_and_history_names_the_successor(
    folklore: CommandLine,
) -> None:
    old = await folklore.keep("We release on Fridays.")
    corrected = await folklore.done(
        "store", "We release on Mondays.", "--supersedes", old
    )
    again = await folklore.done("store", "We release on Mondays.")
    new = corrected.split()[1]

    assert corrected.startswith(f"stored {new} in ")
    assert f"supersedes {old[-8:]}, which recall leaves out from now on" in corrected
    assert again.startswith(f"known already as {new} in ")
    assert f"superseded by {new}" in await folklore.done("history", old)


async def test_forgetting_a_correction_says_what_is_in_force_again_and_its_undo_what_is_not(
    folklore: CommandLine,
) -> None:
    old = await folklore.keep("We release on Fridays.")
    new = await folklore.keep("We release on Mondays.", "--supersedes", old)

    both = await folklore.done(
        "recall", "release", "--filter", "include_superseded=true"
    )
    forgotten = await folklore.done("forget", new)
    listed = await folklore.done("list")
    history = await folklore.done("history", old)
    undone = await folklore.done("undo", new)
    again = await folklore.json("forget", new)
    back = await folklore.json("undo", new)

    assert f"superseded by {new[-8:]}" in both
    assert (
        f"superseded until now, in force again: {old}  We release on Fridays."
        in forgotten
    )
    assert "Fridays" in listed
    assert "Mondays" not in listed
    assert "restore by tester, from revision 2: forgot what superseded it" in history
    assert f"superseded again: {old}" in undone
    assert [memory["id"] for memory in again["restored"]] == [old]
    assert back["undone"][0]["superseded"] == [old]
    assert "Mondays" in await folklore.done("list")


async def test_similar_memories_are_reported(folklore: CommandLine) -> None:
    await folklore.keep("The deploy script needs Node 20 and a clean checkout.")

    shown = await folklore.done(
        "store", "The deploy script needs Node 20 and a clean checkout, always."
    )

    assert "similar (0.9" in shown
    assert "by tester: The deploy script needs Node 20" in shown


async def test_a_memory_is_edited_with_its_fields(
    folklore: CommandLine, editor: Callable[[str], None]
) -> None:
    fields = ("summary=gate", "priority=2", "importance=0.9", "confidence=0")
    id_ = await folklore.keep(
        "Teh gate is open.", "--tag", "gate", *(f"--field={field}" for field in fields)
    )
    editor(
        "t = t.replace('Teh', 'The').replace('- gate', '- gate\\n- open').replace('summary: gate\\n', '')"
        ".replace('priority: 2', 'priority: 1').replace('importance: 0.9', 'importance: 0')",
    )

    said = await folklore.done("edit", id_)

    (memory,) = (await folklore.json("show", id_))["memories"]
    assert "revision 2" in said
    assert (memory["content"], memory["tags"], memory["priority"]) == (
        "The gate is open.",
        ["gate", "open"],
        1,
    )
    assert (memory["importance"], memory["confidence"]) == (0, 0)
    assert "summary" not in memory


UNCHANGED: list[str] = ["", "t = ''", "t = '  \\n'"]


async def test_a_file_saved_unchanged_or_empty_changes_nothing(
    folklore: CommandLine, editor: Callable[[str], None]
) -> None:
    id_ = await folklore.keep("The gate is open.")

    for script in UNCHANGED:
        editor(script)

        assert "Nothing was changed" in await folklore.done("edit", id_), script
        assert (await folklore.json("edit", id_))["content"] == "The gate is open.", (
            script
        )
        assert (await folklore.json("show", id_))["memories"][0]["revision"] == 1, (
            script
        )


async def test_an_edit_of_a_memory_changed_meanwhile_is_refused_and_kept_in_a_file(
    folklore: CommandLine, editor: Callable[[str], None], tmp_path: Path
) -> None:
    id_ = await folklore.keep("The gate is open.")
    inner = tmp_path / "inner.py"
    inner.write_text(
        "import sys, pathlib\np = pathlib.Path(sys.argv[1])\np.write_text(p.read_text().replace('open', 'shut'))\n"
    )
    other = shlex.join([sys.executable, str(inner)])
    meanwhile = (
        "import os, subprocess\n"
        f"subprocess.run([{sys.executable!r}, '-m', 'folklore', 'edit', {id_!r}],"
        f" env=os.environ | {{'EDITOR': {other!r}}}, check=True)\n"
        "t = t.replace('open', 'ajar')"
    )
    editor(meanwhile)

    ran = await folklore("edit", id_)

    assert ran.code == 1
    assert "revision 2" in ran.err
    kept = Path(ran.err.rpartition("kept in ")[2].strip().rstrip("."))
    assert "The gate is ajar." in kept.read_text()
    assert (await folklore.json("show", id_))["memories"][0][
        "content"
    ] == "The gate is shut."


INVALID: list[tuple[str, str]] = [
    ("t = t.replace('kind: note', 'mood: good')", "mood"),
    ("t = t.replace('kind: note', 'kind: [')", "not valid YAML"),
    (
        "t = t.replace('kind: note', 'priority: high')",
        "priority: must be a whole number",
    ),
    (
        "t = t.replace('kind: note', 'tags: {gate: 1}')",
        "tags: must be a list of texts, such as `[one, two]`",
    ),
    ("t = '---\\nkind: note\\n' + t[40:]", "three dashes"),
]


async def test_invalid_fields_change_nothing(
    folklore: CommandLine, editor: Callable[[str], None]
) -> None:
    id_ = await folklore.keep("The gate is open.")

    for script, words in INVALID:
        editor(script)

        ran = await folklore("edit", id_)

        assert ran.code == 2, script
        assert words in ran.err, script
        assert (await folklore.json("show", id_))["memories"][0]["revision"] == 1, (
            script
        )


async def test_forgetting_and_undoing(folklore: CommandLine) -> None:
    ids = [
        await folklore.keep(f"junk {number}", "--tag", "junk") for number in range(2)
    ]
    kept = await folklore.keep("gold")

    would = await folklore.json("forget", "--tag", "junk", "--dry-run")
    did = await folklore.done("forget", "--tag", "junk")
    after = await folklore.json("list")

    assert {item["id"] for item in would["forgotten"]} == set(ids)
    assert "2 forgotten" in did
    assert [memory["id"] for memory in after["memories"]] == [kept]
    assert (await folklore.json("show", ids[0]))["memories"][0]["forgotten_at"]
    undone = await folklore.json("undo", *ids)
    assert [item["change"]["action"] for item in undone["undone"]] == [
        "forget",
        "forget",
    ]
    assert len((await folklore.json("list"))["memories"]) == 3
    assert (await folklore("undo", kept)).code == 4
    assert (await folklore("forget")).code == 2


async def test_an_erased_memory_cannot_be_restored(folklore: CommandLine) -> None:
    id_ = await folklore.keep("a secret thought")

    silent = folklore.process("forget", id_, "--erase")
    said = await folklore.done("forget", id_, "--erase", "--yes")

    assert (silent.code, "--yes: is needed without a terminal." in silent.err) == (
        2,
        True,
    )
    assert "1 erased" in said
    assert "secret" not in said
    assert (await folklore("undo", id_)).code == 4
    assert (await folklore("show", id_)).code == 4


async def test_a_terminal_is_asked_before_memories_are_forgotten(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await folklore.keep("a thought")
    asked = answers(monkeypatch, False, True)

    first = await folklore("forget", id_)
    assert (first.code, first.err) == (
        1,
        "folklore: The answer was not yes: nothing was changed.\n",
    )
    assert len((await folklore.json("list"))["memories"]) == 1
    await folklore.done("forget", id_)
    assert (await folklore.json("list"))["memories"] == []
    assert asked == ["Forget these?", "Forget these?"]


async def test_a_repeated_undo_with_a_revision_undoes_nothing_more(
    folklore: CommandLine,
) -> None:
    id_ = await folklore.keep("The gate is open.")
    other = await folklore.keep("The gate is green.")
    await folklore.done("forget", id_)

    undone = (await folklore.json("undo", id_, "--revision", "2"))["undone"][0][
        "memory"
    ]
    again = await folklore("undo", id_, "--revision", "2")

    assert (undone["id"], undone["revision"]) == (id_, 3)
    assert again.code == 1
    assert "is at revision 3, not 2" in again.err
    assert (await folklore("undo", id_, other, "--revision", "3")).code == 2


async def test_relations_from_the_command_line(folklore: CommandLine) -> None:
    a = await folklore.keep("a")
    b = await folklore.keep("b")

    assert "created" in await folklore.done("relate", a, "causes", b)
    assert "updated" in await folklore.done(
        "relate", a, "causes", b, "--strength", "0.2"
    )
    assert (await folklore.json("relate", a, "causes", b, "--remove"))["removed"]


async def test_memories_in_several_namespaces_are_related_in_the_named_one(
    folklore: CommandLine, tmp_path: Path
) -> None:
    a = await folklore.keep("a", "-n", "one")
    b = await folklore.keep("b", "-n", "one")
    await folklore.done("export", tmp_path / "all.jsonl")
    await folklore.done("import", tmp_path / "all.jsonl", "-n", "two")

    unsaid = await folklore("relate", a, "causes", b)
    await folklore.done("relate", a, "causes", b, "-n", "two")

    assert unsaid.code == 1
    assert "several namespaces: one, two. Name one of them." in unsaid.err
    related = {
        memory["namespace"]: memory.get("relations")
        for memory in (await folklore.json("show", a))["memories"]
    }
    assert related == {
        "one": None,
        "two": [{"type": "causes", "to": b, "strength": 1.0}],
    }
    assert (await folklore("relate", a, "causes", b, "-n", "three")).code == 4


async def test_a_failed_relation_ends_with_the_exit_code_of_its_error(
    folklore: CommandLine,
) -> None:
    a = await folklore.keep("a")
    b = await folklore.keep("b")
    elsewhere = await folklore.keep("c", "-n", "other")
    nowhere = str(uuid4())

    missing = await folklore("relate", a, "causes", nowhere, "--json")
    gone = await folklore("relate", a, "causes", b, "--remove", "--json")

    assert (missing.code, json.loads(missing.err)["error"]["code"]) == (4, "not_found")
    assert nowhere in missing.err
    assert (gone.code, json.loads(gone.err)["error"]["code"]) == (4, "not_found")
    assert "Not removed: This relation did not exist." in gone.err
    assert (await folklore("relate", nowhere, "supersedes", b)).code == 4
    assert (await folklore("relate", a, "Not A Type", b)).code == 2
    assert (await folklore("relate", a, "causes", a)).code == 2
    assert (await folklore("relate", a, "causes", elsewhere)).code == 1
    assert (await folklore("relate", "x", "causes", b)).code == 2


async def test_text_that_looks_like_markup_is_printed_unchanged(
    folklore: CommandLine,
) -> None:
    description = "See [/b] and [red]this[/red]."
    await folklore.done("namespaces", "create", "team", "--description", description)
    await folklore.done(
        "tokens", "create", "--name", "ann[/x]", "--grant", "team:reader"
    )

    assert description in await folklore.done("namespaces", "list")
    assert "ann[/x]" in await folklore.done("tokens", "list")
    assert "ann[/x]" in await folklore.done("audit")


async def test_namespaces_are_made_renamed_described_deleted_and_restored(
    folklore: CommandLine,
) -> None:
    await folklore.done("namespaces", "create", "team", "--language", "de")
    await folklore.done("namespaces", "describe", "team", "What the team knows.")
    await folklore.done("namespaces", "rename", "team", "crew")
    await folklore.keep("Wir liefern montags.", "-n", "crew")

    (listed,) = (await folklore.json("namespaces", "list"))["namespaces"]
    said = await folklore.done("namespaces", "delete", "crew")
    gone = await folklore.json("namespaces", "list", "--deleted")

    assert (
        listed.items()
        >= {
            "name": "crew",
            "language": "german",
            "description": "What the team knows.",
        }.items()
    )
    assert "30 days" in said
    assert (await folklore.json("namespaces", "list"))["namespaces"] == []
    assert gone["namespaces"][0]["deleted_by"] == "tester"
    assert (await folklore("list", "-n", "crew")).code == 4
    await folklore.done("namespaces", "restore", "crew")
    assert len((await folklore.json("list", "-n", "crew"))["memories"]) == 1
    await folklore.done("namespaces", "delete", "crew", "--erase", "-y")
    assert (await folklore("namespaces", "restore", "crew")).code == 4


async def test_erasing_a_namespace_leaves_a_deleted_one_of_the_same_name(
    folklore: CommandLine,
) -> None:
    await folklore.keep("The pier is closed.", "-n", "nv")
    await folklore.keep("The pier is wet.", "-n", "nv")
    await folklore.done("namespaces", "delete", "nv")
    await folklore.keep("Another pier.", "-n", "NV")
    taken = await folklore("namespaces", "restore", "nv")

    said = await folklore.done("namespaces", "delete", "nv", "--erase", "-y")
    await folklore.done("namespaces", "restore", "NV")

    assert (taken.code, "Another namespace has the name 'nv'" in taken.err) == (1, True)
    assert said.splitlines() == [
        "erased NV with 1 memory",
        "1 of this name were deleted earlier: `folklore namespaces list --deleted`",
    ]
    found = (await folklore.json("list", "-n", "nv"))["memories"]
    assert {memory["content"] for memory in found} == {
        "The pier is closed.",
        "The pier is wet.",
    }


async def test_without_a_namespace_in_use_the_deleted_ones_of_the_name_are_erased(
    folklore: CommandLine,
) -> None:
    for spelled, texts in (("nv", ("One.", "Two.")), ("NV", ("Three.",))):
        for text in texts:
            await folklore.keep(text, "-n", spelled)
        await folklore.done("namespaces", "delete", spelled)

    silent = folklore.process("namespaces", "delete", "nv", "--erase")
    said = await folklore.done("namespaces", "delete", "nv", "--erase", "-y")

    assert (silent.code, "--yes: is needed without a terminal." in silent.err) == (
        2,
        True,
    )
    assert said.splitlines() == ["erased NV (2 deleted namespaces) with 3 memories"]
    assert (await folklore.json("namespaces", "list", "--deleted"))["namespaces"] == []
    again = await folklore("namespaces", "delete", "nv", "--erase", "-y")
    assert (again.code, "no namespace 'nv'" in again.err) == (4, True)


async def test_the_question_on_a_terminal_names_what_would_be_erased(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folklore.keep("Old.", "-n", "nv")
    await folklore.done("namespaces", "delete", "nv")
    await folklore.keep("New.", "-n", "nv")
    await folklore.keep("Newer.", "-n", "nv")
    asked = answers(monkeypatch, False, False)

    assert (await folklore("namespaces", "delete", "nv", "--erase")).code == 1
    assert (await folklore("namespaces", "delete", "nv")).code == 1

    assert asked == [
        "Erase nv with 2 memories permanently?",
        "nv and all its memories will be deleted. Continue?",
    ]
    (listed,) = (await folklore.json("namespaces", "list"))["namespaces"]
    assert (listed["name"], listed["memories"]) == ("nv", 2)
