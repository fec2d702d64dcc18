"""Code: does a recall find a memory by an identifier, error message, error code, path or version?

The memories are facts about the installed dependencies of Folklore. Their files are parsed, never imported or run; the
same versions give the same memories.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import product
from typing import Any, Literal

import click

from benchmarks.command_line import (
    Benchmark,
    Options,
    main,
    print_json,
    print_table,
    track,
)
from benchmarks.metrics import mean
from benchmarks.sets import evenly
from benchmarks.store import open_store

# The facts: memories about installed distributions

Kind = Literal[
    "function", "message", "constant", "sqlstate", "file", "version", "requirement"
]

_ROOT = "folklore-mcp"
_FILES_EACH = 60
_LARGEST_FILE = 200_000  # bytes
_MOST: dict[Kind, int] = {
    "function": 2_400,
    "message": 800,
    "constant": 300,
    "file": 600,
}
_LONGEST = 500  # characters of a docstring
_WORDS_OF_MESSAGE = 4  # a shorter piece of a message is not specific
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# A store may rightly refuse a text that looks like a credential.
_CREDENTIAL = re.compile(
    r"(?i)(password|passwd|secret|token|api_?key|credential|bearer)\W|://[^/\s]*@|-----BEGIN"
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A memory, and the text it is known by: an identifier, the longest fixed piece of a message, a code, a path, a
    version."""

    kind: Kind
    known_by: str
    content: str


def installed(root: str = _ROOT) -> list[Distribution]:
    """Return the installed distributions that `root` requires, directly or not, by name."""
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


def facts(distributions: Sequence[Distribution]) -> list[Fact]:
    """Return the facts about the distributions, a few thousand, no text twice."""
    found: dict[str, Fact] = {}
    for package in distributions:
        for fact in (*_versions(package), *_sources(package)):
            if not _CREDENTIAL.search(fact.content):
                found.setdefault(fact.content, fact)
    kinds: dict[Kind, list[Fact]] = {}
    for fact in found.values():
        kinds.setdefault(fact.kind, []).append(fact)
    return [
        fact for kind, held in kinds.items() for fact in evenly(held, _MOST.get(kind))
    ]


def _versions(package: Distribution) -> Iterator[Fact]:
    name = package.metadata["Name"]
    version = package.version
    summary = (
        (package.metadata["Summary"] or "").strip()
        if "Summary" in package.metadata
        else ""
    )
    yield Fact("version", version, f"{name} {version} is installed. {summary}".strip())
    for requirement in package.requires or ():
        stated = requirement.partition(";")[0].strip()
        if any(mark in stated for mark in "<>=~"):
            yield Fact("requirement", stated, f"{name} needs {stated}.")


def _sources(package: Distribution) -> Iterator[Fact]:
    paths = sorted(
        path.as_posix()
        for path in package.files or ()
        if path.suffix == ".py"
        and ".." not in path.parts
        and not {"tests", "test", "testing"} & set(path.parts)
    )
    for path in evenly(paths, _FILES_EACH):
        try:
            raw = package.locate_file(path).read_bytes()  # type: ignore[attr-defined]
            tree = ast.parse(raw.decode("utf-8")) if len(raw) <= _LARGEST_FILE else None
        except (OSError, UnicodeDecodeError, SyntaxError, ValueError):
            continue
        if tree is not None:
            yield from facts_of(path, tree)


