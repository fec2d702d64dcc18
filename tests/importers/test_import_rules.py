"""Import of rules for assistants and of Markdown pages: to the right namespace, updated by a repeated import."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.importers.test_import_claude import (
    exported,
    places,
    repositories_end_here,  # noqa: F401 - a fixture
)
from tests.repositories import repository_of


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with rules for every assistant."""
    root = repository_of(tmp_path / "shop", "git@github.com:acme/shop.git")
    for folder in (
        ".cursor/rules/api",
        ".claude/rules",
        ".github/instructions",
        "web/.cursor/rules",
        "node_modules/x",
    ):
        (root / folder).mkdir(parents=True)
    (root / "AGENTS.md").write_text("Intro.\n\n# Build\n\nRun make.\n")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / "GEMINI.md").write_text("Gemini rule.\n")
    (root / "CLAUDE.local.md").write_text("My sandbox is on port 1234.\n")
    (root / "README.md").write_text("No rule.\n")
    (root / ".cursorrules").write_text("Old rule.\n")
    (root / ".cursor/rules/api/rest.mdc").write_text(
        "---\ndescription: REST endpoints\nglobs: **/*.ts,src/api/*.py\nalwaysApply: false\n---\n# REST\n\nUse nouns.\n"
    )
    (root / "web/.cursor/rules/css.mdc").write_text(
        "---\nglobs: ['*.css', '*.scss']\n---\nUse variables.\n"
    )
    (root / ".claude/rules/tests.md").write_text(
        "---\npaths:\n  - tests/**\n---\nName behaviours.\n"
    )
    (root / ".github/copilot-instructions.md").write_text("Copilot rule.\n")
    (root / ".github/instructions/py.instructions.md").write_text(
        "---\napplyTo: '**.py'\n---\nUse ruff.\n"
    )
    (root / "node_modules/x/AGENTS.md").write_text("Of a package.\n")
    return root


async def test_rules_of_a_repository_go_to_its_namespace_and_own_ones_stay_private(
    folklore: CommandLine, shop: Path
) -> None:
    refused = await folklore("import", shop)
    report = await folklore.json("import", shop, "--yes")
    found = await exported(folklore)

    assert refused.code == 2
    assert {content for content, line in found.items() if line["namespace"] == "repo:acme/shop"} == {
        "Intro.", "Build\n\nRun make.", "Gemini rule.", "Old rule.", "REST\n\nUse nouns.", "Use variables.",
        "Name behaviours.", "Copilot rule.", "Use ruff.",
    }  # fmt: skip
    assert found["My sandbox is on port 1234."]["namespace"] == "tester-private"
    assert len(found) == 10
    assert report["skipped"] == {"another name of a page": 1}
    assert report["ignored_fields"] == {}
    rest = found["REST\n\nUse nouns."]
    assert (rest["kind"], rest["tags"], rest["summary"]) == (
        "procedural",
        ["rules"],
        "REST endpoints",
    )
    assert rest["cues"] == ["REST", "REST endpoints"]
    assert rest["source"] == ".cursor/rules/api/rest.mdc#REST"
    assert rest["metadata"] == {
        "alwaysApply": False, "document": ".cursor/rules/api/rest.mdc", "globs": "**/*.ts,src/api/*.py",
        "import": "rules repo:acme/shop",
    }  # fmt: skip
    assert found["Use variables."]["metadata"]["globs"] == ["*.css", "*.scss"]
    assert found["Name behaviours."]["metadata"]["paths"] == ["tests/**"]
    assert found["Use ruff."]["metadata"]["applyTo"] == "**.py"


async def test_another_clone_updates_the_same_memories(
    folklore: CommandLine, shop: Path, tmp_path: Path
) -> None:
    await folklore.done("import", shop, "--yes")
    before = await exported(folklore)
    clone = repository_of(tmp_path / "elsewhere", "https://github.com/acme/shop.git")
    (clone / "AGENTS.md").write_text("Intro.\n\n# Build\n\nRun make all.\n")

    report = await folklore.json("import", clone / "AGENTS.md")
    after = await exported(folklore)

    assert (
        report["format"],
        report["overwritten"],
        report["stored"],
        report["removed"],
    ) == ("rules", 1, 0, 0)
    assert after["Build\n\nRun make all."]["id"] == before["Build\n\nRun make."]["id"]


