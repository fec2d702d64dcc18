"""What the documents tell people to do exists, and can be done."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import folklore
from folklore.cli.main import cli
from folklore.config import Settings
from tests.test_config import every_setting

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def commands(text: str) -> list[str]:
    """The lines of its code blocks for a shell."""
    blocks = re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_the_readme_says_how_to_run_and_how_to_test() -> None:
    assert "make run" in commands(README)
    assert "make test" in commands(README)


def test_the_makefile_finds_which_wordllama_is_wanted() -> None:
    [named] = [line for line in PROJECT["project"]["dependencies"] if line.startswith("wordllama")]
    database = subprocess.run(["make", "-pn", "clean"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert f"MODEL := {named}" in database.splitlines()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_in_documents_exist(document: Path) -> None:
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake (\w+)\b", "\n".join(commands(document.read_text(encoding="utf-8")))))

    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_folklore_commands_in_documents_exist(document: Path) -> None:
    context = cli.make_context("folklore", ["doctor"], resilient_parsing=True)
    known = set(cli.list_commands(context))
    named = {
        found[1]
        for line in commands(document.read_text(encoding="utf-8"))
        if (found := re.match(r"(?:\S*/)?folklore ((?!-)\w+)", line))
    }

    assert named <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_settings_in_documents_exist(document: Path) -> None:
    known = {f"FOLKLORE_{name.upper().replace('.', '__')}" for name in every_setting(Settings)} | {"FOLKLORE_CONFIG"}
    named = set(re.findall(r"\bFOLKLORE_[A-Z_]*[A-Z]\b", document.read_text(encoding="utf-8")))

    assert named <= known


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_in_documents_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (document.parent / link).exists()]

    assert broken == []


def test_one_version_stands_everywhere() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[?([^\]\s]+)", changes, re.MULTILINE)[0]

    assert PROJECT["project"]["version"] == folklore.__version__
    assert newest in ("Unreleased", folklore.__version__)


def test_the_package_carries_its_sql_its_types_and_its_licence() -> None:
    assert (ROOT / "server" / "folklore" / "py.typed").exists()
    assert list((ROOT / "server" / "folklore" / "db" / "sql").glob("*/*.sql"))
    assert list((ROOT / "server" / "folklore" / "db" / "migrations").glob("*.sql"))
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").lstrip().startswith("Apache License")
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"/tests", "/schema.sql", "/config.example.yaml"} <= set(included)