def facts_of(path: str, tree: ast.Module) -> Iterator[Fact]:
    """Yield the facts about one file."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    yield Fact(
        "file",
        path,
        f"{path}: {_first_paragraph(tree) or f'{len(tree.body)} statements.'}",
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _class(node, module)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _documented(
                node, module, f"{node.name}({ast.unparse(node.args)})"
            )
        elif isinstance(node, ast.Raise):
            yield from _message(node, module)
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(
            statement.value, ast.Constant
        ):
            yield from _constant(statement, statement.value, module)


def _class(node: ast.ClassDef, module: str) -> Iterator[Fact]:
    yield from _documented(node, module, f"class {node.name}")
    for statement in node.body:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.value, ast.Constant)
            and isinstance(statement.value.value, str)
            and [ast.unparse(target) for target in statement.targets] == ["sqlstate"]
        ):
            code = statement.value.value
            yield Fact(
                "sqlstate",
                code,
                f"Postgres answers SQLSTATE {code}: {module} raises {node.name}.",
            )


def _documented(
    node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
    module: str,
    signature: str,
) -> Iterator[Fact]:
    about = _first_paragraph(node)
    if about and not node.name.startswith("__"):
        yield Fact(
            "function", node.name, f"{signature[:_LONGEST]} of {module}: {about}"
        )


def _message(node: ast.Raise, module: str) -> Iterator[Fact]:
    called = node.exc
    if not isinstance(called, ast.Call) or not called.args:
        return
    pieces = list(_pieces(called.args[0]))
    fixed = max(
        (piece.strip() for piece in pieces if piece is not None), key=len, default=""
    )
    whole = " ".join(
        "".join("…" if piece is None else piece for piece in pieces).split()
    )
    known_by = " ".join(fixed.split()).strip("'\"`:;,()[]{}<> ")
    if (
        len(known_by.split()) >= _WORDS_OF_MESSAGE
        and len(whole) <= _LONGEST
        and known_by in whole
    ):
        yield Fact(
            "message", known_by, f"{module} raises {ast.unparse(called.func)}: {whole}"
        )


def _pieces(node: ast.expr) -> Iterator[str | None]:
    """Yield the fixed pieces of a string, None for a value that is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from _pieces(part)
    else:
        yield None


def _constant(
    statement: ast.Assign, value: ast.Constant, module: str
) -> Iterator[Fact]:
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or value.value is None:
        return
    # _VERSION = '0.20' would be a second answer to a question for that version.
    if target.id.isupper() and "_" in target.id and "VERSION" not in target.id:
        yield Fact(
            "constant",
            target.id,
            f"{target.id} = {str(value.value)[:80]!r} in {module}",
        )


def _first_paragraph(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> str:
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())[
        :_LONGEST
    ]


# The known items: questions that exactly one memory answers

# A word, or a part of an identifier: camelCase, snake_case and digits are separated.
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_BEGINNING = 5  # letters in which two forms of a word agree: "connect", "connection"
_SHORTEST_QUERY = 4
_LONGEST_QUERY = 200


@dataclass(frozen=True, slots=True)
class KnownItem:
    """A question, and the index of the one fact that answers it."""

    category: str
    query: str
    answer: int


class Uniqueness:
    """Index of the texts that finds the words and phrases that only one of them holds."""

    def __init__(self, contents: Sequence[str]) -> None:
        self._plain = [_plain(text) for text in contents]
        self._holding: dict[str, set[int]] = {}
        for place, text in enumerate(contents):
            for part in parts(text):
                self._holding.setdefault(part[:_BEGINNING], set()).add(place)

    def is_only_in(self, text: str, place: int) -> bool:
        """Return True if that text holds it and no other, whatever its case and white space."""
        sought = _plain(text)
        return (
            sought in self._plain[place]
            and sum(sought in plain for plain in self._plain) == 1
        )

    def are_only_in(self, words: Sequence[str], place: int) -> bool:
        """Return True if no other text holds all these words, as words or as parts of identifiers, in any form."""
        holding = [self._holding.get(word[:_BEGINNING], set()) for word in words]
        return bool(holding) and set.intersection(*holding) == {place}


def parts(text: str) -> list[str]:
    """Return the words of a text in lower case, identifiers split into their parts."""
    return [part.casefold() for part in _PARTS.findall(text)]


def known_items(noted: Sequence[Fact], most: int | None) -> list[KnownItem]:
    """Return at most `most` questions of each category, evenly spread."""
    unique = Uniqueness([fact.content for fact in noted])
    found: dict[str, dict[str, KnownItem]] = {}
    for place, fact in enumerate(noted):
        for category, query in _questions(fact, place, unique):
            found.setdefault(category, {}).setdefault(
                query.casefold(), KnownItem(category, query, place)
            )
    return [
        item
        for _, items in sorted(found.items())
        for item in evenly(list(items.values()), most)
    ]


def _questions(fact: Fact, place: int, unique: Uniqueness) -> Iterator[tuple[str, str]]:
    for category, query in _candidates(fact):
        if category == "part of an identifier":
            if unique.are_only_in(query.split(), place):
                yield category, query
        elif len(query) >= _SHORTEST_QUERY and unique.is_only_in(query, place):
            yield category, query


