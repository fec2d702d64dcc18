"""Release files: one version everywhere, a registry entry and a bundle by their formats, a workflow of make targets."""

import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from folklore import SOURCE, pip_install
from folklore.cli.main import cli
from folklore.config import Settings
from tests import ROOT, release
from tests.test_config import every_setting

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IMPORTERS = tomllib.loads(
    (ROOT / "import" / "pyproject.toml").read_text(encoding="utf-8")
)
SERVER = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
BUNDLE = ROOT / "deploy" / "mcpb"
MANIFEST = json.loads((BUNDLE / "manifest.json").read_text(encoding="utf-8"))
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(
    (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
)

TEXT = {"type": "string", "minLength": 1}
INPUT: dict[str, Any] = {
    "description": TEXT,
    "isRequired": {"type": "boolean"},
    "isSecret": {"type": "boolean"},
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
    "value": TEXT,
    "default": TEXT,
    "placeholder": TEXT,
    "choices": {"type": "array", "items": TEXT},
}
VARIABLES = {
    "type": "object",
    "additionalProperties": {"properties": INPUT, "additionalProperties": False},
}
NAMED = {
    "type": "array",
    "items": {
        "properties": INPUT | {"name": TEXT, "variables": VARIABLES},
        "required": ["name"],
        "additionalProperties": False,
    },
}
ARGUMENTS = {
    "type": "array",
    "items": {
        "properties": INPUT
        | {
            "type": {"enum": ["positional", "named"]},
            "name": TEXT,
            "valueHint": TEXT,
            "isRepeated": {"type": "boolean"},
            "variables": VARIABLES,
        },
        "required": ["type"],
        "additionalProperties": False,
        "if": {"properties": {"type": {"const": "positional"}}},
        "then": {"anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}]},
        "else": {"required": ["name"]},
    },
}
VERSION = {
    "type": "string",
    "minLength": 1,
    "maxLength": 255,
    "pattern": r"^\d+\.\d+\.\d+[0-9A-Za-z.+-]*$",
}
# The registry's format of 2025-12-11 and what the official registry asks beyond it, narrowed to what Folklore uses.
REGISTRY_ENTRY = {
    "type": "object",
    "properties": {
        "$schema": {
            "const": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
        },
        "name": {
            "pattern": r"^[a-z0-9]+(\.[a-z0-9-]+)+/[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$",
            "maxLength": 200,
        },
        "title": {"type": "string", "minLength": 1, "maxLength": 100},
        "description": {"type": "string", "minLength": 1, "maxLength": 100},
        "version": VERSION,
        "websiteUrl": {"type": "string", "pattern": "^https://"},
        "repository": {
            "properties": {
                "url": {"pattern": "^https://"},
                "source": TEXT,
                "id": TEXT,
                "subfolder": TEXT,
            },
            "required": ["url", "source"],
            "additionalProperties": False,
        },
        "packages": {
            "type": "array",
            "items": {
                "properties": {
                    "registryType": {"const": "pypi"},
                    "registryBaseUrl": {"const": "https://pypi.org"},
                    "identifier": TEXT,
                    "version": VERSION,
                    "runtimeHint": {"const": "uvx"},
                    "runtimeArguments": ARGUMENTS,
                    "packageArguments": ARGUMENTS,
                    "environmentVariables": NAMED,
                    "transport": {
                        "properties": {"type": {"const": "stdio"}},
                        "required": ["type"],
                        "additionalProperties": False,
                    },
                },
                "required": ["registryType", "identifier", "version", "transport"],
                "additionalProperties": False,
            },
        },
        "remotes": {
            "type": "array",
            "items": {
                "properties": {
                    "type": {"enum": ["streamable-http", "sse"]},
                    # The registry parses the address: its scheme may not be a variable.
                    "url": {"type": "string", "pattern": r"^https://[^\s]+$"},
                    "headers": NAMED,
                    "variables": VARIABLES,
                },
                "required": ["type", "url"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["$schema", "name", "description", "version"],
    "additionalProperties": False,
}


def named(requirement: str) -> str:
    """The name of a requirement in its normal spelling."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def targets() -> set[str]:
    return set(re.findall(r"^([\w-]+):(?!=)", MAKEFILE, re.MULTILINE))


def steps() -> list[dict[str, Any]]:
    return [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def copied(folder: Path) -> Path:
    """Copy the files of a release, so that a test may change them."""
    for path in (
        *release.places(),
        *(ROOT / name for name in (release.CHANGELOG, *release.COMMANDS)),
    ):
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    return folder


def test_all_files_hold_one_version() -> None:
    assert {
        name: said
        for name, said in release.versions().items()
        if said != {PROJECT["project"]["version"]}
    } == {}
    assert release.versions().keys() >= {
        "pyproject.toml",
        "import/pyproject.toml",
        "server.json",
        "deploy/mcpb/manifest.json",
    }


def test_a_new_version_reaches_every_file_and_dates_the_changelog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", copied(tmp_path))
    before = {path: path.read_text(encoding="utf-8") for path in release.places()}

    release.set_version("9.8.7")

    assert release.faults("v9.8.7") == []
    assert "First version." in release.notes("9.8.7")
    old = PROJECT["project"]["version"]
    for path, text in before.items():
        assert path.read_text(encoding="utf-8").replace("9.8.7", old) == text.replace(
            SOURCE, ""
        )
    for name in release.COMMANDS:
        assert pip_install() in (ROOT / name).read_text(
            encoding="utf-8"
        ) or name.endswith("__init__.py")
        assert "git+https" not in (tmp_path / name).read_text(encoding="utf-8")


def test_a_release_is_refused_with_every_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "ROOT", copied(tmp_path))

    found = "\n".join(release.faults("9.9.9", owner="Somebody"))

    assert "must be v and a version" in found
    assert "pyproject.toml must hold version 9.9.9, has 0.1.0." in found
    assert "CHANGELOG.md has no notes on 9.9.9" in found
    assert "admits io.github.somebody" in found
    with pytest.raises(ValueError, match="three numbers"):
        release.set_version("next")


def test_the_registry_entry_has_the_registrys_format() -> None:
    Draft202012Validator.check_schema(REGISTRY_ENTRY)

    assert list(Draft202012Validator(REGISTRY_ENTRY).iter_errors(SERVER)) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("description", "x" * 101),
        ("version", "^0.1"),
        ("name", "folklore"),
        ("status", "active"),
    ],
)
def test_the_format_refuses_what_the_registry_refuses(field: str, value: str) -> None:
    assert not Draft202012Validator(REGISTRY_ENTRY).is_valid({**SERVER, field: value})


def test_the_package_on_pypi_and_the_image_prove_to_be_of_the_registry_entry() -> None:
    readme = (ROOT / PROJECT["project"]["readme"]).read_text(encoding="utf-8")
    container = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")

    assert f"<!-- mcp-name: {SERVER['name']} -->" in readme.splitlines()
    assert f'io.modelcontextprotocol.server.name="{SERVER["name"]}"' in container
    [package] = SERVER["packages"]
    assert package["identifier"] == PROJECT["project"]["name"]


def test_the_registry_entry_starts_a_command_that_exists_with_settings_that_exist() -> (
    None
):
    [package] = SERVER["packages"]
    settings = {
        f"FOLKLORE_{name.upper().replace('.', '__')}"
        for name in every_setting(Settings)
    }

    # uvx runs the program of the distribution's name.
    programs = PROJECT["project"]["scripts"]
    assert programs[package["identifier"]] == programs["folklore"]
    result = CliRunner().invoke(
        cli,
        [*(argument["value"] for argument in package["packageArguments"]), "--help"],
    )
    assert result.exit_code == 0
    assert {
        variable["name"] for variable in package["environmentVariables"]
    } <= settings


def test_every_variable_of_a_remote_is_declared() -> None:
    for remote in SERVER["remotes"]:
        assert set(re.findall(r"{(\w+)}", remote["url"])) == remote["variables"].keys()
        for header in remote["headers"]:
            assert (
                set(re.findall(r"{(\w+)}", header.get("value", "")))
                == header.get("variables", {}).keys()
            )


def test_the_bundle_hands_every_field_to_its_server() -> None:
    environment = MANIFEST["server"]["mcp_config"]["env"]
    wanted = set(
        re.findall(
            r'"(FOLKLORE_\w+)"', (BUNDLE / "server.py").read_text(encoding="utf-8")
        )
    )
    fields = MANIFEST["user_config"]

    assert wanted == environment.keys()
    assert {f"${{user_config.{name}}}" for name in fields} == set(environment.values())
    assert all(
        field["required"] is False and field["default"] == ""
        for field in fields.values()
    )
    assert [name for name, field in fields.items() if field.get("sensitive")] == [
        "token"
    ]
    assert (BUNDLE / MANIFEST["server"]["entry_point"]).exists()
    assert (
        MANIFEST["compatibility"]["runtimes"]["python"]
        == PROJECT["project"]["requires-python"]
    )


def test_an_empty_field_of_the_bundle_means_the_memory_of_this_machine(
    tmp_path: Path,
) -> None:
    # A client hands an empty field over as an empty text or as its placeholder.
    entered = {
        "FOLKLORE_SERVER": "${user_config.server}",
        "FOLKLORE_TOKEN": "",
        "FOLKLORE_NAMESPACE": "",
    }
    environment = {**os.environ, **entered, "FOLKLORE_HOME": str(tmp_path)}

    # Its client has gone before it said a word.
    ran = subprocess.run(
        [sys.executable, BUNDLE / "server.py"],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )

    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


def test_the_wheel_holds_the_package_and_nothing_else(tmp_path: Path) -> None:
    build = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        "wheel",
        "--directory",
        str(tmp_path),
    ]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "server" / "folklore"
    needed = {
        f"folklore/{path.relative_to(source).as_posix()}"
        for path in source.rglob("*")
        if path.is_file()
        and path.suffix
        in (
            ".py",
            ".sql",
            ".tsv",
            ".txt",
            ".typed",
            ".yaml",
            ".json",
            ".html",
            ".css",
            ".js",
            ".svg",
        )
    }

    assert needed <= names
    assert "folklore/config.example.yaml" in names
    forced = tuple(
        PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
        .get("force-include", {})
        .values()
    )
    others = {
        name
        for name in names - needed
        if ".dist-info/" not in name and not name.startswith(forced or ("\0",))
    }
    assert others == set()
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert wheel.name.endswith("-py3-none-any.whl")


def test_the_wheel_of_importers_holds_its_package_and_names_its_importer(
    tmp_path: Path,
) -> None:
    folder = ROOT / "import"
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    [wheel] = tmp_path.glob("folklore_import-*-py3-none-any.whl")
    [source] = tmp_path.glob("folklore_import-*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        [entry_points] = [name for name in names if name.endswith("entry_points.txt")]
        entries = archive.read(entry_points).decode()
    with tarfile.open(source) as archive_of_source:
        in_source = {name.partition("/")[2] for name in archive_of_source.getnames()}
    needed = {
        path.relative_to(folder).as_posix()
        for path in (folder / "folklore_import").rglob("*")
        if path.suffix in (".py", ".typed")
    }

    assert {name for name in names if ".dist-info/" not in name} == needed
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert "[folklore.importers]" in entries
    assert {*needed, "LICENSE", "README.md", "pyproject.toml"} <= in_source
    licence = (folder / "LICENSE").read_bytes()
    assert licence == (ROOT / "LICENSE").read_bytes()


def test_the_container_builds_from_all_that_the_wheel_needs() -> None:
    container = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
    kept = (
        (ROOT / "deploy" / "Containerfile.dockerignore")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    forced = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"].get(
        "force-include", {}
    )

    sources = {
        source
        for line in container.splitlines()
        if line.startswith("COPY ")
        for source in line.split()[1:-1]
    }

    for name in ("server", "import", *forced):
        assert name in sources
        assert f"!{name}" in kept


def uses(node: ast.AST) -> set[str]:
    """The modules that a statement or an expression imports, looks for, or runs with `-m`."""
    match node:
        case ast.Import():
            return {alias.name for alias in node.names}
        case ast.ImportFrom(module=str(module), level=0):
            return {module}
        case ast.Call(
            func=ast.Name("find_spec") | ast.Attribute(attr="find_spec"),
            args=[ast.Constant(str(module)), *_],
        ):
            return {
                module
            }  # the embedded engine, and the model's package, whose files are read
        case ast.List() | ast.Tuple():
            values = [getattr(element, "value", None) for element in node.elts]
            return {
                str(module)
                for option, module in pairwise(values)
                if option == "-m" and str(module)[0] != "-"
            }
    return set()


def test_every_dependency_is_imported_and_every_import_is_a_dependency() -> None:
    sources = (
        path.read_text(encoding="utf-8")
        for path in (ROOT / "server" / "folklore").rglob("*.py")
    )
    found = {
        module
        for source in sources
        for node in ast.walk(ast.parse(source))
        for module in uses(node)
    }
    modules = (
        {name.split(".")[0] for name in found}
        - set(sys.stdlib_module_names)
        - {"folklore", "_typeshed"}
    )
    known = packages_distributions()
    project = PROJECT["project"]
    needed = {named(text) for text in project["dependencies"]}
    optional = {
        named(text)
        for extra in project["optional-dependencies"].values()
        for text in extra
    }

    imported = {
        named(distribution)
        for module in modules
        for distribution in known.get(module, [module])
    }
    # Imported by Starlette, for a form with a file, and by uvicorn, if they are there.
    assert needed - imported == {"python-multipart", "httptools", "uvloop"}
    # opentelemetry-api comes with mcp; its modules share one name with those of the extra `otel`. pip is run if found.
    assert {
        name
        for name in imported - needed - optional
        if not name.startswith("opentelemetry-")
    } <= {"pip"}


def test_importers_need_what_they_import_and_the_core_of_the_same_version() -> None:
    found = {
        module.split(".")[0]
        for path in (ROOT / "import" / "folklore_import").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for module in uses(node)
    }
    modules = found - set(sys.stdlib_module_names) - {"folklore", "folklore_import"}
    known = packages_distributions()
    imported = {
        named(distribution)
        for module in modules
        for distribution in known.get(module, [module])
    }
    version = PROJECT["project"]["version"]

    needed = IMPORTERS["project"]["dependencies"]
    assert {named(text) for text in needed} == {"folklore-mcp", *imported}
    assert f"folklore-mcp=={version}" in needed
    extra = PROJECT["project"]["optional-dependencies"]["import"]
    assert extra == [f"folklore-import=={version}"]


def test_the_workflow_runs_targets_that_exist_with_variables_that_they_use() -> None:
    calls = [step["run"] for step in steps() if step.get("run", "").startswith("make ")]

    assert {"make check", "make test", "make dist", "make bundle"} <= set(calls)
    for call in calls:
        words = call.split(" > ")[0].split()[1:]
        assert words[0] in targets(), call
        for word in words[1:]:
            assert f"$({word.split('=')[0]})" in MAKEFILE, call


def test_every_file_of_tests_in_the_makefile_exists() -> None:
    named = set(re.findall(r"(?<![\w/])tests/[\w/]+(?:\.\w+)?", MAKEFILE))

    assert "tests/ranking" in named
    assert [
        name
        for name in named
        if not (ROOT / name).exists() and not name.endswith("test_")
    ] == []


def test_the_workflow_publishes_files_that_its_targets_make() -> None:
    commands = "\n".join(step["run"] for step in steps() if "run" in step)
    made = set(
        re.findall(
            r"dist/[\w.]+", MAKEFILE + "".join(re.findall(r"> (dist/\S+)", commands))
        )
    )

    assert set(re.findall(r"dist/[\w.]+", commands)) <= made


def test_the_workflow_needs_a_tag_and_no_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = WORKFLOW["jobs"]

    assert WORKFLOW[True] == {
        "push": {"tags": ["v*"]}
    }  # YAML reads the key `on` as true
    assert "secrets." not in text
    assert all(
        re.search(r"@v\d+\.\d+\.\d+$", step["uses"])
        for step in steps()
        if "uses" in step
    )
    assert WORKFLOW["permissions"] == {"contents": "read"}
    signed = {
        name
        for name, job in jobs.items()
        if job.get("permissions", {}).get("id-token") == "write"
    }
    assert signed == {"pypi", "registry"}
    # Nothing is published before the checks pass; PyPI, where nothing can be replaced, comes after the image.
    assert {name: job.get("needs") for name, job in jobs.items()} == {
        "build": None, "image": "build", "pypi": ["build", "image"], "release": "pypi", "registry": "release",
    }  # fmt: skip


def test_an_installed_folklore_prints_the_example_of_settings() -> None:
    result = CliRunner().invoke(cli, ["config", "example"])

    assert result.exit_code == 0
    assert (
        yaml.safe_load(result.output)["log_level"]
        == Settings.model_fields["log_level"].default
    )
