"""Changes of an assistant's settings file: decided first, shown or written after."""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Literal, TypeGuard

from folklore.client.assistants.editing import HookFile, Section
from folklore.client.assistants.entry import HOOKS, NAME, EditError, Entry
from folklore.client.whole_file import replace_file
from folklore.config import known_home
from folklore.errors import Conflict, InvalidInput, Refused

Action = Literal[
    "added",
    "updated",
    "unchanged",
    "removed",
    "restored",
    "deleted",
    "absent",
    "foreign",
]

# What an installation decides. An entry may hold more of its owner's: `env`, `disabled`, `timeout` stay.
_OURS = frozenset(
    {
        "type",
        "command",
        "args",
        "enabled",
        "url",
        "httpUrl",
        "serverUrl",
        "bearer_token_env_var",
        "alwaysLoad",
        HOOKS,
    }
)
_HEADERS = ("headers", "http_headers")
_OUR_URL = re.compile(r"^https?://[^?]*/(?:mcp|sse)(?:\?namespace=[^&]*)?$")


@dataclass(frozen=True, slots=True)
class Change:
    """Content of a settings file before and after; None: no such file.

    `backup` is the copy of the file before the installation, if there is one afterwards; `saves`: it is made now.
    """

    path: Path
    action: Action
    previous: bytes | None
    content: bytes | None
    backup: Path | None = None
    saves: bool = False

    @property
    def writes(self) -> bool:
        """Return whether there is anything to write."""
        return self.previous != self.content

    @property
    def planned(self) -> Literal["make", "change", "delete"]:
        """Return what a write does to the file."""
        if self.previous is None:
            return "make"
        if self.content is None:
            return "delete"
        return "change"


def install(
    path: Path, section: Section | HookFile, entry: Entry, *, force: bool
) -> Change:
    """Return the change that makes this the entry of a file.

    Raises InvalidInput for a file that is not valid, Refused for one that may not be written, and Conflict for an
    entry of the same name that is not Folklore's, without `force`.
    """
    previous, text = _read(path)
    with _errors_of(path):
        present = section.find(text)
    if present is not None and not is_ours(present) and not force:
        raise Conflict(
            f"{path} has an entry {NAME} that is not Folklore's; nothing was changed.",
            hint="Rename that entry, or replace it with --force.",
        )
    if is_ours(present):
        entry = merged(present, entry)
        if entry == present:
            return Change(path, "unchanged", previous, previous)
    _check_writable(path)
    with _errors_of(path):
        content = section.put(text, entry).encode()
    if is_ours(present):  # the backup of the installation stays
        return Change(path, "updated", previous, content, _existing(_backup(path)))
    action: Action = "added" if present is None else "updated"
    if previous is None:
        return Change(path, action, previous, content)
    return Change(path, action, previous, content, _backup(path), saves=True)


def uninstall(path: Path, section: Section | HookFile) -> Change:
    """Return the change that removes Folklore's entry.

    If the file is as the installation left it, it becomes what it was before. Raises as `install` does.
    """
    # valid or not, it is no concern of this
    if NAME.encode() not in (read_bytes(path) or b""):
        return Change(path, "absent", None, None)
    previous, text = _read(path)
    with _errors_of(path):
        entry = section.find(text)
    if not is_ours(entry):
        action: Action = "absent" if entry is None else "foreign"
        return Change(path, action, previous, previous)
    _check_writable(path)
    backup = _backup(path)
    content, former = _read(backup)
    with suppress(EditError):
        if section.put(former, entry) == text:
            action = "deleted" if content is None else "restored"
            return Change(path, action, previous, content)
    had_section = False
    with suppress(EditError):
        had_section = content is not None and section.has(former)
    with _errors_of(path):
        result = section.drop(text, keep_section=had_section).encode()
    return Change(path, "removed", previous, result, _existing(backup))


