"""Docstrings, comments, messages and documents are in plain English: things are not persons, verbs are literal."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests import ROOT

# Places in server/ and benchmarks/ that may still break a rule. Lower these numbers, never raise them.
MOST_OPENINGS = 0
MOST_WORDS = 0
DOCUMENTS = [
    *(
        ROOT / name
        for name in ("README.md", "CHANGELOG.md", "config.example.yaml", "Makefile", "benchmarks/RESULTS.md")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted(path for path in (ROOT / "deploy").iterdir() if path.is_file()),
]

# A docstring begins with a verb (functions) or a noun (modules, classes), not with one of these.
OPENINGS = re.compile(
    r"(what|whether|how|who|whom|whose|whoever|whatever|which|where|when|why|those|that|the same|one|none|nobody|so)\b",
    re.IGNORECASE,
)
# A caller, a connection or a token is a thing. Say "the caller", or use the passive.
PERSONS = r"whoever|whomever|nobody|somebody|everybody|himself|he|him|his"
# Say report or log, is, next to, pending, release, add to, permanently, useful.
FIGURES = (
    r"told|tells?|stands?|stood|beside|owed|owes|lets? go|lends?|lent|reckon\w*|for good|by and by|of use|"
    r"(?-i:there is none|is none)"
)
# Names of things in the code, such as the account `nobody`, are not prose.
QUOTED = re.compile(r"`[^`]*`")
FORBIDDEN = re.compile(rf"\b({PERSONS}|{FIGURES})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prose:
    """A docstring, comment or message with its line."""

    line: int
    text: str
    docstring: bool = False


def breaks_a_rule(text: str) -> bool:
    return FORBIDDEN.search(QUOTED.sub("", text)) is not None


def of_module(text: str) -> Iterator[Prose]:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if docstring := ast.get_docstring(node):
                yield Prose(getattr(node, "lineno", 1), docstring, docstring=True)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
                    yield Prose(part.lineno, part.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Prose(token.start[0], token.string)


def of_statement(text: str) -> Iterator[Prose]:
    for number, line in enumerate(text.splitlines(), 1):
        if comment := re.search(r"--.*", line):
            yield Prose(number, comment[0])


@cache
def of_code() -> list[tuple[str, Prose]]:
    """Return the prose of server/ and benchmarks/ with its place."""
    found = []
    for path in sorted([*(ROOT / "server").rglob("*"), *(ROOT / "benchmarks").rglob("*")]):
        if path.suffix not in (".py", ".sql"):
            continue
        text = path.read_text(encoding="utf-8")
        for words in of_module(text) if path.suffix == ".py" else of_statement(text):
            found.append((f"{path.relative_to(ROOT)}:{words.line}: {' '.join(words.text.split())[:100]}", words))
    return found


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    found = [place for place, words in of_code() if words.docstring and OPENINGS.match(words.text)]

    assert len(found) <= MOST_OPENINGS, "\n".join(found)


def test_code_speaks_plainly() -> None:
    found = [place for place, words in of_code() if breaks_a_rule(words.text)]

    assert len(found) <= MOST_WORDS, "\n".join(found)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_speak_plainly(document: Path) -> None:
    lines = document.read_text(encoding="utf-8").splitlines()

    assert [f"{number}: {line}" for number, line in enumerate(lines, 1) if breaks_a_rule(line)] == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The caller is told why.",
        "Nobody holds the lock.",
        "# He waits.",
        "It stands beside the other.",
        "There is none.",
    ],
)
def test_forbidden_words_are_found(sentence: str) -> None:
    assert breaks_a_rule(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["The standard score is lower.", "The header is missing.", "Understand the result.", "This is the case."],
)
def test_similar_words_are_allowed(sentence: str) -> None:
    assert not breaks_a_rule(sentence)
