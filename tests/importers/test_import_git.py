"""Import of a repository's history, its decision records, and how to contribute to it."""

import subprocess
from pathlib import Path

import pytest

from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.importers.test_import_claude import exported, repositories_end_here  # noqa: F401 - a fixture
from tests.repositories import repository_of

REASON = (
    "The gateway answers 202 before the booking is written, so a second call within\n"
    "a second creates a second shipment. Wait for the callback instead."
)


def commit(
    root: Path, file: str, message: str, *, author: str = "Ann <ann@acme.example>"
) -> str:
    """Commit a change of a file, and return the commit's id."""
    (root / file).parent.mkdir(parents=True, exist_ok=True)
    with (root / file).open("a") as text:
        text.write(f"{message}\n")
    for arguments in (
        ["add", file],
        ["commit", "-q", "-m", message, "--author", author],
        ["rev-parse", "HEAD"],
    ):
        done = subprocess.run(
            ["git", "-c", "user.name=Ann", "-c", "user.email=ann@acme.example", "-C", str(root), *arguments],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    return done.stdout.strip()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository whose history has reasons, and lines without."""
    root = repository_of(tmp_path / "shop", "git@github.com:acme/shop.git")
    commit(root, "README.md", "Add a readme")
    commit(
        root,
        "lib.py",
        f"Bump a library\n\n{REASON}",
        author="renovate[bot] <bot@acme.example>",
    )
    commit(
        root,
        "ship.py",
        "Squash\n\n* wip\n* fix the test that was broken yesterday\n* more\n"
        + "* tidy up\n" * 20,
    )
    commit(root, "doc/adr/0001-queue.md", "Record a decision")
    (root / "doc/adr/0001-queue.md").write_text(
        "# Use arq\n\nRedis is there already.\n"
    )
    (root / "CONTRIBUTING.md").write_text("# Tests\n\nRun make test.\n")
    return root


async def test_reasons_reverts_and_records_become_memories_tied_to_commit_and_files(
    folklore: CommandLine, shop: Path
) -> None:
    fix = commit(
        shop,
        "ship.py",
        f"Fix double bookings\n\n{REASON}\n\nSigned-off-by: Ann <ann@acme.example>\n",
    )
    revert = commit(
        shop, "ship.py", f'Revert "Fix double bookings"\n\nThis reverts commit {fix}.'
    )

    shown = await folklore.json("import", shop, "--format", "git", "--dry-run")
    report = await folklore.json("import", shop, "--format", "git")
    again = await folklore.json("import", shop, "--format", "git")
    (shop / "AGENTS.md").write_text("# Style\n\nUse ruff.\n")
    # which forgets no page of the other
    rules = await folklore.json("import", shop, "--format", "rules")
    memories = await exported(folklore)

    assert shown["titles"] == ['Revert "Fix double bookings"', "Fix double bookings"]
    assert (
        shown["stored"],
        report["stored"],
        again["stored"],
        again["overwritten"],
    ) == (4, 4, 0, 0)
    assert (rules["stored"], rules["removed"]) == (1, 0)
    assert {line["namespace"] for line in memories.values()} == {"repo:acme/shop"}
    bug = memories[f"Fix double bookings\n\n{REASON}"]
    assert bug["cues"] == ["Fix double bookings"]
    assert (bug["kind"], bug["commit"], bug["paths"], bug["source"]) == (
        "bug",
        fix,
        ["ship.py"],
        f"commit {fix[:12]}",
    )
    assert (
        memories[f'Revert "Fix double bookings"\n\nThis reverts commit {fix}.'][
            "commit"
        ]
        == revert
    )
    assert memories["Tests\n\nRun make test."]["cues"] == ["Tests"]
    record = memories["Use arq\n\nRedis is there already."]
    assert (record["kind"], record["paths"]) == ("decision", ["doc/adr/0001-queue.md"])
    assert memories["Tests\n\nRun make test."]["kind"] == "procedural"


async def test_a_folder_outside_a_repository_has_no_history(
    folklore: CommandLine, tmp_path: Path
) -> None:
    assert (
        "is in no git repository"
        in (await folklore("import", tmp_path, "--format", "git")).err
    )
