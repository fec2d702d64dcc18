"""Import of Claude Code's notes: each project's to its own namespace, the user's own to a private one."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from folklore.text import names
from folklore_import.claude_projects import encoded
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.repositories import repository_of
from tests.terminal import on_terminal


@pytest.fixture(autouse=True)
def repositories_end_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")


class Claude:
    """A made-up `~/.claude`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "projects").mkdir(parents=True)

    def notes(self, directory: Path | str, **pages: str) -> Path:
        """Write notes on the project in a directory, and return the folder of the project."""
        memory = self.root / "projects" / encoded(str(directory)) / "memory"
        memory.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (memory / f"{name}.md").write_text(text)
        return memory.parent


@pytest.fixture
def claude(tmp_path: Path) -> Claude:
    return Claude(tmp_path / ".claude")


async def exported(
    folklore: CommandLine, *, forgotten: bool = False
) -> dict[str, dict[str, Any]]:
    """Return the memories in force by content, or the forgotten ones."""
    file = Path(folklore.environment["FOLKLORE_HOME"]).parent / "exported.jsonl"
    await folklore.done("export", file)
    lines = [
        line
        for line in map(json.loads, file.read_text().splitlines()[1:])
        if line["type"] == "memory"
    ]
    return {
        line["content"]: line for line in lines if ("forgotten_at" in line) == forgotten
    }


async def places(folklore: CommandLine) -> dict[str, str]:
    return {
        content: line["namespace"]
        for content, line in (await exported(folklore)).items()
    }


