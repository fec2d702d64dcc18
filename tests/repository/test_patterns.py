"""Every compiled pattern of the package is found, and read against texts made of its own parts."""

import ast
import re
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, partial
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from pkgutil import walk_packages
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import pytest

import folklore
import folklore_import
from tests.hostile_texts import HostileText, hostile_texts
from tests.linear_time import assert_linear_time

LENGTH = 3_000
# Seconds of processor time for one text. An exponential pattern would take years.
MAX_SECONDS = 1.0
# Of hundreds of patterns with a dozen texts each, one measurement goes wrong on a busy machine now and then.
MEASURED = 3
_METHODS = (
    "match",
    "fullmatch",
    "search",
    "findall",
    "finditer",
    "sub",
    "subn",
    "split",
)
_POSITIONS_OF_FLAGS = {"compile": 1, "split": 3, "sub": 4, "subn": 4}
_AT_BEGINNING = {"match", "fullmatch"}
_MAX_DEPTH = 6
# How patterns within other values are applied, where that is not by a search.
APPLIED: Mapping[str, set[str]] = {
    "RULES[*].body": {"match"},
    "_RANGES[*]": {"fullmatch"},
}
# Modules whose patterns read nothing that a writer of memories wrote.
OUR_OWN_TEXTS: Mapping[str, str] = {
    "client.assistants": "the settings of assistants on the user's own machine",
    "config": "the operator's settings",
    "db": "our own SQL, and the answers of Postgres",
    "engine": "files of the kernel and of Postgres",
    "memory.auth": "codes and tokens, whose length is checked before",
    "text.dates.translation._ELEMENT": "the table of languages, which is a part of the package",
}


class Bound(NamedTuple):
    """The most characters that a pattern reads, and where that is seen to."""

    characters: int
    reason: str


_TIME = Bound(200, "parse_time refuses longer expressions")
# Patterns that take more than linear time, and what bounds the texts that they read.
BOUNDED: Mapping[str, Bound] = {
    "text.dates.period_expressions._PART_OF_DAY": _TIME,
    "text.dates.expressions._RANGES": _TIME,
    "text.entities.finder._LINE_NUMBERS": Bound(200, "a path is one word of _MAX_WORD"),
    "text.entities.identifiers._SHAPES": Bound(200, "words of _MAX_WORD alone"),
    "text.entities.proper_nouns._WORD_BEFORE": Bound(12, "what precedes a name"),
    "text.hooks.assertions._FACTS": Bound(400, "sentences of _LONGEST alone"),
    "text.paths._LINES": Bound(200, "the end of a path, by _LONGEST_LINES"),
}
# Seconds of processor time for a text of that length: what may delay the calls of others.
MAX_BOUNDED_SECONDS = 0.05
# Functions that make a pattern of what they are given, by the reason why that is no danger.
BUILT: Mapping[str, str] = {
    "client.code.marks._note": "the end of an id, escaped; reads our own notes once, each from the start of its line",
    "embedding.model_profiles.profile_of": "searches the name of a model for one of a table",
    "errors.field_errors": "matches names of pydantic's errors with those of a table",
    "folklore_import.recognition._first_of_long": "one name of a table between quotation marks",
    "ranking.injection._writes_name": "a name, escaped; measured in test_text_rules",
    "text.dates.period_expressions._pattern": "its results are variables, which are found",
    "text.dates.translation._phrase": "its results are measured by the function translations",
    "text.hooks.assertions._joined": "its results are variables, which are found",
    "text.query.question.QuestionWords": "words, escaped; measured by its functions",
    "text.secrets.context._name": "a word of a table",
    "text.secrets.key_formats._rule": "its results are variables, which are found",
    "text.secrets.values.kinds_of_characters": "one character",
}


@dataclass
class Found:
    """A pattern, and the methods by which modules apply it; none if they cannot be told."""

    pattern: re.Pattern[Any]
    methods: set[str] = field(default_factory=set)

    @property
    def at_beginning(self) -> bool:
        """Whether it is matched at one position of a text alone."""
        return bool(self.methods) and self.methods <= _AT_BEGINNING

    def read(self, text: str) -> None:
        given: Any = text
        if isinstance(self.pattern.pattern, bytes):
            given = text.encode("latin-1", "replace")
        if not self.at_beginning:
            for _ in self.pattern.finditer(given):
                pass
            return
        if "match" in self.methods:
            self.pattern.match(given)
        if "fullmatch" in self.methods:
            self.pattern.fullmatch(given)


