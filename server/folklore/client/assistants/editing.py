"""Edits of another program's settings: one server is added or removed, every other byte stays.

No library does this: those that keep comments write the file anew from a model of it, which takes seconds for the
megabytes that Claude Code keeps in one file, and change spaces, line ends or the byte order mark. tomlkit 0.15 changes
the order of an array of tables that has other tables between its members, as Codex writes approvals of hooks. So the
text is edited by position, and the parsers of the standard library check each result: it must hold what the file held,
plus or minus the one server, else nothing is written.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from folklore.client.assistants.entry import HOOKS, NAME, EditError, Entry, not_editable
from folklore.client.assistants.json_edits import (
    Document,
    cut,
    drop_json,
    insert,
    put_json,
    read_json,
    whole_json,
)
from folklore.client.assistants.toml_edits import (
    our_groups,
    our_hooks,
    put_hooks,
    put_toml,
    read_toml,
    tables_of,
    without,
    without_hooks,
)


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
            hooks = our_hooks(document)
            if hooks:
                return {**entry, HOOKS: hooks}
        return entry

    def put(self, text: str, entry: Entry) -> str:
        """Return the text with this entry in place of the present one, if any."""
        if self.toml:
            return self._put_toml(text, entry)
        target = self._read(text)
        target[self.key] = {**target.get(self.key, {}), NAME: dict(entry)}
        return self._checked(put_json(text, self.key, entry), target)

    def _put_toml(self, text: str, entry: Entry) -> str:
        server = dict(entry)
        hooks = server.pop(HOOKS, {})
        target = self._read(text)
        servers = target.get(self.key, {})
        target[self.key] = {**servers, NAME: server}

        result = without(text, our_groups(text))
        result = put_toml(result, self.key, server, replace=NAME in servers)
        target = without_hooks(target, self._read(result))
        if hooks:
            groups_by_event = target.setdefault(HOOKS, {})
            for event, groups in hooks.items():
                present = groups_by_event.get(event, [])
                groups_by_event[event] = [*present, *groups]
        return self._checked(put_hooks(result, hooks), target)

    def drop(self, text: str, *, keep_section: bool) -> str:
        """Return the text without the entry, and without the section if nothing is left in it, no comment either.

        `keep_section` keeps an empty section of JSON; in TOML a header of its own always stays.
        """
        target = self._read(text)
        del target[self.key][NAME]
        if self.toml:
            result = without(text, our_groups(text))
            result = without(result, tables_of(result, self.key))
            if self.key not in self._read(result):
                del target[self.key]
            return self._checked(result, without_hooks(target, self._read(result)))
        result, empty = drop_json(text, self.key, keep_section)
        if empty:
            del target[self.key]
        return self._checked(result, target)

    def has(self, text: str) -> bool:
        """Return whether the file has this section, even an empty one."""
        return self.key in self._read(text)

    def _read(self, text: str) -> dict[str, Any]:
        if self.toml:
            return read_toml(text)
        return read_json(text)

    def _checked(self, text: str, target: Mapping[str, Any]) -> str:
        """Return the text. Raises EditError if it does not hold exactly what it should."""
        with suppress(EditError):
            if self._read(text) == target:
                return text
        raise not_editable(self.key)


@dataclass(frozen=True, slots=True)
class HookFile:
    """Settings file of hooks alone, as Cursor has it: `version`, and lists of commands by event in `hooks`.

    Folklore's entry is the object `hooks` with its own commands alone; these end with the words `ending`.
    """

    ending: str

    def find(self, text: str) -> Entry | None:
        """Return Folklore's entry. Raises EditError for a text that is not valid."""
        ours = {}
        for event, commands in _lists_of_hooks(read_json(text)).items():
            our_commands = [command for command in commands if self._is_ours(command)]
            if our_commands:
                ours[event] = our_commands
        return {HOOKS: ours} if ours else None

    def put(self, text: str, entry: Entry) -> str:
        """Return the text with this entry in place of the present one, if any."""
        document = read_json(text)
        without_ours = self._without(text)
        hooks = self._others(document, read_json(without_ours))
        for event, commands in entry[HOOKS].items():
            hooks[event] = [*commands, *hooks.get(event, [])]
        target = {"version": 1, **document, HOOKS: hooks}

        if Document(text).root() is None:
            return self._checked(whole_json(text, target), target)
        result = without_ours
        for event, commands in reversed(entry[HOOKS].items()):
            result = _put_in_list(result, event, commands)
        if "version" not in document:
            result = insert(result, Document(result).outermost(), "version", 1)
        return self._checked(result, target)

    def drop(self, text: str, *, keep_section: bool) -> str:
        """Return the text without the entry; `keep_section` keeps an empty object `hooks`."""
        result = self._without(text)
        target = read_json(text)
        target[HOOKS] = self._others(target, read_json(result))
        document = Document(result)
        hooks = document.section(HOOKS)
        assert hooks is not None
        if not keep_section and not result[hooks.start : hooks.end].strip():
            root = document.outermost()
            result = cut(result, root, root.member(HOOKS))
            del target[HOOKS]
        return self._checked(result, target)

    def has(self, text: str) -> bool:
        """Return whether the file has hooks, even none."""
        return HOOKS in read_json(text)

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
            commands = Document(text).list_of(HOOKS, event)
            assert commands is not None
            text = cut(text, commands, commands.members[index])
            document = Document(text)
            others = document.list_of(HOOKS, event)
            assert others is not None
            if not text[others.start : others.end].strip():
                hooks = document.section(HOOKS)
                assert hooks is not None
                text = cut(text, hooks, hooks.member(event))
        return text

    def _first(self, text: str) -> tuple[str, int] | None:
        """Return the event and the index of Folklore's first command."""
        for event, commands in _lists_of_hooks(read_json(text)).items():
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
            if read_json(text) == target:
                return text
        raise not_editable(HOOKS)


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
    document = Document(text)
    hooks = document.section(HOOKS)
    if hooks is None:
        return insert(text, document.outermost(), HOOKS, {event: list(commands)})
    if document.list_of(HOOKS, event) is None:
        return insert(text, hooks, event, list(commands))
    for command in reversed(commands):
        present = Document(text).list_of(HOOKS, event)
        assert present is not None
        text = insert(text, present, None, command)
    return text


def _runs(command: str, ending: str) -> bool:
    """Return whether a command line runs Folklore with these last words."""
    return re.search(rf"{NAME}.* {re.escape(ending)}$", command) is not None
