"""Front matter: the fields at the beginning of a page, as people and their programs write them.

It stands between two lines of --- (YAML) or +++ (TOML), or is lines of `name:: value` (Logseq). Values are texts as they
are written: `3.10`, `no` and `2024-11-07` stay what they are. A line that is not YAML costs the others nothing: rules of
Cursor have `globs: **/*.ts`, and titles have a colon.
"""

import re
import tomllib
from collections.abc import Iterable
from datetime import date, time
from typing import Any, NamedTuple

import yaml

_MOST_LINES = 200  # more lines are text between two rules
_BLOCK = re.compile(
    r"(?P<fence>---|\+\+\+)[ \t]*\n(?P<lines>.*?)^(?:(?P=fence)|\.\.\.)[ \t]*(?:\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")
# The first line of a field: its name and its value.
_FIELD = re.compile(r"([A-Za-z_][\w-]*(?: [\w-]+){0,3})[ \t]*:(.*)")
_LIST_ENTRY = re.compile(r"\s*-\s+(.*)")
_PROPERTY = re.compile(r"([A-Za-z][\w./-]{0,60})::(?:[ \t]+([^\n]*))?(?:\n|\Z)")
_QUOTED = re.compile(r"([\"'])(.*)\1")
_EMPTY = ("", "~", "null", "Null", "NULL")
# Names of which a block has at least one, if it is not at the very beginning of the page. Text between two rules has none.
_USUAL_NAMES = frozenset(
    """
    title name description summary tags tag kind type date created updated modified permalink id aliases author status
    category categories layout slug draft publish globs alwaysApply applyTo paths metadata keywords source
    """.split()
)


class FrontMatter(NamedTuple):
    """The fields of a page, whether a part of the block is no field, and the text after it."""

    fields: dict[str, Any]
    is_partial: bool
    text: str


def read_front_matter(text: str) -> FrontMatter:
    """Read the fields of a page; of several blocks, as two programs write them, the first has precedence."""
    fields: dict[str, Any] = {}
    is_partial = False
    end = 0
    while block := _next_block(text, end):
        read, is_partial_block = _block_fields(block)
        is_first_line = block.start() == 0
        if not is_first_line and not (_is_usual(read) and not is_partial_block):
            break
        fields = read | fields
        is_partial |= is_partial_block
        end = block.end()
    properties, end = _properties(text, end)
    return FrontMatter(properties | fields, is_partial, text[end:])


def _next_block(text: str, start: int) -> re.Match[str] | None:
    blank = _BLANK_LINES.match(text, start)
    assert blank is not None
    block = _BLOCK.match(text, blank.end())
    if block is None or block["lines"].count("\n") > _MOST_LINES:
        return None
    return block


def _is_usual(fields: dict[str, Any]) -> bool:
    return not _USUAL_NAMES.isdisjoint(fields)


def _block_fields(block: re.Match[str]) -> tuple[dict[str, Any], bool]:
    """Return the fields of a block, and whether a part of it is none."""
    lines = block["lines"]
    if block["fence"] == "+++":
        try:
            return {
                name: _as_text(value) for name, value in tomllib.loads(lines).items()
            }, False
        except (ValueError, RecursionError):
            return {}, True
    try:
        value = _yaml(lines)
    except (yaml.YAMLError, ValueError, RecursionError):
        return _single_fields(lines.splitlines())
    if not isinstance(value, dict):
        return {}, value not in _EMPTY
    fields = {name: entry for name, entry in value.items() if isinstance(name, str)}
    return fields, len(fields) < len(value)


def _yaml(text: str) -> Any:
    """Parse YAML whose values are lists, mappings and texts as they are written."""
    return yaml.load(text, yaml.BaseLoader) or ""  # noqa: S506 - it makes nothing but texts


def _single_fields(lines: Iterable[str]) -> tuple[dict[str, Any], bool]:
    """Read a block that is not YAML field by field."""
    fields: dict[str, list[str]] = {}
    is_partial = False
    continued: list[str] | None = None
    for line in lines:
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        field = _FIELD.fullmatch(line)
        if field:
            continued = fields.setdefault(field[1], [])
            continued.append(field[2].strip())
        elif continued is not None and line[0] in " \t-":
            continued.append(line)
        else:
            is_partial = True
    return {name: _single_value(parts) for name, parts in fields.items()}, is_partial


def _single_value(parts: list[str]) -> Any:
    """Return the value of a field from the rest of its first line and the lines below."""
    first, *below = parts
    try:
        return _yaml("\n".join([f"value: {first}", *below]))["value"]
    except (yaml.YAMLError, ValueError, RecursionError, KeyError):
        pass
    entries = [_LIST_ENTRY.fullmatch(line) for line in below]
    if below and not first and all(entries):
        return [_unquoted(entry[1]) for entry in entries if entry]
    return _unquoted(" ".join([first, *map(str.strip, below)]))


def _unquoted(text: str) -> str:
    quoted = _QUOTED.fullmatch(text.strip())
    if quoted:
        return quoted[2]
    return text.strip()


def _as_text(value: Any) -> Any:
    """Return a value of TOML with its parts as texts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return [_as_text(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _as_text(entry) for name, entry in value.items()}
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value)


def _properties(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Return the page properties of Logseq, and where the text after them begins."""
    fields: dict[str, Any] = {}
    end = start
    while line := _PROPERTY.match(text, end):
        fields[line[1]] = (line[2] or "").strip()
        end = line.end()
    return fields, end


def is_empty(value: object) -> bool:
    """Return True for a field without a value."""
    return value in ([], {}) or (isinstance(value, str) and value.strip() in _EMPTY)