def write(change: Change) -> None:
    """Write a change by renaming a complete file over the old one, through links. A new file keeps the old one's mode.

    Folders that a removal leaves empty are removed too, but the home. Raises Conflict if the file has changed since it
    was read.
    """
    target = Path(os.path.realpath(change.path))
    backup = _backup(change.path)
    if read_bytes(target) != change.previous:
        raise Conflict(
            f"{change.path} has changed at this moment; nothing was changed.",
            hint="Run the command again.",
        )
    mode = None
    if change.previous is not None:
        model = backup if change.action == "restored" else target
        mode = stat.S_IMODE(model.stat().st_mode)
        if change.saves:
            replace_file(backup, change.previous, mode)
    if change.content is None:
        target.unlink()
        _remove_empty_folders(change.path)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, change.content, mode)
    if change.action == "restored":
        backup.unlink()


def _remove_empty_folders(path: Path) -> None:
    home = known_home()
    with suppress(OSError):  # not empty
        for folder in path.parents:
            if home is None or home.is_relative_to(folder):
                return
            folder.rmdir()


def is_ours(entry: Entry | None) -> TypeGuard[Entry]:
    """Return whether an entry starts Folklore, or is of the form that an installation over HTTP writes."""
    if entry is None:
        return False
    if entry.keys() == {HOOKS}:  # a file of hooks names its own alone
        return True
    command = entry.get("command")
    if command:
        words = list(command) if isinstance(command, list) else [command]
        arguments = entry.get("args")
        if isinstance(arguments, list):
            words += arguments
        return _starts_folklore([str(word) for word in words])
    for key in ("url", "httpUrl", "serverUrl"):
        if key in entry:
            url = entry[key]
            return isinstance(url, str) and _OUR_URL.search(url) is not None
    return False


def _starts_folklore(words: Sequence[str]) -> bool:
    """Return whether a command is `folklore … serve`, `python -m folklore … serve`, or uvx or pipx with the same."""
    programs = [PurePath(word).name for word in words]
    starts = (
        programs[0] == "folklore"
        or "folklore-mcp" in programs
        or ("-m", "folklore") in pairwise(words)
    )
    return starts and "serve" in words


def merged(present: Entry, entry: Entry) -> Entry:
    """Return the wanted entry with what else the present one holds, other headers included."""
    result: dict[str, Any] = dict(entry)
    for key, value in present.items():
        if key not in _OURS and key not in _HEADERS:
            result[key] = value
    if "command" in entry:
        return result
    for name in _HEADERS:
        if isinstance(present.get(name), dict):
            headers = _other_headers(present[name]) | entry.get(name, {})
            if headers:
                result[name] = headers
            return result
    return result


def _other_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers but that of the token."""
    others = {}
    for name, value in headers.items():
        if name.lower() != "authorization":
            others[name] = value
    return others


@contextmanager
def _errors_of(path: Path) -> Iterator[None]:
    try:
        yield
    except EditError as error:
        raise InvalidInput(str(path), str(error), hint=error.hint) from None


def _backup(path: Path) -> Path:
    return path.with_name(f"{path.name}.before-folklore")


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def read_bytes(path: Path) -> bytes | None:
    """Return the content of a file; None without one."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _read(path: Path) -> tuple[bytes | None, str]:
    content = read_bytes(path)
    try:
        return content, (content or b"").decode()
    except UnicodeDecodeError:
        raise InvalidInput(
            str(path),
            "is not UTF-8; nothing was changed.",
            hint="Save it as UTF-8 first.",
        ) from None


def _check_writable(path: Path) -> None:
    """Raise Refused for a read-only file: renaming would replace it, but another program manages it."""
    target = Path(os.path.realpath(path))
    if not target.exists():
        return
    has_write_mode = target.stat().st_mode & 0o222
    if not has_write_mode or not os.access(target, os.W_OK):
        raise Refused(
            f"{path} is read-only; nothing was changed.",
            hint="Make it writable, or put the entry of `folklore install --print` where the file is made.",
        )


def changed_lines(change: Change) -> str:
    """Return a change as a unified diff, with a token of an earlier installation masked."""
    old = (change.previous or b"").decode().splitlines(keepends=True)
    new = (change.content or b"").decode().splitlines(keepends=True)
    old_name = "/dev/null" if change.previous is None else str(change.path)
    new_name = "/dev/null" if change.content is None else str(change.path)
    text = ""
    for line in unified_diff(old, new, old_name, new_name):
        text += line if line.endswith("\n") else f"{line}\n"
    return re.sub(r"Bearer (?![${])[^\s\"']+", "Bearer ***", text)
