"""The log, the undo of one's own last change, the history as a diff, the editor of a new memory, and completion."""

import asyncio
import shlex
import sys
from pathlib import Path

import pytest

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.terminal import on_terminal


def editor(path: Path, text: str) -> str:
    path.write_text(
        f"import sys, pathlib\npathlib.Path(sys.argv[1]).write_text({text!r})\n"
    )
    return shlex.join([sys.executable, str(path)])


async def test_the_log_shows_who_did_what_by_day(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Nothing was written" in await folklore.done("log")
    gate = await folklore.keep("The gate is open.", "--tag", "gate/north")
    monkeypatch.setenv("FOLKLORE_AUTHOR", "bea")
    await folklore.keep("The door is green.", "--kind", "fact", "-n", "others")
    await folklore.done("forget", gate, "--yes")

    shown = await folklore.done("log")
    rows = (await folklore.json("log"))["log"]

    assert shown.splitlines()[0].endswith(", today")
    assert [
        line.split("  ", 1)[1] for line in shown.splitlines() if line[2:3] == ":"
    ] == [
        "bea forgot a memory in notes",
        "bea stored a memory in others",
        "tester stored a memory in notes",
    ]
    assert "The gate is open." in await folklore.done("show", "1")
    assert [
        (row["author"], row["action"], row["memories"][0]["content"]) for row in rows
    ] == [
        ("bea", "forget", "The gate is open."),
        ("bea", "store", "The door is green."),
        ("tester", "store", "The gate is open."),
    ]


async def test_the_log_is_filtered_and_bounded(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await folklore.keep("The gate is open.", "--tag", "gate/north")
    await folklore.keep("The door is green.", "--kind", "fact")
    monkeypatch.setenv("FOLKLORE_AUTHOR", "bea")
    await folklore.keep("The wall is high.", "-n", "others")

    async def texts(*options: str) -> list[str]:
        return [
            row["memories"][0]["content"]
            for row in (await folklore.json("log", *options))["log"]
        ]

    assert await texts("--tag", "gate") == ["The gate is open."]
    assert await texts("--tag", "gat") == []
    assert await texts("--kind", "fact") == ["The door is green."]
    assert await texts("--author", "Tester") == [
        "The door is green.",
        "The gate is open.",
    ]
    assert await texts("--mine") == ["The wall is high."]
    assert await texts("-n", "others") == ["The wall is high."]
    assert await texts("--limit", "1") == ["The wall is high."]
    assert await texts("--time", "before 2020-01-01") == []
    assert (await folklore("log", "--time", "zzz")).code == 2


async def test_undo_without_an_id_takes_back_ones_own_changes_one_by_one(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = await folklore.keep("The gate is open.")
    second = await folklore.keep("The door is green.")
    monkeypatch.setenv("EDITOR", editor(tmp_path / "e.py", "The gate is shut."))
    monkeypatch.delenv("VISUAL", raising=False)
    await folklore.done("edit", first)
    await folklore.done("forget", first, second, "--yes")
    monkeypatch.setenv("FOLKLORE_AUTHOR", "bea")
    await folklore.keep("The wall is high.")
    monkeypatch.setenv("FOLKLORE_AUTHOR", "tester")

    forgotten = (await folklore.json("undo"))["undone"]
    edited = (await folklore.json("undo"))["undone"]
    stored = [(await folklore.json("undo"))["forgotten"] for _ in range(2)]
    nothing = await folklore("undo")

    assert {(item["memory"]["id"], item["change"]["action"]) for item in forgotten} == {
        (first, "forget"),
        (second, "forget"),
    }
    assert [
        (item["memory"]["content"], item["change"]["action"]) for item in edited
    ] == [("The gate is open.", "update")]
    assert [[memory["id"] for memory in batch] for batch in stored] == [
        [second],
        [first],
    ]
    assert (nothing.code, "You changed nothing" in nothing.err) == (4, True)

    redone = [(await folklore.json("redo"))["redone"] for _ in range(4)]
    no_more = await folklore("redo")

    assert [{item["memory"]["id"] for item in batch} for batch in redone] == [
        {first}, {second}, {first}, {first, second}
    ]  # fmt: skip
    assert (no_more.code, "no undo of yours" in no_more.err) == (4, True)
    assert (await folklore.json("undo"))["undone"][0]["change"]["action"] == "forget"
    assert "tester undid a change of a memory in notes" in await folklore.done("log")


async def test_a_change_after_an_undo_ends_the_redo(folklore: CommandLine) -> None:
    id_ = await folklore.keep("The gate is open.")
    await folklore.done("pin", id_)
    await folklore.done("undo")
    await folklore.keep("The door is green.")

    refused = await folklore("redo")
    await folklore.done("redo", id_)
    again = await folklore("redo", id_)

    assert (refused.code, again.code) == (4, 4)
    assert [
        item["id"]
        for item in (await folklore.json("list", "--filter", "pinned=true"))["memories"]
    ] == [id_]
    assert [(await folklore.json("undo")).keys() for _ in range(2)] == [
        {"undone"},
        {"forgotten"},
    ]


async def test_undo_without_an_id_leaves_the_later_change_of_another(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await folklore.keep("The gate is open.")
    await folklore.done("pin", id_)
    monkeypatch.setenv("FOLKLORE_AUTHOR", "bea")
    nothing = await folklore("undo")
    await folklore.done("forget", id_, "--yes")
    monkeypatch.setenv("FOLKLORE_AUTHOR", "tester")

    ran = await folklore("undo")

    assert (nothing.code, "You changed nothing" in nothing.err) == (4, True)
    assert ran.code == 1
    assert f"bea changed the memory {id_}" in ran.err


@pytest.mark.parametrize(("typed", "code", "left"), [("n\n", 1, 1), ("y\n", 0, 0)])
async def test_undo_without_an_id_asks_on_a_terminal(
    folklore: CommandLine, typed: str, code: int, left: int
) -> None:
    await folklore.keep("The gate is open.")

    screen = await asyncio.to_thread(
        on_terminal, folklore.environment, "undo", typed=typed
    )

    assert screen.code == code
    assert "The gate is open." in screen.text
    assert "Forget this memory, stored just now?" in screen.text
    assert len((await folklore.json("list"))["memories"]) == left


async def test_the_history_shows_what_differs(
    folklore: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    id_ = await folklore.keep(
        "One gate.\nIt is open.\nIt is green.", "--importance", "0.5"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv(
        "EDITOR",
        editor(
            tmp_path / "e.py",
            "---\nkind: note\nsummary: gate\n---\nOne gate.\nIt is shut.\nIt is green.\n",
        ),
    )
    await folklore.done("edit", id_)
    monkeypatch.setenv(
        "EDITOR",
        editor(tmp_path / "f.py", "---\nkind: fact\nsummary: gate\n---\nTwo gates.\n"),
    )
    await folklore.done("edit", id_)

    words = [
        " ".join(line.split())
        for line in (await folklore.done("history", id_)).splitlines()
    ]
    screen = await asyncio.to_thread(
        on_terminal, folklore.environment, "history", id_, columns=160
    )

    newest = words.index("content - One gate.")
    oldest = words.index("content One gate.")
    assert words[newest : newest + 4] == [
        "content - One gate.",
        "- It is shut.",
        "- It is green.",
        "+ Two gates.",
    ]
    assert words[oldest : oldest + 4] == [
        "content One gate.",
        "- It is open.",
        "+ It is shut.",
        "It is green.",
    ]
    assert "kind note → fact" in words
    assert "importance 0.5 → (none)" in words
    assert "summary (none) → gate" in words
    assert "\x1b[31m\x1b[1m\x1b[4mopen\x1b[0m" in screen.raw
    assert "\x1b[32m\x1b[1m\x1b[4mshut\x1b[0m" in screen.raw


@pytest.mark.parametrize(
    ("written", "stored"), [("The gate is open.\n", 1), ("  \n", 0)]
)
async def test_store_without_a_text_opens_the_editor_on_a_terminal(
    folklore: CommandLine, tmp_path: Path, written: str, stored: int
) -> None:
    program = editor(tmp_path / "e.py", written)

    screen = await asyncio.to_thread(
        on_terminal,
        folklore.environment,
        "store",
        "--tag",
        "gate",
        EDITOR=program,
        VISUAL=program,
    )

    assert screen.code == 0
    assert len((await folklore.json("list", "--tag", "gate"))["memories"]) == stored
    assert ("nothing was stored" in screen.text) == (stored == 0)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_completion_is_printed_for_a_shell(
    folklore: CommandLine, shell: str
) -> None:
    assert "_FOLKLORE_COMPLETE" in await folklore.done("completion", shell)


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("folklore hi", {"plain,history"}),
        ("folklore tokens cr", {"plain,create"}),
        ("folklore log --mi", {"plain,--mine"}),
    ],
)
def test_commands_and_options_are_completed(
    folklore: CommandLine, words: str, completed: set[str]
) -> None:
    place = str(len(words.split()) - 1)

    ran = folklore.process(
        COMP_WORDS=words, COMP_CWORD=place, _FOLKLORE_COMPLETE="bash_complete"
    )

    assert set(ran.out.split("\n")) - {""} == completed
