"""Documents name commands, options, settings, files and headings that exist."""

import re
import shlex
import tomllib
from pathlib import Path

import click
import pytest

import folklore
from folklore.cli.main import cli
from folklore.config import Settings
from tests import ROOT
from tests.commands import CommandLine, command_line  # noqa: F401 - the fixture `folklore`
from tests.test_config import every_setting

README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "AGENTS.md",
    ROOT / "benchmarks" / "RESULTS.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

_SOURCES = {".py", ".sql", ".yaml", ".yml", ".conf", ".service", ".example", ".mjs", ""}
# Paths of memories in tests.
_EXAMPLES = {
    f"docs/{name}.md"
    for name in ("a_b", "axb", "billing", "release", "twice", "x", "1000")
}

every_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT))
)
written_documents = pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if path.parent.name != "reference"],
    ids=lambda path: str(path.relative_to(ROOT)),
)


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "AGENTS.md"])
def test_the_files_that_a_change_is_made_in_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+(?:/|\.(?:py|sql|yaml|json|md)))`", text))
    folders = [ROOT, ROOT / "server" / "folklore", ROOT / "import" / "folklore_import"]

    missing = [
        name
        for name in sorted(named - {"db/migrations/NNNN_name.sql"})
        if not any((folder / name).exists() for folder in folders)
    ]
    assert missing == []


def commands(text: str) -> list[str]:
    """Return the lines of the code blocks for a shell."""
    blocks = re.findall(r"```(?:sh|bash|console)\n(.*?)```", text, re.DOTALL)
    lines = [
        re.sub(r"\s+#.*", "", line).strip()
        for block in blocks
        for line in block.splitlines()
    ]
    return [line for line in lines if line]


def folklore_commands(text: str) -> list[list[str]]:
    """Return the arguments of each call of `folklore`, without variables before it; a pipe has several programs."""
    programs = [part for line in commands(text) for part in line.split(" | ")]
    calls = [re.sub(r"^(\w+=\S* +)*", "", program) for program in programs]
    return [
        shlex.split(call)[1:] for call in calls if re.match(r"(\S*/)?folklore\s", call)
    ]


def unknown_word(words: list[str]) -> str | None:
    """Return the first command or option that does not exist."""
    command: click.Command = cli
    for word in words:
        if word.startswith("-") and word != "-":
            options = {
                name
                for parameter in command.params
                for name in (*parameter.opts, *parameter.secondary_opts)
            }
            everywhere = {"--server", "--token", "--debug", "--help"}
            if word.partition("=")[0] not in options | everywhere:
                return word
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return word
            command = found
    return None


def anchors(document: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ +(.*)$", document.read_text(encoding="utf-8"), re.MULTILINE
    )
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in headings
    }


def test_the_readme_shows_how_to_run_and_how_to_test() -> None:
    assert "make run" in commands(README)
    assert "make test" in commands(README)


@every_document
def test_make_targets_in_documents_exist(document: Path) -> None:
    targets = set(
        re.findall(
            r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    named = set(
        re.findall(
            r"\bmake ([\w-]+)",
            "\n".join(commands(document.read_text(encoding="utf-8"))),
        )
    )

    assert named <= targets


@written_documents
def test_folklore_commands_and_options_in_documents_exist(document: Path) -> None:
    calls = folklore_commands(document.read_text(encoding="utf-8"))

    assert [word for words in calls if (word := unknown_word(words))] == []


@every_document
def test_settings_in_documents_exist(document: Path) -> None:
    known = {
        f"FOLKLORE_{name.upper().replace('.', '__')}"
        for name in every_setting(Settings)
    }
    known |= {
        "FOLKLORE_CONFIG",
        "FOLKLORE_OWN",
        "FOLKLORE_INVITATION",
    }  # these choose the settings and the process, or are of one command, and are none themselves
    named = set(
        re.findall(r"\bFOLKLORE_[A-Z_]*[A-Z]\b", document.read_text(encoding="utf-8"))
    )

    assert named <= known


@every_document
def test_links_in_documents_lead_to_a_file_and_a_heading(document: Path) -> None:
    links = re.findall(
        r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", document.read_text(encoding="utf-8")
    )
    broken = []
    for path, anchor in links:
        target = document.parent / path if path else document
        if "://" not in path and (
            not target.exists() or (anchor and anchor not in anchors(target))
        ):
            broken.append(f"{path}#{anchor}")

    assert broken == []


@pytest.mark.parametrize("folder", ["how-to", "reference", "explanation"])
def test_the_index_lists_every_document(folder: str) -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    documents = {
        path.relative_to(ROOT / "docs").as_posix()
        for path in (ROOT / "docs" / folder).glob("*.md")
    }

    assert {name for name in documents if f"]({name})" not in index} == set()


@pytest.mark.parametrize(
    "name", ["server", "deploy", "benchmarks", "tests", "Makefile"]
)
def test_documents_that_code_refers_to_exist(name: str) -> None:
    place = ROOT / name
    files = (
        [
            path
            for path in place.rglob("*")
            if path.is_file() and path.suffix in _SOURCES
        ]
        if place.is_dir()
        else [place]
    )
    named = {
        found
        for path in files
        if path != Path(__file__)
        for found in re.findall(r"\bdocs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }

    assert {
        found for found in named - _EXAMPLES if not (ROOT / found).is_file()
    } == set()


async def test_the_commands_of_the_tutorial_work(folklore: CommandLine) -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    stored = re.search(r"^stored \S+(\S{8}) in shop$", tutorial, re.MULTILINE)
    assert stored is not None
    example = stored[1]  # the end of the first memory's id, as the tutorial has it
    first = ""

    for words in folklore_commands(tutorial):
        if words[0] != "db":  # the embedded Postgres is not that of this test
            shown = await folklore.done(
                *(first if word == example else word for word in words)
            )
            first = first or shown.split()[1]

    memories = (await folklore.json("list", "--namespace", "shop"))["memories"]
    assert {memory["content"] for memory in memories} == {
        "We deploy from tags, never from a branch.",
        "We deploy from the release branch, never from main.",  # after the undo
    }


def test_package_and_project_have_the_same_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[?([^\]\s]+)", changes, re.MULTILINE)[0]

    assert PROJECT["project"]["version"] == folklore.__version__
    assert newest in ("Unreleased", folklore.__version__)


def test_the_package_includes_its_sql_its_types_and_its_licence() -> None:
    assert (ROOT / "server" / "folklore" / "py.typed").exists()
    assert list((ROOT / "server" / "folklore" / "db" / "stores").glob("*.sql"))
    assert (
        (ROOT / "LICENSE")
        .read_text(encoding="utf-8")
        .lstrip()
        .startswith("Apache License")
    )
    included = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {"/tests", "/schema.sql"} <= set(included)
    moved = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert moved["schema.sql"] == "folklore/db/schema.sql"
