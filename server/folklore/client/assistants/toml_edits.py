"""Edits of TOML, by position: every other byte stays."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

from folklore.client.assistants.entry import (
    BOM,
    HOOK_TOOL,
    HOOKS,
    NAME,
    EditError,
    Entry,
    invalid,
    newline_of,
)

_HEADER = re.compile(r"^[ \t]*\[[^\r\n]*\][ \t]*(?:#[^\r\n]*)?\r?$", re.MULTILINE)
_LINE = re.compile(r"[^\n]*(?:\n|$)")
_GROUP = re.compile(rf"[ \t]*\[\[[ \t]*{HOOKS}[ \t]*\.")
_TABLE_IN_GROUP = re.compile(rf"{_GROUP.pattern}[^.\]]*\.")


def read_toml(text: str) -> dict[str, Any]:
    """Return the values of a text. Raises EditError for one that is not valid."""
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except tomllib.TOMLDecodeError as error:
        raise invalid("TOML", str(error)) from None
    except RecursionError:
        raise invalid("TOML", "it is nested too deeply") from None


def put_toml(text: str, section: str, entry: Entry, *, replace: bool) -> str:
    """Return the text with this entry in a section; `replace`: in place of the present one."""
    newline = newline_of(text)
    table = _table(f"[{section}.{NAME}]", entry, newline)
    tables = list(tables_of(text, section)) if replace else []
    if tables:
        for start, end in reversed(tables[1:]):
            text = text[:start] + text[end:]
        start, end = tables[0]
        return text[:start] + table + text[end:]
    if not text.strip(BOM):
        return text + table
    if not text.endswith("\n"):
        text += newline
    return text + newline + table


def without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text without some spans, and without the blank line before each."""
    for start, end in reversed(list(spans)):
        head = text[:start]
        if head.endswith(("\n\n", "\n\r\n")):
            head = head.removesuffix("\n").removesuffix("\r")
        text = head + text[end:]
    return text


def tables_of(text: str, section: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of Folklore's table and of the tables in it.

    A table ends with its last line that is not blank and no comment: a comment above the next header is that one's. A
    header inside a string of several lines would be taken for one; the check of the result refuses that.
    """
    ours = re.compile(
        rf"""[ \t]*\[[ \t]*(["']?){section}\1[ \t]*\.[ \t]*(["']?){NAME}\2[ \t]*[\].]"""
    )
    starts = [header.start() for header in _HEADER.finditer(text)]
    for start, following in pairwise([*starts, len(text)]):
        if ours.match(text, start):
            yield start, _end_of_table(text, start, following)


def _end_of_table(text: str, start: int, following: int) -> int:
    """Return the end of the last line of a table that is not blank and no comment."""
    end = start
    for line in _LINE.finditer(text, start, following):
        content = line.group().strip()
        if content and not content.startswith("#"):
            end = line.end()
    return end


def put_hooks(text: str, hooks: Mapping[str, list[Any]]) -> str:
    """Return the text with these groups of hooks at its end, in one order: an uninstallation compares texts."""
    newline = newline_of(text)
    for event in sorted(hooks):
        for group in hooks[event]:
            values = {key: value for key, value in group.items() if key != HOOKS}
            text += newline + _table(f"[[{HOOKS}.{event}]]", values, newline)
            for handler in group[HOOKS]:
                text += _table(f"[[{HOOKS}.{event}.{HOOKS}]]", handler, newline)
    return text


def _table(header: str, values: Entry, newline: str) -> str:
    lines = [header]
    for key, value in values.items():
        lines.append(f"{_word(key)} = {_write_toml(value)}")
    return "".join(line + newline for line in lines)


def our_groups(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of Folklore's groups of hooks: an array table of an event with the tables in it."""
    start: int | None = None
    headers = [header.start() for header in _HEADER.finditer(text)]
    for index in [*headers, len(text)]:
        if _TABLE_IN_GROUP.match(text, index):
            continue
        if start is not None:
            end = _end_of_table(text, start, index)
            with suppress(EditError):
                if our_hooks(read_toml(text[start:end])):
                    yield start, end
        start = index if _GROUP.match(text, index) else None


def our_hooks(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the groups of hooks by event that run Folklore alone."""
    hooks = document.get(HOOKS)
    if not isinstance(hooks, dict):
        return {}
    ours = {}
    for event, groups in hooks.items():
        if isinstance(groups, list):
            our_groups = [group for group in groups if _is_our_group(group)]
            if our_groups:
                ours[event] = our_groups
    return ours


def without_hooks(
    document: dict[str, Any], result: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of a document without Folklore's groups of hooks; an empty table is where `result` has one."""
    ours = our_hooks(document)
    if not ours:
        return document
    hooks = dict(document[HOOKS])
    for event, our_groups in ours.items():
        others = [group for group in hooks[event] if group not in our_groups]
        if others:
            hooks[event] = others
        else:
            del hooks[event]
    values = dict(document)
    del values[HOOKS]
    if hooks or HOOKS in result:
        values[HOOKS] = hooks
    return values


def _is_our_group(group: object) -> bool:
    handlers = group.get(HOOKS) if isinstance(group, dict) else None
    if not isinstance(handlers, list) or not handlers:
        return False
    return all(map(_is_our_handler, handlers))


def _is_our_handler(handler: object) -> bool:
    if not isinstance(handler, dict):
        return False
    if handler.get("type") == "mcp_tool":
        return (handler.get("server"), handler.get("tool")) == (NAME, HOOK_TOOL)
    command = str(handler.get("command"))
    return re.search(rf"{NAME}.* hook session-start\b", command) is not None


def _word(key: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_-]+", key):
        return key
    return json.dumps(key, ensure_ascii=False)


def _write_toml(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = [f"{_word(key)} = {_write_toml(each)}" for key, each in value.items()]
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_write_toml, value))}]"
    if isinstance(value, str | bool | int | float):
        # a string, number or boolean of JSON is one of TOML too
        return json.dumps(value, ensure_ascii=False)
    return str(value)  # a date or a time
