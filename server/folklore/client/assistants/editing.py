"""Edits of another program's settings: one server is added or removed, every other byte stays.

No library does this: those that keep comments write the file anew from a model of it, which takes seconds for the
megabytes that Claude Code keeps in one file, and change spaces, line ends or the byte order mark. tomlkit 0.15 changes
the order of an array of tables that has other tables between its members, as Codex writes approvals of hooks. So the
text is edited by position, and the parsers of the standard library check each result: it must hold what the file held,
plus or minus the one server, else nothing is written.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Entry = Mapping[str, Any]

NAME = "folklore"
HOOKS = "hooks"
HOOK_TOOL = "client_hook"
_BOM = "\ufeff"


class EditError(ValueError):
    """Text that is not valid, or that cannot be edited. `hint` is the next step for its owner."""

    def __init__(
        self, message: str, hint: str = "Correct it, then run this command again."
    ) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Section:
    """Object or table `key` at the top of a settings file, whose members are MCP servers.

    In TOML, the member `hooks` of Folklore's entry are its groups of hooks by event: array tables of their own.
    """

    key: str
    toml: bool = False

    def find(self, text: str) -> Entry | None:
        """Return Folklore's entry. Raises EditError for a text that is not valid."""
        document = self._read(text)
        servers = document.get(self.key, {})
        if not isinstance(servers, dict):
            raise EditError(
                f"has `{self.key}`, which is not an object; nothing was changed."
            )
        entry = servers.get(NAME)
        if entry is None:
            return None
        if not isinstance(entry, dict):
            return {"": entry}
        if self.toml:
            hooks = _our_hooks(document)
            if hooks:
                return {**entry, HOOKS: hooks}
        return entry

    def put(self, text: str, entry: Entry) -> str:
        """Return the text with this entry in place of the present one, if any."""
        if self.toml:
            return self._put_toml(text, entry)
        target = self._read(text)
        target[self.key] = {**target.get(self.key, {}), NAME: dict(entry)}
        return self._checked(_put_json(text, self.key, entry), target)

    def _put_toml(self, text: str, entry: Entry) -> str:
        server = dict(entry)
        hooks = server.pop(HOOKS, {})
        target = self._read(text)
        servers = target.get(self.key, {})
        target[self.key] = {**servers, NAME: server}

        result = _without(text, _our_groups(text))
        result = _put_toml(result, self.key, server, replace=NAME in servers)
        target = _without_hooks(target, self._read(result))
        if hooks:
            groups_by_event = target.setdefault(HOOKS, {})
            for event, groups in hooks.items():
                present = groups_by_event.get(event, [])
                groups_by_event[event] = [*present, *groups]
        return self._checked(_put_hooks(result, hooks), target)

    def drop(self, text: str, *, keep_section: bool) -> str:
        """Return the text without the entry, and without the section if nothing is left in it, no comment either.

        `keep_section` keeps an empty section of JSON; in TOML a header of its own always stays.
        """
        target = self._read(text)
        del target[self.key][NAME]
        if self.toml:
            result = _without(text, _our_groups(text))
            result = _without(result, _tables(result, self.key))
            if self.key not in self._read(result):
                del target[self.key]
            return self._checked(result, _without_hooks(target, self._read(result)))
        result, empty = _drop_json(text, self.key, keep_section)
        if empty:
            del target[self.key]
        return self._checked(result, target)

    def has(self, text: str) -> bool:
        """Return whether the file has this section, even an empty one."""
        return self.key in self._read(text)

    def _read(self, text: str) -> dict[str, Any]:
        if self.toml:
            return _read_toml(text)
        return _read_json(text)

    def _checked(self, text: str, target: Mapping[str, Any]) -> str:
        """Return the text. Raises EditError if it does not hold exactly what it should."""
        with suppress(EditError):
            if self._read(text) == target:
                return text
        raise _not_editable(self.key)