async def test_notes_go_to_the_namespaces_of_their_repositories_and_own_ones_to_a_private_one(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    shop = repository_of(tmp_path / "shop", "git@github.com:acme/shop.git")
    clone = repository_of(tmp_path / "clone of shop", "https://github.com/acme/shop")
    other = repository_of(tmp_path / "other", "git@github.com:acme/other.git")
    claude.notes(
        shop,
        deploy="Shop deploys from tags.",
        MEMORY="# Index\n\n- [Deploy](deploy.md) — how\n",
    )
    claude.notes(clone, tests="Shop tests take a minute.")
    claude.notes(other, MEMORY="- See deploy.md for nothing\n- Other uses Postgres.\n")
    (claude.root / "CLAUDE.md").write_text("# Style\n\nShort answers.\n")
    (claude.root / "rules").mkdir()
    (claude.root / "rules" / "python.md").write_text("Use ruff.\n")
    (claude.root / "plugins" / "x").mkdir(parents=True)
    (claude.root / "plugins" / "x" / "CLAUDE.md").write_text("Of a plugin.\n")

    report = await folklore.json("import", claude.root, "--yes")

    assert await places(folklore) == {
        "Shop deploys from tags.": "repo:acme/shop", "Shop tests take a minute.": "repo:acme/shop",
        "- See deploy.md for nothing\n- Other uses Postgres.": "repo:acme/other",
        "Style\n\nShort answers.": "tester-private", "Use ruff.": "tester-private",
    }  # fmt: skip
    assert (report["format"], report["left_out"]) == ("claude-memory", [])
    assert report["skipped"] == {"index of other files": 1}
    assert [
        (target["namespace"], target["memories"], target["stored"])
        for target in report["targets"]
    ] == [
        ("tester-private", 2, None),
        ("repo:acme/shop", 1, None),
        ("repo:acme/other", 1, None),
        ("repo:acme/shop", 1, None),
    ]


async def test_several_targets_need_yes_without_a_terminal_and_nothing_is_written(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    claude.notes(
        repository_of(tmp_path / "shop", "git@github.com:acme/shop.git"),
        deploy="From tags.",
    )
    (claude.root / "CLAUDE.md").write_text("Short answers.\n")

    refused = await folklore("import", claude.root)
    dry = await folklore("import", claude.root, "--dry-run")

    assert refused.code == 2
    assert refused.err.startswith(
        "folklore: --yes: is needed, as there are 2 namespaces."
    )
    for shown in (refused.out, dry.out):
        assert re.search(r"…\S+-shop +repo:acme/shop +1 +new +only you", shown)
        assert re.search(r"…\S+/\.claude +tester-private +1 +new +only you", shown)
    assert "Would be: 2 stored" in dry.out
    assert await folklore.json("namespaces", "list") == {"namespaces": []}


async def test_a_folder_without_notes_is_told_what_notes_would_be(
    folklore: CommandLine,
    claude: Claude,
) -> None:
    (claude.root / "settings.json").write_text("{}")

    ran = await folklore("import", claude.root)

    assert ran.code == 2
    assert "has no notes of Claude Code (CLAUDE.md, projects/*/memory/*.md)" in ran.err
    assert "there is nothing to import" in ran.err


async def test_a_project_that_cannot_be_resolved_is_left_out_unless_it_is_mapped(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    gone = claude.notes("/home/somebody/gone", a="Of a folder that is gone.")
    claude.notes(tmp_path / "plain", b="Of a folder without a repository.")
    named = claude.notes(
        "/home/somebody/recorded", c="Of a folder that a transcript names."
    )
    (named / "session.jsonl").write_text(
        json.dumps({"cwd": "/home/somebody/recorded"}) + "\n"
    )

    nothing = await folklore("import", claude.root, "--yes")
    mapped = await folklore.json(
        "import", claude.root, "--yes", "--map", f"{gone.name}=team:old"
    )
    by_path = await folklore.json(
        "import", claude.root, "--yes", "--map", f"{tmp_path / 'plain'}=plain"
    )

    assert nothing.code == 2
    assert (
        "left out: projects/-home-somebody-gone (1 memory): no folder on this machine has this name"
        in nothing.out
    )
    assert [item["reason"] for item in mapped["left_out"]] == [
        "/home/somebody/recorded does not exist",
        f"{tmp_path / 'plain'} is in no git repository",
    ]
    assert mapped["namespaces"] == {"team:old": 1}
    assert by_path["namespaces"] == {"plain": 1}


@pytest.mark.parametrize("record", ["transcript", "settings", "history"])
async def test_what_claude_code_recorded_decides_between_folders_of_the_same_name(
    folklore: CommandLine, claude: Claude, tmp_path: Path, record: str
) -> None:
    right = repository_of(tmp_path / "a-b", "git@github.com:acme/right.git")
    repository_of(tmp_path / "a" / "b", "git@github.com:acme/wrong.git")
    folder = claude.notes(right, note="One of two.")
    both = await folklore.json(
        "import", claude.root, "--namespace", "both", "--dry-run"
    )

    ambiguous = await folklore("import", claude.root, "--dry-run")
    if record == "transcript":
        lines = [
            {"type": "summary"},
            {"cwd": str(right / "src")},
            {"cwd": "/elsewhere"},
        ]
        (folder / "s.jsonl").write_bytes(
            b"\xff broken\n" + "\n".join(map(json.dumps, lines)).encode()
        )
    elif record == "settings":
        (tmp_path / ".claude.json").write_text(
            json.dumps({"projects": {str(right): {}, "/elsewhere": {}}})
        )
    else:
        (claude.root / "history.jsonl").write_text(
            '{"display": "hi"}\n[]\n' + json.dumps({"project": str(right)})
        )
    found = await folklore.json("import", claude.root)

    assert both["namespaces"] == {"both": 1}
    assert ambiguous.code == 2
    assert (
        f"several folders have this name: {tmp_path / 'a' / 'b'}, {right}"
        in ambiguous.out
    )
    assert found["namespaces"] == {"repo:acme/right": 1}


async def test_a_long_path_is_known_by_the_beginning_of_its_name(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    long = repository_of(
        tmp_path / ("long" * 20) / ("er" * 30), "git@github.com:acme/long.git"
    )
    folder = claude.notes(long, note="Of a long path.")
    hashed = folder.rename(folder.with_name(f"{folder.name}-1x2y3z"))
    (hashed / "s.jsonl").write_text(json.dumps({"cwd": str(long)}))

    assert len(hashed.name) > 200
    assert (await folklore.json("import", hashed))["namespaces"] == {
        "repo:acme/long": 1
    }


async def test_a_project_or_its_memory_folder_or_one_note_is_imported_alone(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    folder = claude.notes(
        repository_of(tmp_path / "shop", "git@github.com:acme/shop.git"),
        a="One.",
        b="Two.",
    )
    claude.notes(
        repository_of(tmp_path / "other", "git@github.com:acme/other.git"), a="Three."
    )
    (claude.root / "CLAUDE.md").write_text("Own.\n")

    note = await folklore.json("import", folder / "memory" / "a.md")
    memory = await folklore.json("import", folder / "memory")
    project = await folklore.json("import", folder)
    own = await folklore.json("import", claude.root / "CLAUDE.md")

    assert [
        (report["stored"], report["duplicates"]) for report in (note, memory, project)
    ] == [(1, 0), (1, 1), (0, 2)]
    assert {report["format"] for report in (note, memory, project, own)} == {
        "claude-memory"
    }
    assert set(note["namespaces"]) == set(project["namespaces"]) == {"repo:acme/shop"}
    assert own["namespaces"] == {"tester-private": 1}


async def test_a_namespace_that_others_can_read_is_shown_and_needs_yes(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    claude.notes(
        repository_of(tmp_path / "shop", "git@github.com:acme/shop.git"),
        deploy="From tags.",
    )
    await folklore.done(
        "tokens", "create", "--name", "bob", "--grant", "repo:acme/shop:reader"
    )
    await folklore.done(
        "tokens", "create", "--name", "tester", "--grant", "repo:acme/shop:writer"
    )
    await folklore.done("tokens", "create", "--name", "root", "--owner")

    refused = await folklore("import", claude.root)
    accepted = await folklore.json("import", claude.root, "--yes")

    assert refused.code == 2
    assert re.search(r"repo:acme/shop +1 +0 +bob, root \(owner\)", refused.out)
    assert "others can read repo:acme/shop" in refused.err
    [target] = accepted["targets"]
    assert (target["readers"], target["owners"], target["stored"]) == (
        ["bob"],
        ["root"],
        0,
    )


@pytest.mark.parametrize(
    ("answer", "stored"), [("n\n", set()), ("y\n", {"From tags.", "Short answers."})]
)
async def test_a_terminal_is_asked_after_the_targets_were_shown(
    folklore: CommandLine, claude: Claude, tmp_path: Path, answer: str, stored: set[str]
) -> None:
    claude.notes(
        repository_of(tmp_path / "shop", "git@github.com:acme/shop.git"),
        deploy="From tags.",
    )
    (claude.root / "CLAUDE.md").write_text("Short answers.\n")

    screen = await asyncio.to_thread(
        on_terminal,
        folklore.environment,
        "import",
        claude.root,
        columns=80,
        typed=answer,
    )

    shown, question, _ = screen.text.partition(
        "Import into repo:acme/shop, tester-private? [y/N]"
    )
    assert question
    assert "tester-private" in shown
    assert set(await exported(folklore)) == stored


async def test_a_removed_note_is_forgotten_and_can_be_restored(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    shop = repository_of(tmp_path / "shop", "git@github.com:acme/shop.git")
    folder = claude.notes(
        shop, a="# One\n\nKept.\n\n# Two\n\nRemoved.\n", b="A removed page."
    )
    clone = claude.notes(
        repository_of(tmp_path / "clone", "git@github.com:acme/shop.git"),
        a="Of the clone.",
    )
    metadata = json.dumps(
        {"document": "projects/x/memory/b.md", "import": "claude-memory"}
    )
    await folklore.done(
        "store",
        "Not imported.",
        "-n",
        "repo:acme/shop",
        "--field",
        f"metadata={metadata}",
    )
    await folklore.done("import", claude.root, "--yes")
    (folder / "memory" / "a.md").write_text("# One\n\nKept.\n")
    (folder / "memory" / "b.md").unlink()

    dry = await folklore.json("import", claude.root, "--yes", "--dry-run")
    alone = await folklore.json("import", clone, "--yes")
    report = await folklore.json("import", claude.root, "--yes")
    after = await exported(folklore)
    again = await folklore.json("import", claude.root, "--yes")
    for line in (await exported(folklore, forgotten=True)).values():
        await folklore.done("undo", line["id"])

    assert [counts["removed"] for counts in (dry, alone, report, again)] == [2, 0, 2, 0]
    assert set(after) == {"One\n\nKept.", "Of the clone.", "Not imported."}
    assert len(await exported(folklore)) == 5


async def test_own_notes_and_those_of_projects_are_kept_apart_in_one_namespace(
    folklore: CommandLine, claude: Claude
) -> None:
    claude.notes("/home/somebody/gone", a="Of a project.")
    (claude.root / "CLAUDE.md").write_text("Own.\n")
    (claude.root / "rules").mkdir()
    (claude.root / "rules" / "r.md").write_text("Own rule.\n")
    await folklore.done("import", claude.root, "--namespace", "mine")
    (claude.root / "rules" / "r.md").unlink()

    report = await folklore.json("import", claude.root, "--namespace", "mine")

    assert report["removed"] == 1
    assert set(await exported(folklore)) == {"Of a project.", "Own."}


async def test_two_people_with_folders_of_the_same_name_do_not_overwrite_each_other(
    folklore: CommandLine,
    claude: Claude,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = repository_of(tmp_path / "shop", "git@github.com:acme/shop.git")
    folder = claude.notes(shop, a="# Tests\n\nBy the tester.\n")
    await folklore.done("import", claude.root)
    (folder / "memory" / "a.md").write_text("# Tests\n\nBy another one.\n")
    monkeypatch.setenv("FOLKLORE_AUTHOR", "another")

    report = await folklore.json("import", claude.root)

    assert (report["stored"], report["removed"]) == (1, 0)
    assert set(await exported(folklore)) == {
        "Tests\n\nBy the tester.",
        "Tests\n\nBy another one.",
    }


async def test_a_secret_is_refused_by_file_and_line_without_its_text(
    folklore: CommandLine, claude: Claude, tmp_path: Path
) -> None:
    key = "AKIA" + "Z7QF4M2XN8PLKD3V"
    page = f"---\ntype: project\n---\n# Setup\n\nFirst line.\nSecond line.\nKey: {key}\n\n# Other\n\nGood.\n"
    claude.notes(
        repository_of(tmp_path / "shop", "git@github.com:acme/shop.git"), setup=page
    )

    ran = await folklore("import", claude.root)
    report = await folklore.json("import", claude.root)

    assert (ran.code, report["refused"]) == (0, 1)
    [refusal] = report["refusals"]
    assert refusal["place"].endswith("memory/setup.md:8")
    assert "memory/setup.md:8: content: holds what looks like a secret" in ran.err
    assert key not in ran.err + ran.out + json.dumps(report)
    assert set(await exported(folklore)) == {"Other\n\nGood."}


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("Alice", "alice-private"),
        ("José García", "josé-garcía-private"),
        ("carla <https://login.example.com>", "carla-https-login.example.com-private"),
        ("...", "private"),
        ("x" * 200, f"{'x' * 92}-private"),
    ],
)
def test_the_private_namespace_is_named_after_the_person(
    author: str, name: str
) -> None:
    assert names.private(author) == name == names.normalise(name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/home/me/shop", "-home-me-shop"),
        ("/a b/.c_d", "-a-b--c-d"),
        ("C:\\me", "C--me"),
        ("/😀é", "----"),
    ],
)
def test_a_folder_is_named_as_claude_code_names_it(path: str, name: str) -> None:
    assert encoded(path) == name
