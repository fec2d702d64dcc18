"""`folklore import` with the package folklore-import, and without it."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import folklore as core
import folklore_import
from folklore.importers import FileFormat, installed
from tests.commands import CommandLine, Ran, command_line  # noqa: F401 - the fixture `folklore`

CORE = Path(core.__path__[0])


def test_the_core_names_every_format_of_the_package() -> None:
    [importer] = installed.importers()

    assert tuple(importer.formats) == installed.FORMATS_OF_PACKAGE
    assert installed.format_names() == ["jsonl", *importer.formats]


@pytest.fixture(name="packages")
def packages_without_importers(tmp_path: Path) -> str:
    """Return a search path on which all packages of this environment are but folklore-import."""
    mirror = tmp_path / "packages"
    mirror.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith((folklore_import.__name__, "_editable")):
            (mirror / path.name).symlink_to(path)
    (mirror / CORE.name).unlink(missing_ok=True)
    (mirror / CORE.name).symlink_to(CORE)
    return str(mirror)


def without_importers(folklore: CommandLine, packages: str, *arguments: object) -> Ran:
    """Run a command in an environment that has Folklore and its dependencies alone."""
    program = "import sys; from folklore.__main__ import main; sys.argv[0] = 'folklore'; main()"
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, *map(str, arguments)],
        env=os.environ
        | folklore.environment
        | {"PYTHONPATH": packages, "FOLKLORE_OWN": "1"},
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


async def test_an_export_is_imported_without_the_package(
    folklore: CommandLine, packages: str, tmp_path: Path
) -> None:
    await folklore.keep("We deploy from tags.")
    await folklore.done("export", tmp_path / "all.jsonl")

    there = without_importers(
        folklore, packages, "import", tmp_path / "all.jsonl", "--json"
    )

    assert there.code == 0, there.err
    assert there.json["duplicates"] == 1


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("notes.md", "notes.md is not as `folklore export` writes it"),
        (".", ". is not as `folklore export` writes it"),
        ("git", "git is no file here"),
        ("https://docs.example.com/page", "is no file here"),
        ("all.jsonl --format mem0", "mem0 is read by the package folklore-import"),
    ],
)
def test_what_the_core_does_not_read_names_the_package_and_its_installation(
    folklore: CommandLine,
    packages: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").write_text("# Deploys\n\nFrom tags.\n")
    (tmp_path / "all.jsonl").write_text('{"content": "We deploy from tags."}\n')

    refused = without_importers(folklore, packages, "import", *source.split())

    assert refused.code == 2
    assert says in refused.err
    assert "folklore-import" in refused.err
    assert f"Run: {sys.executable} -m pip install " in refused.err
    assert core.requirement_of_importers() in refused.err


def test_an_environment_without_pip_gets_the_command_of_uv(
    folklore: CommandLine, packages: str
) -> None:
    Path(packages, "pip").unlink()

    refused = without_importers(folklore, packages, "import", "git")

    assert f"Run: uv pip install --python {sys.executable} " in refused.err


def test_a_json_export_of_another_system_names_the_package_when_nothing_was_read(
    folklore: CommandLine, packages: str, tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    file.write_text('{"results": [{"id": "1", "memory": "We deploy from tags."}]}')

    unread = without_importers(folklore, packages, "import", file)

    assert unread.code == 1
    assert "The package folklore-import, which reads other formats" in unread.err
    assert core.requirement_of_importers() in unread.err


async def test_another_package_is_found_by_its_entry_point(
    folklore: CommandLine, packages: str, tmp_path: Path
) -> None:
    """A distribution that this test makes; it reads each line of a text as a memory."""
    distribution = Path(packages, "diary-0.1.dist-info")
    distribution.mkdir()
    (distribution / "METADATA").write_text("Name: diary\nVersion: 0.1\n")
    (distribution / "entry_points.txt").write_text(
        f"[{installed.GROUP}]\ndiary = diary:IMPORTER\n"
    )
    Path(packages, "diary.py").write_text(DIARY)
    (tmp_path / "may.diary").write_text("We deploy from tags.\n")

    read = without_importers(
        folklore, packages, "import", tmp_path / "may.diary", "--json"
    )

    assert read.code == 0, read.err
    assert read.json["format"] == "diary"
    assert read.json["stored"] == 1
    assert "diary" in without_importers(folklore, packages, "import", "--help").out


def test_an_importer_whose_module_is_missing_is_named(
    folklore: CommandLine, packages: str, tmp_path: Path
) -> None:
    distribution = Path(packages, "diary-0.1.dist-info")
    distribution.mkdir()
    (distribution / "METADATA").write_text("Name: diary\nVersion: 0.1\n")
    (distribution / "entry_points.txt").write_text(
        f"[{installed.GROUP}]\ndiary = diary:IMPORTER\n"
    )
    (tmp_path / "lines.jsonl").write_text('{"content": "We deploy from tags."}\n')

    refused = without_importers(
        folklore, packages, "import", tmp_path / "lines.jsonl", "--json"
    )

    assert refused.code == 2
    assert "the importer diary is installed in part only" in refused.err


DIARY = """
import json
from folklore.contract.lines import SourceLine
from folklore.importers import FileFormat, Importer

def lines(source):
    for number, line in enumerate(source, start=1):
        yield SourceLine(number, json.dumps({"content": line.decode()}).encode())

IMPORTER = Importer(
    formats={"diary": FileFormat(lines)},
    recognise=lambda source: "diary" if source.endswith(".diary") else None,
    check=lambda form, source: None,
    describe=lambda path: None,
)
"""


def test_standard_input_may_have_each_format_of_a_file() -> None:
    of_files = [
        name
        for name, form in installed.formats().items()
        if isinstance(form, FileFormat)
    ]

    assert of_files == ["jsonl", "mcp-memory-json", "mem0", "mcp-memory-service"]