def _candidates(fact: Fact) -> Iterator[tuple[str, str]]:
    known = fact.known_by[:_LONGEST_QUERY]
    if fact.kind in ("version", "requirement"):
        yield "version", f"{fact.content.partition(' ')[0]} {known}"
        yield "version", known
    elif fact.kind == "file":
        yield "path", known
        yield "file name", known.rpartition("/")[2]
    elif fact.kind == "message":
        yield "error message", known
    elif fact.kind == "sqlstate":
        yield "error code", known
        yield "error code", f"SQLSTATE {known}"
    else:
        is_code = fact.kind == "constant" and re.search(
            r"ERR|CODE|STATUS|HTTP_[0-9]", known
        )
        yield "error code" if is_code else "identifier", known
        own = parts(known)
        # The end of a name, and its middle if there is one: the parts that a person remembers of it.
        for asked in sorted({" ".join(own[1:]), " ".join(own[1:-1])}):
            if " " in asked and len(asked) > _SHORTEST_QUERY:
                yield "part of an identifier", asked


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


# The measurement

TOOLS = ("memory_recall", "search_keywords")
_NAMESPACE = "code"
_ITEMS_EACH = 200
_MISSES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the sources that each tool found."""

    item: KnownItem
    sources: dict[str, list[str]]

    def rank(self, tool: str) -> int | None:
        """Return the rank of the right memory in the answer of a tool, from 1."""
        sources = self.sources[tool]
        right = str(self.item.answer)
        return sources.index(right) + 1 if right in sources else None


async def measure(noted: Sequence[Fact], options: Options) -> list[Asked]:
    """Store the facts and ask for each known item through both tools."""
    async with open_store() as store:
        memories = [
            {"content": fact.content, "source": str(place)}
            for place, fact in enumerate(noted)
        ]
        await store.add(_NAMESPACE, memories)
        asked = []
        for item in track(
            known_items(noted, options.questions or _ITEMS_EACH), "Asking"
        ):
            sources = {}
            for tool, arguments in zip(TOOLS, (options.arguments, {}), strict=True):
                answer = await store.ask(
                    item.query, [_NAMESPACE], options.limit, arguments, tool=tool
                )
                sources[tool] = answer.sources
            asked.append(Asked(item, sources))
        return asked


def scores(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Return hit@1 and hit@5 of each tool, over all questions and by category."""
    lines = []
    for name in ("all", *dict.fromkeys(one.item.category for one in asked)):
        part = [one for one in asked if name in ("all", one.item.category)]
        line: dict[str, Any] = {"asked by": name, "questions": len(part)}
        for tool, k in product(TOOLS, (1, 5)):
            line[f"{tool} hit@{k}"] = mean(
                [float((one.rank(tool) or k + 1) <= k) for one in part]
            )
        lines.append(line)
    return lines


@click.command(cls=Benchmark)
def code(options: Options) -> None:
    """Ask for known items of code: each question has exactly one right memory.

    The memories are made from the installed packages that Folklore needs: signatures with the first paragraph of their
    docstring, messages of exceptions, constants, SQLSTATEs, files, versions and requirements, a few thousand in all.

    A question is a text that occurs in one memory and in no other, whatever its case and white space. A question by
    part of an identifier is two or more adjacent parts of it as words, so that no other memory holds all of them in any
    form (their first five letters). --questions is the number per category. Each question is asked through
    memory_recall, with --ranking, and through search_keywords. Aim, over all questions through memory_recall: hit@1
    0.95, hit@5 0.99.
    """
    distributions = installed()
    noted = facts(distributions)
    asked = asyncio.run(measure(noted, options))
    misses: list[dict[str, Any]] = [
        {
            "missed": one.item.category,
            "query": one.item.query,
            "rank": one.rank(TOOLS[0]),
            "answer": noted[one.item.answer].content[:200],
            "first result": next(
                (noted[int(source)].content[:200] for source in one.sources[TOOLS[0]]),
                None,
            ),
        }
        for one in asked
        if one.rank(TOOLS[0]) != 1
    ]
    if options.as_json:
        counts = {"distributions": len(distributions), "stored": len(noted)}
        print_json(counts | {"scores": scores(asked), "misses": misses})
        return
    click.echo(
        f"{len(noted):,} memories of {len(distributions)} packages, {len(asked):,} known items"
    )
    print_table(scores(asked))
    print_table(misses[:_MISSES_SHOWN])


if __name__ == "__main__":
    main(code)