async def test_removed_sections_and_files_are_forgotten_and_unreadable_files_are_kept(
    folklore: CommandLine, shop: Path
) -> None:
    await folklore.done("import", shop, "--yes")
    (shop / "AGENTS.md").write_text("# Build\n\nRun make.\n")
    (shop / "GEMINI.md").unlink()
    (shop / ".cursorrules").write_bytes(b"Old rule, \xff broken.\n")

    skipped = await folklore("import", shop, "--yes", "--on-conflict", "skip", "--json")
    ran = await folklore("import", shop, "--yes", "--json")

    assert skipped.json["removed"] == 0
    assert (ran.code, ran.json["removed"], ran.json["failed"]) == (1, 2, 1)
    assert ran.json["failures"][0]["message"].startswith(".cursorrules: is not UTF-8.")
    left = await exported(folklore)
    assert "Old rule." in left
    assert set(await exported(folklore, forgotten=True)) == {"Intro.", "Gemini rule."}


async def test_a_section_that_is_back_in_its_page_is_in_force_again(
    folklore: CommandLine, shop: Path
) -> None:
    page = shop / "AGENTS.md"
    whole = page.read_text()
    for text in (whole, "# Build\n\nRun make.\n", whole):
        page.write_text(text)
        await folklore.done("import", page)

    assert set(await exported(folklore)) == {"Intro.", "Build\n\nRun make."}
    assert await exported(folklore, forgotten=True) == {}


async def test_own_notes_on_a_repository_are_no_pages_of_it(
    folklore: CommandLine, shop: Path
) -> None:
    await folklore.done("import", shop, "--format", "markdown", "--namespace", "wiki")

    assert set(await exported(folklore)) == {
        "Intro.", "Build\n\nRun make.", "Gemini rule.", "No rule.",
    }  # fmt: skip


async def test_a_page_that_was_renamed_is_stored_under_its_new_name(
    folklore: CommandLine, tmp_path: Path
) -> None:
    pages = tmp_path / "wiki"
    pages.mkdir()
    (pages / "old.md").write_text("# Deploy\n\nFrom tags.\n")
    (pages / "kept.md").write_text("# Other\n\nText.\n")
    await folklore.done("import", pages, "--format", "markdown")
    (pages / "old.md").rename(pages / "new.md")

    dry = await folklore.json("import", pages, "--format", "markdown", "--dry-run")
    report = await folklore.json("import", pages, "--format", "markdown")
    found = await exported(folklore)

    assert dry["removed"] == 1
    assert (report["removed"], report["stored"], report["duplicates"]) == (1, 1, 1)
    assert found["Deploy\n\nFrom tags."]["source"] == "new.md#Deploy"


async def test_a_part_of_the_pages_forgets_only_its_own(
    folklore: CommandLine, tmp_path: Path
) -> None:
    pages = tmp_path / "wiki"
    (pages / "ops").mkdir(parents=True)
    (pages / "ops2").mkdir()
    for name in ("ops/a", "ops/b", "ops2/c", "d"):
        (pages / f"{name}.md").write_text(f"Page {name}.\n")
    subprocess.run(
        ["git", "-C", str(pages), "init", "--quiet"],
        check=True,
        capture_output=True,
        timeout=20,
    )
    await folklore.done("import", pages, "--format", "markdown")
    for name in ("ops/a", "ops2/c", "d"):
        (pages / f"{name}.md").unlink()

    report = await folklore.json("import", pages / "ops", "--format", "markdown")

    assert report["removed"] == 1
    assert set(await exported(folklore, forgotten=True)) == {"Page ops/a."}