@dataclass(frozen=True, slots=True)
class HookFile:
    """Settings file of hooks alone, as Cursor has it: `version`, and lists of commands by event in `hooks`.

    Folklore's entry is the object `hooks` with its own commands alone; these end with the words `ending`.
    """

    ending: str

    def find(self, text: str) -> Entry | None:
        """Return Folklore's entry. Raises EditError for a text that is not valid."""
        ours = {}
        for event, commands in _lists_of_hooks(_read_json(text)).items():
            our_commands = [command for command in commands if self._is_ours(command)]
            if our_commands:
                ours[event] = our_commands
        return {HOOKS: ours} if ours else None

    def put(self, text: str, entry: Entry) -> str:
        """Return the text with this entry in place of the present one, if any."""
        document = _read_json(text)
        without_ours = self._without(text)
        hooks = self._others(document, _read_json(without_ours))
        for event, commands in entry[HOOKS].items():
            hooks[event] = [*commands, *hooks.get(event, [])]
        target = {"version": 1, **document, HOOKS: hooks}

        if _Document(text).root() is None:
            return self._checked(_whole_json(text, target), target)
        result = without_ours
        for event, commands in reversed(entry[HOOKS].items()):
            result = _put_in_list(result, event, commands)
        if "version" not in document:
            result = _insert(result, _Document(result).outermost(), "version", 1)
        return self._checked(result, target)

    def drop(self, text: str, *, keep_section: bool) -> str:
        """Return the text without the entry; `keep_section` keeps an empty object `hooks`."""
        result = self._without(text)
        target = _read_json(text)
        target[HOOKS] = self._others(target, _read_json(result))
        document = _Document(result)
        hooks = document.section(HOOKS)
        assert hooks is not None
        if not keep_section and not result[hooks.start : hooks.end].strip():
            root = document.outermost()
            result = _cut(result, root, root.member(HOOKS))
            del target[HOOKS]
        return self._checked(result, target)

    def has(self, text: str) -> bool:
        """Return whether the file has hooks, even none."""
        return HOOKS in _read_json(text)

    def _others(
        self, document: Mapping[str, Any], result: Mapping[str, Any]
    ) -> dict[str, list[Any]]:
        """Return the commands of others by event; an empty list is where `result` has one."""
        others_by_event: dict[str, list[Any]] = {}
        for event, commands in _lists_of_hooks(document).items():
            others = [command for command in commands if not self._is_ours(command)]
            if others or event in result.get(HOOKS, {}):
                others_by_event[event] = others
        return others_by_event

    def _without(self, text: str) -> str:
        """Return the text without Folklore's commands, and without lists in which nothing is left."""
        while (position := self._first(text)) is not None:
            event, index = position
            commands = _Document(text).list_of(HOOKS, event)
            assert commands is not None
            text = _cut(text, commands, commands.members[index])
            document = _Document(text)
            others = document.list_of(HOOKS, event)
            assert others is not None
            if not text[others.start : others.end].strip():
                hooks = document.section(HOOKS)
                assert hooks is not None
                text = _cut(text, hooks, hooks.member(event))
        return text

    def _first(self, text: str) -> tuple[str, int] | None:
        """Return the event and the index of Folklore's first command."""
        for event, commands in _lists_of_hooks(_read_json(text)).items():
            for index, command in enumerate(commands):
                if self._is_ours(command):
                    return event, index
        return None

    def _is_ours(self, hook: object) -> bool:
        command = hook.get("command") if isinstance(hook, dict) else None
        return isinstance(command, str) and _runs(command, self.ending)

    def _checked(self, text: str, target: Mapping[str, Any]) -> str:
        """Return the text. Raises EditError if it does not hold exactly what it should."""
        with suppress(EditError):
            if _read_json(text) == target:
                return text
        raise _not_editable(HOOKS)


