"""Memories about code, made from the dependencies that are installed: what a team notes, with names that are real.

Nothing is imported, run or downloaded: the files of the distributions that this one needs, and that those need, are
parsed. The choice is the same wherever the same versions are installed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from typing import Literal, TypeVar

Kind = Literal["function", "message", "constant", "sqlstate", "file", "version", "requirement"]
Item = TypeVar("Item")

_ROOT = "folklore-mcp"
_FILES_EACH = 60
_LARGEST = 200_000  # bytes of a file
_MOST: dict[Kind, int] = {"function": 2_400, "message": 800, "constant": 300, "file": 600}
_LONGEST = 500  # characters of a docstring
_WORDS_OF_MESSAGE = 4  # "error connecting to" is no message yet
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# A store may rightly refuse what looks like a credential.
_CREDENTIAL = re.compile(r"(?i)(password|passwd|secret|token|api_?key|credential|bearer)\W|://[^/\s]*@|-----BEGIN")


@dataclass(frozen=True, slots=True)
class Noted:
    """A memory, and what it is known by: an identifier, a message's longest fixed piece, a code, a path, a version."""

    kind: Kind
    known_by: str
    content: str


def some(items: Sequence[Item], count: int | None) -> list[Item]:
    """`count` of them, evenly spread; all without one."""
    if count is None or count >= len(items):
        return list(items)
    return [items[place * len(items) // count] for place in range(count)]


def installed(root: str = _ROOT) -> list[Distribution]:
    """The distributions that `root` needs, and those they need, as far as they are installed; by name."""
    found: dict[str, Distribution] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue
        for requirement in found[name].requires or ():
            needed = _NAME.match(requirement)
            if needed and "extra ==" not in requirement:
                waiting.append(re.sub(r"[-_.]+", "-", needed.group()).lower())
    return [found[name] for name in sorted(found) if name != root]


def notes(distributions: Sequence[Distribution]) -> list[Noted]:
    """What there is to note of them, a few thousand memories, no text twice."""
    found: dict[str, Noted] = {}
    for held in distributions:
        for note in (*_versions(held), *_sources(held)):
            if not _CREDENTIAL.search(note.content):
                found.setdefault(note.content, note)
    kinds: dict[Kind, list[Noted]] = {}
    for note in found.values():
        kinds.setdefault(note.kind, []).append(note)
    return [note for kind, held_ in kinds.items() for note in some(held_, _MOST.get(kind))]


def _versions(held: Distribution) -> Iterator[Noted]:
    name, version = held.metadata["Name"], held.version
    summary = (held.metadata["Summary"] or "").strip() if "Summary" in held.metadata else ""
    yield Noted("version", version, f"{name} {version} is installed. {summary}".strip())
    for requirement in held.requires or ():
        stated = requirement.partition(";")[0].strip()
        if any(mark in stated for mark in "<>=~"):
            yield Noted("requirement", stated, f"{name} needs {stated}.")


def _sources(held: Distribution) -> Iterator[Noted]:
    paths = sorted(
        path.as_posix()
        for path in held.files or ()
        if path.suffix == ".py" and ".." not in path.parts and not {"tests", "test", "testing"} & set(path.parts)
    )
    for path in some(paths, _FILES_EACH):
        try:
            raw = held.locate_file(path).read_bytes()  # type: ignore[attr-defined]
            tree = ast.parse(raw.decode("utf-8")) if len(raw) <= _LARGEST else None
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
            continue
        if tree is not None:
            yield from notes_of(path, tree)


def notes_of(path: str, tree: ast.Module) -> Iterator[Noted]:
    """What there is to note of one file."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    yield Noted("file", path, f"{path}: {_first_paragraph(tree) or f'{len(tree.body)} statements.'}")
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _of_class(node, module)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(node, module, f"{node.name}({ast.unparse(node.args)})")
        elif isinstance(node, ast.Raise):
            yield from _message(node, module)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            yield from _constant(statement, statement.value, module)


def _of_class(node: ast.ClassDef, module: str) -> Iterator[Noted]:
    yield from _documented(node, module, f"class {node.name}")
    for statement in node.body:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
            and [ast.unparse(target) for target in statement.targets] == ["sqlstate"]
        ):
            code = statement.value.value
            yield Noted("sqlstate", code, f"Postgres answers SQLSTATE {code}: {module} raises {node.name}.")


def _documented(
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, module: str, signature: str
) -> Iterator[Noted]:
    about = _first_paragraph(node)
    if about and not node.name.startswith("__"):
        yield Noted("function", node.name, f"{signature[:_LONGEST]} of {module}: {about}")


def _message(node: ast.Raise, module: str) -> Iterator[Noted]:
    called = node.exc
    if not isinstance(called, ast.Call) or not called.args:
        return
    pieces = list(_pieces(called.args[0]))
    fixed = max((piece.strip() for piece in pieces if piece is not None), key=len, default="")
    whole = " ".join("".join("…" if piece is None else piece for piece in pieces).split())
    known_by = " ".join(fixed.split()).strip("'\"`:;,()[]{}<> ")
    if len(known_by.split()) >= _WORDS_OF_MESSAGE and len(whole) <= _LONGEST and known_by in whole:
        yield Noted("message", known_by, f"{module} raises {ast.unparse(called.func)}: {whole}")


def _pieces(node: ast.expr) -> Iterator[str | None]:
    """The fixed pieces of a string, None for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from _pieces(part)
    else:
        yield None


def _constant(statement: ast.Assign, value: ast.Constant, module: str) -> Iterator[Noted]:
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or value.value is None:
        return
    # _VERSION = '0.20' would be a second answer to a question for that version.
    if target.id.isupper() and "_" in target.id and "VERSION" not in target.id:
        yield Noted("constant", target.id, f"{target.id} = {str(value.value)[:80]!r} in {module}")


def _first_paragraph(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())[:_LONGEST]