@cache
def modules() -> tuple[ModuleType, ...]:
    found = [
        *walk_packages(folklore.__path__, "folklore."),
        *walk_packages(folklore_import.__path__, "folklore_import."),
    ]
    names = [module.name for module in found if not module.name.endswith("__main__")]
    return tuple(import_module(name) for name in names)


@cache
def patterns() -> dict[str, Found]:
    """Return the patterns of all modules by the name of where each is found first.

    Two variables with equal patterns count as one that is applied by the methods of both.
    """
    names: dict[re.Pattern[Any], str] = {}
    found: dict[str, Found] = {}
    for module in modules():
        source = source_of(module)
        prefix = module.__name__.removeprefix("folklore.")
        held = [
            (f"{prefix}.{name}", pattern, methods_of(name, method, source))
            for name, pattern, method in held_by(module)
        ]
        written = [
            (f"{prefix} {pattern.pattern!r}", pattern, {method})
            for pattern, method in written_in(module)
        ]
        # What a variable holds is compiled where it is written, and applied elsewhere.
        compiled = {pattern for _, pattern, _ in held}
        written = [entry for entry in written if entry[1] not in compiled]
        for name, pattern, methods in (*held, *written):
            first_name = names.setdefault(pattern, name)
            entry = found.setdefault(first_name, Found(pattern))
            entry.methods |= methods
    return found


def source_of(module: ModuleType) -> str:
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def methods_of(name: str, method: str | None, source: str) -> set[str]:
    """Return the methods by which a module applies the pattern of a variable.

    Of a pattern within another value, or one that is handed on, that is a search: it includes the others.
    """
    if method is not None:
        return {method}
    calls = re.findall(rf"\b{re.escape(name)}\.({'|'.join(_METHODS)})\b", source)
    handed_on = re.search(rf"[(,=] *{re.escape(name)} *[,)\]]", source)
    if handed_on or not calls:
        return APPLIED.get(re.sub(r"\[\d+\]", "[*]", name), {"search"})
    return set(calls)


def held_by(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any], str | None]]:
    """Yield the patterns that the variables of a module hold: by name, with the method if it is bound."""
    for variable, value in list(vars(module).items()):
        yield from held_in(variable, value, module.__name__)


def held_in(
    name: str, value: object, module: str, depth: int = 0
) -> Iterator[tuple[str, re.Pattern[Any], str | None]]:
    bound_to = getattr(value, "__self__", None)
    if isinstance(value, re.Pattern):
        yield name, value, None
    elif isinstance(bound_to, re.Pattern):
        yield name, bound_to, str(getattr(value, "__name__", "search"))
    elif depth < _MAX_DEPTH:
        for part_name, part in parts_of(value, module):
            yield from held_in(f"{name}{part_name}", part, module, depth + 1)


def parts_of(value: object, module: str) -> list[tuple[str, object]]:
    """Return what a value of a module may hold patterns in."""
    if isinstance(value, Mapping):
        entries = [(f"[{key!r}]", entry) for key, entry in value.items()]
        return [*entries, *((f" key {key!r}", key) for key in value)]
    if isinstance(value, list | tuple | set | frozenset):
        return [(f"[{index}]", part) for index, part in enumerate(value)]
    if isinstance(value, partial):
        return [(".args", value.args), (".keywords", value.keywords)]
    if isclass(value):
        own = value.__module__ == module
        return [(f".{name}", part) for name, part in vars(value).items() if own]
    if isfunction(value):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [
            (" defaults", (value.__defaults__, value.__kwdefaults__)),
            (" cells", cells),
        ]
    if is_dataclass(value):
        names = [part.name for part in fields(value)]
        return [(f".{name}", getattr(value, name, None)) for name in names]
    return []