def _lists_of_hooks(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists of commands by event. Raises EditError for hooks of another form."""
    hooks = document.get(HOOKS, {})
    if not isinstance(hooks, dict):
        raise EditError(f"has `{HOOKS}`, which is not an object; nothing was changed.")
    for event, commands in hooks.items():
        if not isinstance(commands, list):
            problem = (
                f"has `{HOOKS}.{event}`, which is not a list; nothing was changed."
            )
            raise EditError(problem)
    return hooks


def _put_in_list(text: str, event: str, commands: Sequence[Any]) -> str:
    """Return the text with these commands first in the list of an event."""
    document = _Document(text)
    hooks = document.section(HOOKS)
    if hooks is None:
        return _insert(text, document.outermost(), HOOKS, {event: list(commands)})
    if document.list_of(HOOKS, event) is None:
        return _insert(text, hooks, event, list(commands))
    for command in reversed(commands):
        present = _Document(text).list_of(HOOKS, event)
        assert present is not None
        text = _insert(text, present, None, command)
    return text


def _runs(command: str, ending: str) -> bool:
    """Return whether a command line runs Folklore with these last words."""
    return re.search(rf"{NAME}.* {re.escape(ending)}$", command) is not None


def _not_editable(key: str) -> EditError:
    return EditError(
        f"has `{key}` twice or in a form that Folklore cannot edit; nothing was changed.",
        "Edit it by hand; `folklore install --print` shows the entry.",
    )


def _invalid(language: str, problem: str) -> EditError:
    return EditError(f"is not valid {language} ({problem}); nothing was changed.")


# --- JSON, with comments and trailing commas ---------------------------------------------------------------------

# or a string, which may look like one
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|([\[{,]\s*)?,(?=\s*[}\]])', re.DOTALL)
_COMMENTS_OF_LINE = re.compile(r"(?:[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/))*")
_END_OF_LINE_OR_OBJECT = re.compile(r"[ \t]*(?:\r?\n|$)|\s*[}\]]")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Member:
    """Member of an object: where its key begins, its value begins and ends, and the comma after it ends.

    An element of a list has an empty key, and begins where its value begins.
    """

    key: str
    start: int
    value: int
    end: int
    comma: int | None


@dataclass(frozen=True, slots=True)
class _Object:
    """Object or list: the index after its opening brace, that of its closing one, and its members."""

    start: int
    end: int
    members: tuple[_Member, ...]

    def member(self, key: str) -> _Member | None:
        """Return the member of this name; of several the last, which is the one that counts."""
        for member in reversed(self.members):
            if member.key == key:
                return member
        return None


class _Document:
    """Document of JSON: its text, the same without comments, and the same as strict JSON, all of one length."""

    def __init__(self, text: str) -> None:
        self.text = text
        start = f" {text[1:]}" if text.startswith(_BOM) else text
        self._bare = _COMMENT.sub(_blanks_for_comment, start)
        self.strict = _TRAILING_COMMA.sub(_blank_for_comma, self._bare)

    def root(self) -> _Object | None:
        """Return the outermost object, if the document has any content."""
        start = self._skip(self.strict, 0)
        if start == len(self.strict):
            return None
        return self._object(start)

    def outermost(self) -> _Object:
        """Return the outermost object of a document that has content."""
        root = self.root()
        assert root is not None
        return root

    def section(self, key: str) -> _Object | None:
        """Return the object at a key of the outermost one, if it is there."""
        root = self.root()
        member = None if root is None else root.member(key)
        if member is None:
            return None
        return self._object(member.value)

    def list_of(self, section: str, key: str) -> _Object | None:
        """Return the list at a key of a section, if it is there."""
        around = self.section(section)
        member = None if around is None else around.member(key)
        if member is None:
            return None
        return self._list(member.value)

    def _object(self, start: int) -> _Object:
        """Return the object whose opening brace is at `start`."""
        members = []
        index = self._skip(self.strict, start + 1)
        while self.strict[index] != "}":
            key, end_of_key = _DECODER.raw_decode(self.strict, index)
            colon = self._skip(self.strict, end_of_key)
            value = self._skip(self.strict, colon + 1)
            member = self._member(key, index, value)
            members.append(member)
            index = self._skip(self.strict, member.comma or member.end)
        return _Object(start + 1, index, tuple(members))

    def _list(self, start: int) -> _Object:
        """Return the list whose opening bracket is at `start`."""
        elements = []
        index = self._skip(self.strict, start + 1)
        while self.strict[index] != "]":
            element = self._member("", index, index)
            elements.append(element)
            index = self._skip(self.strict, element.comma or element.end)
        return _Object(start + 1, index, tuple(elements))

    def _member(self, key: str, start: int, value: int) -> _Member:
        """Return the member that begins at `start`, and its value at `value`."""
        _, end = _DECODER.raw_decode(self.strict, value)
        end_of_space = self._skip(self._bare, end)
        comma = None
        if self._bare[end_of_space] == ",":
            comma = end_of_space + 1
        return _Member(key, start, value, end, comma)

    @staticmethod
    def _skip(text: str, index: int) -> int:
        """Return the index of the next character that is no space."""
        match = _SPACE.match(text, index)
        assert match is not None  # of any length
        return match.end()


def _blanks_for_comment(match: re.Match[str]) -> str:
    """Return a string as it is, and blanks for a comment, but for its line ends."""
    if match[0].startswith('"'):
        return match[0]
    return re.sub(r"[^\r\n]", " ", match[0])


def _blank_for_comma(match: re.Match[str]) -> str:
    """Return a blank for a trailing comma, everything else as it is."""
    if match[0] == ",":
        return " "
    return match[0]


def _read_json(text: str) -> dict[str, Any]:
    """Return the values of a document; an empty one, or one of comments alone, is an empty object."""
    strict = _Document(text).strict
    if not strict.strip():
        return {}
    try:
        value = json.loads(
            strict, parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except RecursionError:
        raise _invalid("JSON", "it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise _invalid(
            "JSON", f"line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    if not isinstance(value, dict):
        raise _invalid("JSON", "it is not an object")
    return value


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in members]
    if keys.count(NAME) > 1:  # which of them a client takes is not known
        raise EditError(
            f"has `{NAME}` twice in one object; nothing was changed.",
            "Remove one, then run this again.",
        )
    return dict(members)


def _refuse_constant(word: str) -> None:
    raise _invalid("JSON", f"{word} is no value")


def _whole_json(text: str, values: Entry) -> str:
    """Return a text without any object, with one of these values after it."""
    newline = _newline(text)
    document = _write_json(values, "", newline, _unit(text))
    if text.strip(_BOM) and not text.endswith(newline):
        text += newline
    return f"{text}{document}{newline}"


def _put_json(text: str, section: str, entry: Entry) -> str:
    document = _Document(text)
    root = document.root()
    servers = document.section(section)
    if root is None:
        return _whole_json(text, {section: {NAME: entry}})
    if servers is None:
        return _insert(text, root, section, {NAME: entry})
    present = servers.member(NAME)
    if present is None:
        return _insert(text, servers, NAME, entry)
    if "\n" in text[present.value : present.end]:
        indent = _indent(text, present.start)
        member = _write_json(entry, indent, _newline(text), _unit(text))
    else:
        member = json.dumps(entry, ensure_ascii=False)
    return text[: present.value] + member + text[present.end :]


def _insert(text: str, around: _Object, key: str | None, value: object) -> str:
    """Return the text with a new first member, or with a new first element of a list.

    The first position needs no change of what is there: the last one would need a comma after the present last member,
    which may have a comment behind it.
    """
    first = around.members[0].start if around.members else around.end
    name = "" if key is None else f"{json.dumps(key)}: "
    is_inline = "\n" not in text[around.start : first]
    if around.members and is_inline:
        member = f"{name}{json.dumps(value, ensure_ascii=False)}, "
        return text[:first] + member + text[first:]
    if is_inline and "\n" not in text.strip():
        member = f"{name}{json.dumps(value, ensure_ascii=False)}"
        return text[:first] + member + text[first:]

    newline = _newline(text)
    outer = _indent(text, around.start)
    indent = _indent(text, first) if around.members else outer + _unit(text)
    member = (
        f"{newline}{indent}{name}{_write_json(value, indent, newline, _unit(text))}"
    )
    comments = _COMMENTS_OF_LINE.match(text, around.start)
    assert comments is not None  # or none, of no length
    index = comments.end()
    if around.members:
        member += ","
    elif "\n" not in text[index : around.end]:
        member += newline + outer
    return text[:index] + member + text[index:]


def _drop_json(text: str, section: str, keep_section: bool) -> tuple[str, bool]:
    """Return the text without the entry, and whether the section was removed with it."""
    document = _Document(text)
    servers = document.section(section)
    assert servers is not None
    entry = servers.member(NAME)
    assert entry is not None
    before = text[servers.start : entry.start]
    after = text[entry.comma or entry.end : servers.end]
    if keep_section or before.strip() or after.strip():
        return _cut(text, servers, entry), False
    root = document.outermost()
    return _cut(text, root, root.member(section)), True


def _cut(text: str, around: _Object, member: _Member | None) -> str:
    """Return the text without one member, and without the comma that only separated it."""
    assert member is not None
    start = member.start
    end = member.comma or member.end
    before = text[:start].rstrip(" \t\r\n")
    is_last_of_line = _END_OF_LINE_OR_OBJECT.match(text, end) is not None
    if is_last_of_line or before.endswith(","):
        start = len(before)
    else:  # more follows on this line
        end += len(text[end:]) - len(text[end:].lstrip(" \t"))
    if not text[around.start : start].strip() and not text[end : around.end].strip():
        return text[: around.start] + text[around.end :]

    index = around.members.index(member)
    former = around.members[index - 1] if index else None
    if former is not None and former.comma is not None and member.comma is None:
        # the former member is the last one now
        head = text[: former.comma - 1] + text[former.comma : start]
        return head + text[end:]
    return text[:start] + text[end:]


def _write_json(value: object, indent: str, newline: str, unit: str) -> str:
    """Return a value in lines that begin with this indentation, the first one excepted."""
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", newline + indent)


def _newline(text: str) -> str:
    match = re.search(r"\r?\n", text)
    return match.group() if match else "\n"


def _unit(text: str) -> str:
    """Return the indentation of the first line that has one: a tab or some spaces."""
    match = re.search(r"^[ \t]+(?=[\"\[])", text, re.MULTILINE)
    return match.group() if match else "  "


def _indent(text: str, index: int) -> str:
    """Return the indentation of the line around an index, of what is before the index."""
    line = text[text.rfind("\n", 0, index) + 1 : index].removeprefix(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]


# --- TOML --------------------------------------------------------------------------------------------------------

_HEADER = re.compile(r"^[ \t]*\[[^\r\n]*\][ \t]*(?:#[^\r\n]*)?\r?$", re.MULTILINE)
_LINE = re.compile(r"[^\n]*(?:\n|$)")
_GROUP = re.compile(rf"[ \t]*\[\[[ \t]*{HOOKS}[ \t]*\.")
_TABLE_IN_GROUP = re.compile(rf"{_GROUP.pattern}[^.\]]*\.")


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix(_BOM))
    except tomllib.TOMLDecodeError as error:
        raise _invalid("TOML", str(error)) from None
    except RecursionError:
        raise _invalid("TOML", "it is nested too deeply") from None


def _put_toml(text: str, section: str, entry: Entry, *, replace: bool) -> str:
    newline = _newline(text)
    table = _table(f"[{section}.{NAME}]", entry, newline)
    tables = list(_tables(text, section)) if replace else []
    if tables:
        for start, end in reversed(tables[1:]):
            text = text[:start] + text[end:]
        start, end = tables[0]
        return text[:start] + table + text[end:]
    if not text.strip(_BOM):
        return text + table
    if not text.endswith("\n"):
        text += newline
    return text + newline + table


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return the text without some spans, and without the blank line before each."""
    for start, end in reversed(list(spans)):
        head = text[:start]
        if head.endswith(("\n\n", "\n\r\n")):
            head = head.removesuffix("\n").removesuffix("\r")
        text = head + text[end:]
    return text


def _tables(text: str, section: str) -> Iterator[tuple[int, int]]:
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


def _put_hooks(text: str, hooks: Mapping[str, list[Any]]) -> str:
    """Return the text with these groups of hooks at its end, in one order: an uninstallation compares texts."""
    newline = _newline(text)
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


def _our_groups(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of Folklore's groups of hooks: an array table of an event with the tables in it."""
    start: int | None = None
    headers = [header.start() for header in _HEADER.finditer(text)]
    for index in [*headers, len(text)]:
        if _TABLE_IN_GROUP.match(text, index):
            continue
        if start is not None:
            end = _end_of_table(text, start, index)
            with suppress(EditError):
                if _our_hooks(_read_toml(text[start:end])):
                    yield start, end
        start = index if _GROUP.match(text, index) else None


def _our_hooks(document: Mapping[str, Any]) -> dict[str, Any]:
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


def _without_hooks(
    document: dict[str, Any], result: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values of a document without Folklore's groups of hooks; an empty table is where `result` has one."""
    ours = _our_hooks(document)
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
