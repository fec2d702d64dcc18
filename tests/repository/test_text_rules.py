"""Every function outside of text/ that applies a pattern is found, and measured or listed with a reason."""

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

import folklore
import folklore_import
from folklore.cli import screen
from folklore.errors import FolkloreError
from folklore.memory.models import recommend
from folklore.ranking import injection
from folklore_import import (
    claude_projects,
    commits,
    conversations,
    front_matter,
    pages,
)
from tests.linear_time import assert_linear_time

PACKAGES = (Path(folklore.__path__[0]), Path(folklore_import.__path__[0]))
UNITS = [
    "a", "A", "1", " ", "\n", "\t", "\r", "-", "_", ".", "/", ":", '"', "'", "`", "(", "[", "<", "a.", "a/", "a-", "A-",
    "a_", "a ", "A ", "1.", "1 ", ":1", "中", "\x00",
]  # fmt: skip


# Functions outside of text/ that apply a pattern, and by what they are measured or bounded. Rules for the texts of
# callers belong into text/ or are measured here.
MEASURED: Mapping[str, Callable[[str], object]] = {
    "cli.screen.visible": screen.visible,
    "cli.screen.cells": screen.cells,
    "cli.screen._folded": lambda text: (
        list(screen.wrapped(text, 80)),
        list(screen.wrapped(text + "é", 80)),
    ),
    "folklore_import.claude_projects.encoded": claude_projects.encoded,
    "memory.models.recommend.known_item": recommend.known_item,
    "folklore_import.commits._reasons": commits._reasons,
    "folklore_import.conversations._chatgpt_text": lambda text: (
        conversations._chatgpt_text({"parts": [text]})
    ),
    "folklore_import.front_matter": lambda text: (
        front_matter.read_front_matter(text),
        front_matter.read_front_matter(f"---\n{text}\n---\n"),
        front_matter.read_front_matter(f"---\na: {text}\n---\n"),
    ),
    "folklore_import.pages._only_links": lambda text: pages._only_links(
        text, Path("/nowhere")
    ),
    "ranking.injection._writes_path": lambda text: injection._writes_path(text, "a/b"),
    "ranking.injection._writes_name": lambda text: injection._writes_name(
        text, "a/b.py"
    ),
}
# Others, by function or module, and why they need no measure.
NOT_MEASURED: Mapping[str, str] = {
    "cli.options": "arguments of a command, by their first sign",
    "server.auth": "a header of at most 64 KiB, by single signs",
    "contract.anchors": "the names of commits, by a pattern that matches at one position",
    "contract.ids": "ids of at most some hundred characters",
    "importers.json_values": "JSON by its next sign, its beginning by 400 characters",
    "importers.json_lines": "one pattern that joins two signs",
    "folklore_import.recognition": "names of lists in the beginning of a file",
    "client.bridge": "headers that the SDK wrote",
    "cli.ids": "one word of a command",
    "cli.memory_output": "applies text/query/highlight, and splits at white space",
    "cli.screen.echo": "one pattern without repetition of what others hold",
    "folklore_import.claude_projects._directories_in": "128 KiB of a file, a value of at most 4,096 bytes",
    "client.assistants": "the settings of assistants on the user's own machine",
    "config": "the operator's settings",
    "db": "our own SQL, and the answers of Postgres",
    "embedding": "names of models, which the operator chooses",
    "engine": "files of the kernel and of Postgres",
    "errors": "names of our own classes, and pydantic's errors",
    "server.console": "form fields; marks are one character each",
    "server.requested": "one line that the SDK wrote",
    "server.application": "names of files and headers of at most 64 characters",
    "mcp.resources": "addresses, by patterns that match at one position",
    "memory.auth": "codes of a fixed length",
    "client.code": "the output of git, and commits by their form",
    "memory.records.get": "ids of at most 32 characters",
    "contract.requests": "names of our own classes",
    "client.repository_files": "the configuration of a working tree, by lines that match at one position",
    "folklore_import.commits._line": "the beginning of a subject",
    "folklore_import.conversations": "names of files, and JSON by its next sign",
    "folklore_import.graph": "one replacement of a relation's name",
    "folklore_import.pages": "single fields of front matter",
    "memory.transfer.json_lines": "digests of 64 characters",
    "memory.context.validation": "relations and blobs, by patterns that match at one position",
}


def readers() -> Iterator[str]:
    """Yield the functions outside of text/ that apply a pattern."""
    for package in PACKAGES:
        for path in sorted(package.rglob("*.py")):
            relative = path.relative_to(package.parent).with_suffix("")
            name = ".".join(relative.parts).removeprefix("folklore.")
            if not name.startswith("text."):
                tree = ast.parse(path.read_text(encoding="utf-8"))
                yield from readers_in(tree, name, pattern_names(tree))


def pattern_names(tree: ast.Module) -> set[str]:
    """Return `re`, and the variables of a module whose value is compiled."""
    found = {"re"}
    for statement in tree.body:
        assigns = isinstance(statement, ast.Assign | ast.AnnAssign)
        if assigns and "re.compile" in ast.unparse(statement):
            found |= {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
    return found


def readers_in(node: ast.AST, name: str, patterns: set[str]) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        child_name = f"{name}.{child.name}"
        used = {part.id for part in ast.walk(child) if isinstance(part, ast.Name)}
        if not isinstance(child, ast.ClassDef) and used & patterns:
            yield child_name
        yield from readers_in(child, child_name, patterns)


def listed_as(name: str) -> str | None:
    """Return the entry for a function: its own, or that of what contains it."""
    while name and name not in MEASURED and name not in NOT_MEASURED:
        name = name.rpartition(".")[0]
    return name or None


def test_every_function_that_applies_a_pattern_is_measured_or_listed() -> None:
    entries = {name: listed_as(name) for name in readers()}
    unlisted = [name for name, entry in entries.items() if entry is None]
    assert unlisted == []
    assert {*MEASURED, *NOT_MEASURED} <= set(entries.values())


@pytest.mark.parametrize("name", MEASURED)
def test_a_reader_outside_of_text_takes_linear_time(name: str) -> None:
    def read(given: str) -> None:
        with suppress(FolkloreError):
            MEASURED[name](given)

    for unit in (*UNITS, "* ", "]( ", "a/b ", "*/a ", "---\n", "a: ", "- a\n", "a.md "):
        assert_linear_time(read, unit)