def written_in(module: ModuleType) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Yield the patterns that are written where they are applied, as in `re.sub("a+", …)`, and the method."""
    for call in calls_of_re(ast.parse(source_of(module))):
        written = constant_of(call.args[0], module)
        if written is not None:
            yield re.compile(written, flags_of(call)), method_of(call)


def flags_of(call: ast.Call) -> int:
    given = [word.value for word in call.keywords if word.arg == "flags"]
    position = _POSITIONS_OF_FLAGS.get(call_name(call), 2)
    given += call.args[position : position + 1]
    return eval(ast.unparse(given[0]), {"re": re}) if given else 0


def constant_of(argument: ast.expr, module: ModuleType) -> Any:
    """Return a pattern that stands in the source, or in a variable of its module as a text; else None."""
    value = None
    if isinstance(argument, ast.Constant):
        value = argument.value
    elif isinstance(argument, ast.Name):
        value = vars(module).get(argument.id)
    return value if isinstance(value, str | bytes) else None


def calls_of_re(tree: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in ("compile", *_METHODS)
        ):
            yield node


def call_name(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Attribute)
    return call.func.attr


def method_of(call: ast.Call) -> str:
    """Return how a call applies its pattern. What is compiled may be applied anyhow: a search includes the others."""
    name = call_name(call)
    return "search" if name == "compile" else name


def slow_text(found: Found) -> HostileText | None:
    """Return a text that a pattern reads in more than linear time, each of several times that it is measured."""
    for text in hostile_texts(found.pattern):
        try:
            if all(is_slow(found, text) for _ in range(MEASURED)):
                return text
        except ProcessorTimeOver:  # no error of a measurement is as great
            return text
    return None


def is_slow(found: Found, text: HostileText) -> bool:
    """Measure once whether a pattern takes more than linear time. Raises ProcessorTimeOver."""
    try:
        with processor_time(MAX_SECONDS):
            assert_linear_time(found.read, text.unit, LENGTH, text.end, text.head)
    except AssertionError:
        return True
    return False


class ProcessorTimeOver(Exception):
    """The work took more processor time than it may."""


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Raise ProcessorTimeOver in work that takes more processor time: also within a pattern, and on a busy machine."""

    def end(signum: int, frame: FrameType | None) -> None:
        raise ProcessorTimeOver

    former = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)


def listed(name: str, entries: Mapping[str, Any]) -> str | None:
    """Return the entry for a name: its own, or that of a module that holds it."""
    parts = re.split(r"(?=[.\[ ])", name)
    prefixes = ("".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in entries), None)


def test_every_pattern_takes_linear_time_or_reads_bounded_texts() -> None:
    slow = {}
    for name, found in patterns().items():
        if listed(name, OUR_OWN_TEXTS) or listed(name, BOUNDED):
            continue
        if text := slow_text(found):
            slow[name] = text
    assert slow == {}


def test_a_pattern_that_reads_bounded_texts_takes_little_time_for_the_longest() -> None:
    slow = {}
    for name, found in patterns().items():
        entry = listed(name, BOUNDED)
        for text in hostile_texts(found.pattern) if entry else ():
            bound = BOUNDED[str(entry)]
            given = text.of_length(bound.characters)[-bound.characters :]
            if not is_read_within(MAX_BOUNDED_SECONDS, found, given):
                slow[name] = text
    assert slow == {}


def is_read_within(seconds: float, found: Found, text: str) -> bool:
    """Return whether one of three attempts takes no more than so much processor time."""
    for _ in range(3):
        with suppress(ProcessorTimeOver), processor_time(seconds):
            found.read(text)
            return True
    return False


def test_what_is_listed_exists() -> None:
    used = {listed(name, {**OUR_OWN_TEXTS, **BOUNDED}) for name in patterns()}
    assert {*OUR_OWN_TEXTS, *BOUNDED} - used == set()


def test_every_function_that_builds_a_pattern_is_listed() -> None:
    built = {name for module in modules() for name in builders_in(module)}
    unlisted = {name for name in built if not listed(name, {**OUR_OWN_TEXTS, **BUILT})}
    assert unlisted == set()
    assert BUILT.keys() == {listed(name, BUILT) for name in built} - {None}


def builders_in(module: ModuleType) -> Iterator[str]:
    """Yield the functions of a module that apply a pattern which is not written there."""
    prefix = module.__name__.removeprefix("folklore.")
    for name, function in functions_of(ast.parse(source_of(module)), prefix):
        for call in calls_of_re(function):
            if constant_of(call.args[0], module) is None:
                yield name


def functions_of(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        child_name = f"{name}.{getattr(child, 'name', '')}".removesuffix(".")
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child_name, child
        yield from functions_of(child, child_name)


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+", "(a|ab|b)*c", r"(\s*x?\s*)*y", "a+b", r"(\w+\s?)+:", "=.*=.*=.*;"],
)
def test_a_slow_pattern_is_found(pattern: str) -> None:
    found = Found(re.compile(rf"{pattern}$"), {"search"})
    assert slow_text(found)


def test_a_pattern_within_other_values_is_found() -> None:
    @dataclass
    class Row:
        column: re.Pattern[str]

    pattern = re.compile("a")
    value = {
        "rows": [Row(pattern)],
        "call": partial(print, pattern),
        "bound": pattern.sub,
    }
    names = {(name, method) for name, _, method in held_in("V", value, __name__)}

    assert names == {
        ("V['rows'][0].column", None),
        ("V['call'].args[0]", None),
        ("V['bound']", "sub"),
    }
