"""Rules for imports, for the time of a start and for the size of functions."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT

ROOMS = ROOT / "server" / "folklore"
IMPORTERS = ROOT / "import" / "folklore_import"
MODULES = sorted([*ROOMS.rglob("*.py"), *IMPORTERS.rglob("*.py")])


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("config", ["pyproject.toml", "import/pyproject.toml"])
def test_packages_import_only_lower_layers(config: str) -> None:
    program = (
        "import sys; from importlinter.cli import lint_imports; "
        f"sys.exit(lint_imports(config_filename={config!r}, no_cache=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_a_server_is_ready_to_answer_before_anything_slow_is_imported() -> None:
    slow = (
        "numpy",
        "asyncpg",
        "pgvector",
        "wordllama",
        "tokenizers",
        "httpx",
        "rich",
        "structlog",
        "yaml",
    )
    program = "import sys, folklore.cli.main, folklore.mcp.server; print(*[m for m in sys.argv[1:] if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program, *slow],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("module", "allowed"),
    [
        ("folklore", {"folklore"}),
        ("folklore.errors", {"folklore"}),
        ("folklore.callers", {"folklore"}),
        (
            "folklore.model",
            {
                "folklore",
                "pydantic",
                "pydantic_core",
                "annotated_types",
                "typing_extensions",
                "typing_inspection",
            },
        ),
    ],
)
def test_the_foundations_import_nothing_but_pydantic(
    module: str, allowed: set[str]
) -> None:
    program = f"""
import sys
before = set(sys.modules)
import {module}
new = {{name.split('.')[0] for name in set(sys.modules) - before}} - set(sys.stdlib_module_names)
print(*sorted(name for name in new if not name.startswith('_')))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert set(done.stdout.split()) <= allowed


def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= 100
    ]

    assert long == []


@pytest.mark.parametrize(
    "name", ["utils", "helpers", "base", "manager", "common", "misc"]
)
def test_every_module_has_a_name_of_its_own(name: str) -> None:
    assert [
        path for path in MODULES if path.stem == name or path.parent.name == name
    ] == []


def test_every_module_has_a_docstring() -> None:
    silent = [
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if (tree := tree_of(path)).body and ast.get_docstring(tree) is None
    ]

    assert silent == []


def test_nothing_is_printed_and_stdout_is_named_only_at_the_edges() -> None:
    talking = {
        "/".join(path.relative_to(ROOT).parts[:3])
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print")
        or (isinstance(node, ast.Attribute) and node.attr == "stdout" and isinstance(node.value, ast.Name)
            and node.value.id == "sys")
    }  # fmt: skip

    assert talking == {"server/folklore/cli", "server/folklore/client"}


def test_broad_excepts_are_only_at_the_edges() -> None:
    """Each carries a reason; they are for the outermost edge of a process or a probe, and for one search branch."""
    broad = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in MODULES
        for number, line in enumerate(
            path.read_text(encoding="utf-8").splitlines(), start=1
        )
        if (
            "except Exception" in line
            or "except BaseException" in line
            or line.strip() == "except:"
        )
        or "except (Exception" in line
    ]

    assert len(broad) <= 10, broad


def test_a_message_about_a_field_reads_as_a_sentence_after_its_name() -> None:
    fragments = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("InvalidInput", "ConfigInvalid")
        and re.match(
            r"f?['\"](of|or|and|with|for|to|in|from|above|below|needed)\b",
            ast.unparse(node.args[-1]),
        )
    ]

    assert fragments == []