async def test_two_folders_of_the_same_name_do_not_touch_each_other(
    folklore: CommandLine, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "docs" / "index.md").write_text(f"# Start\n\nOf {name}.\n")
        await folklore.done("import", tmp_path / name / "docs", "--format", "markdown")

    assert set(await exported(folklore)) == {"Start\n\nOf one.", "Start\n\nOf two."}


async def test_rules_outside_a_repository_need_a_namespace(
    folklore: CommandLine, tmp_path: Path
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("A rule.\n")

    refused = await folklore("import", folder)
    named = await folklore.json("import", folder, "--namespace", "mine")

    assert refused.code == 2
    assert f"{folder} is in no git repository" in refused.err
    assert named["namespaces"] == {"mine": 1}


async def test_links_out_of_the_repository_other_repositories_and_pipes_are_left_out(
    folklore: CommandLine, shop: Path, tmp_path: Path
) -> None:
    (tmp_path / "private.md").write_text("Of this user.\n")
    (shop / "web" / "AGENTS.md").symlink_to(tmp_path / "private.md")
    (shop / "loop").mkdir()
    (shop / "loop" / "AGENTS.md").symlink_to("AGENTS.md")
    (shop / "loop" / "again").symlink_to("..")
    (shop / "pipe").mkdir()
    os.mkfifo(shop / "pipe" / "AGENTS.md")
    module = repository_of(shop / "module", "git@github.com:acme/module.git")
    (module / "AGENTS.md").write_text("Of a submodule.\n")
    worktree = shop / ".claude" / "worktrees" / "topic"
    worktree.mkdir(parents=True)
    (worktree / ".git").write_text("gitdir: elsewhere\n")
    (worktree / "AGENTS.md").write_text("Of a worktree.\n")

    ran = await folklore("import", shop, "--yes", "--json")
    contents = set(await exported(folklore))

    assert ran.json["skipped"] == {
        "another name of a page": 1, "link out of the folder": 1, "no ordinary file": 1,
    }  # fmt: skip
    assert [failure["place"] for failure in ran.json["failures"]] == ["loop/AGENTS.md"]
    assert not contents & {
        "Of this user.",
        "Of a submodule.",
        "Of a worktree.",
        "Of a package.",
    }


async def test_a_folder_of_pages_is_found_to_be_markdown_and_goes_to_the_project(
    folklore: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "wiki" / "below").mkdir(parents=True)
    (tmp_path / "wiki" / "below" / "AGENTS.md").write_text("A page.\n")

    assert (await folklore.json("import", tmp_path / "wiki"))["format"] == "markdown"
    assert await places(folklore) == {"A page.": "notes"}


async def test_front_matter_that_unfolds_to_gigabytes_is_read_in_constant_space(
    folklore: CommandLine, shop: Path
) -> None:
    lists = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lists += [
        f"{name}: &{name} [{', '.join([f'*{chr(ord(name) - 1)}'] * 10)}]"
        for name in "bcdefghi"
    ]
    fields = [
        f"{name}: *i" for name in ("globs", "tags", "title", "description", "kind")
    ]
    (shop / "AGENTS.md").write_text(
        "\n".join(["---", *lists, *fields, "---", "Text.\n"])
    )

    report = await folklore.json("import", shop / "AGENTS.md")

    assert report["stored"] == 1
    assert (await exported(folklore))["Text."]["kind"] == "procedural"


async def test_a_repeated_import_keeps_the_cues_that_a_section_got_since(
    folklore: CommandLine, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Berths\n\nMoor at the mole.\n")
    await folklore.done("import", page, "--namespace", "notes")
    known = "Berths\n\nMoor at the mole."
    await folklore.done("store", known, "-n", "notes", "--cue", "tie a boat")

    same = await folklore.json("import", page, "--namespace", "notes")
    page.write_text("# Berths\n\nMoor at the quay.\n")
    changed = await folklore.json("import", page, "--namespace", "notes")

    assert (same["overwritten"], changed["overwritten"]) == (0, 1)
    [line] = (await exported(folklore)).values()
    assert (line["content"], line["cues"]) == (
        "Berths\n\nMoor at the quay.",
        ["Berths", "tie a boat"],
    )
