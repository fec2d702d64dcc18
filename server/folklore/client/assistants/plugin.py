"""The plugin, and the folders of assistants that it is copied to, with the full path of Folklore's command in it.

A folder records what was installed. A file that its owner changed since stays as it is, at an update as at the end.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from folklore.client.assistants.changes import (
    Action,
    Change,
    merged,
    read_bytes,
    uninstall,
    write,
)
from folklore.client.assistants.entry import HOOKS, NAME
from folklore.client.assistants.known import Client, Machine
from folklore.errors import Conflict

_COMMAND = "folklore"
_SERVERS = "mcpServers"
_RECORD = ".folklore.json"


@dataclass(frozen=True, slots=True)
class FolderChange:
    """Change of a folder: of each of its files, and the files that stay since their owner changed them."""

    path: Path
    action: Action
    files: Sequence[Change]
    remaining: Sequence[Path] = ()

    @property
    def writes(self) -> bool:
        """Return whether there is anything to write."""
        return any(file.writes for file in self.files)


def files_of(parts: Mapping[str, str], command: Sequence[str]) -> dict[str, bytes]:
    """Return the files of the plugin by their names in a folder; `command` is Folklore's, without `serve`."""
    return {name: _rendered(_tree() / part, command) for name, part in parts.items()}


def hooks_of(parts: Sequence[str], command: Sequence[str]) -> dict[str, Any]:
    """Return the groups of hooks by event that these files of the plugin hold."""
    hooks: dict[str, Any] = {}
    for part in parts:
        hooks |= json.loads(_rendered(_tree() / part, command))[HOOKS]
    return hooks


def install_folder(
    path: Path,
    files: Mapping[str, bytes],
    *,
    server_in: str | None,
    former: Mapping[str, Any],
    force: bool,
) -> FolderChange:
    """Return the change that makes these the files of a folder.

    `server_in` holds the server: what its owner added to that, or to a `former` entry elsewhere, stays. Raises Conflict
    for a folder that Folklore did not make, without `force`.
    """
    record = _record(path)
    if not force:
        _require_ours(path, record, files)
    digests = record or {}
    contents = _with_server(path, files, server_in, former)
    changed = {} if force else _changed(path, contents, digests, server_in)
    changes = []
    new_record = {}
    for name, content in contents.items():
        if name in changed:
            new_record[name] = changed[name]
        else:
            new_record[name] = _digest(content)
            changes.append(_change(path / name, content))
    for name in _as_recorded(path, digests) - files.keys():
        changes.append(_removal(path / name))
    changes.append(_change(path / _RECORD, _document(new_record)))
    action: Action = "added" if record is None else "updated"
    change = FolderChange(path, action, changes, [path / name for name in changed])
    if change.writes:
        return change
    return replace(change, action="unchanged")


def uninstall_folder(path: Path, server_in: str | None) -> FolderChange:
    """Return the change that removes what was installed in a folder."""
    record = _record(path)
    if record is None:
        return FolderChange(path, "absent", [])
    unchanged = _as_recorded(path, record)
    changes = []
    remaining = []
    for name in [*record, _RECORD]:
        if not (path / name).exists():
            continue
        if name in unchanged or name in (server_in, _RECORD):
            changes.append(_removal(path / name))
        else:
            remaining.append(path / name)
    return FolderChange(path, "removed", changes, remaining)


def installation(
    client: Client, machine: Machine, server: str
) -> Literal["none", "of this server", "another"]:
    """Return which Folklore a client starts for this user. Raises as `uninstall` of settings files does."""
    files = [client.file(machine, None)]
    folder = client.folder(machine) if client.folder and client.in_folder else None
    if folder is not None and (folder / _RECORD).exists():
        files = list(folder.rglob("*.json"))
    elif uninstall(files[0], client.section).action in ("absent", "foreign"):
        return "none"
    address = re.compile(re.escape(server.encode()) + rb"(?![\w.-])")
    for file in files:
        if address.search(read_bytes(file) or b""):
            return "of this server"
    return "another"


def write_folder(change: FolderChange) -> None:
    """Write the changes of a folder."""
    for file in change.files:
        if file.writes:
            write(file)


def _tree() -> Path:
    """Return the folder of the plugin: in the package, or in a checkout next to it."""
    packaged = Path(__file__).parents[2] / "plugin"
    if packaged.is_dir():
        return packaged
    return Path(__file__).parents[4] / "plugin"


def _rendered(path: Path, command: Sequence[str]) -> bytes:
    """Return a file with the full command in place of the one on the path."""
    if path.suffix != ".json":
        return path.read_bytes()
    text = path.read_text(encoding="utf-8")
    return _document(_with_command(json.loads(text), command))


def _with_command(value: Any, command: Sequence[str]) -> Any:
    """Return a value of JSON with the full command wherever it starts Folklore's."""
    if isinstance(value, list):
        return [_with_command(element, command) for element in value]
    if not isinstance(value, dict):
        return value
    program, _, words = str(value.get("command")).partition(" ")
    if program != _COMMAND:
        return {key: _with_command(member, command) for key, member in value.items()}
    if words:
        return {**value, "command": f"{shlex.join(command)} {words}"}
    return {**value, "command": command[0], "args": [*command[1:], *value["args"]]}


def _with_server(
    path: Path,
    files: Mapping[str, bytes],
    server_in: str | None,
    former: Mapping[str, Any],
) -> dict[str, bytes]:
    """Return the files with what the owner added to the server in one of them, or to its former entry."""
    if server_in is None:
        return dict(files)
    document = json.loads(files[server_in])
    with suppress(ValueError, KeyError, TypeError):
        former = json.loads(read_bytes(path / server_in) or b"")[_SERVERS][NAME]
    document[_SERVERS][NAME] = merged(former, document[_SERVERS][NAME])
    return {**files, server_in: _document(document)}


def _document(value: object) -> bytes:
    return f"{json.dumps(value, ensure_ascii=False, indent=2)}\n".encode()


def _record(path: Path) -> dict[str, str] | None:
    """Return the digests of the files that were installed in a folder; None without a record of them."""
    content = read_bytes(path / _RECORD)
    if content is None:
        return None
    try:
        record = json.loads(content)
    except ValueError:
        return {}
    if not isinstance(record, dict):
        return {}
    return {name: str(digest) for name, digest in record.items() if _is_inside(name)}


def _is_inside(name: str) -> bool:
    """Return True for a file within the folder: someone may have written another name into the record."""
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts


def _require_ours(
    path: Path, record: Mapping[str, str] | None, files: Mapping[str, bytes]
) -> None:
    if record is not None:
        return
    # Changed files stay when Folklore is removed: a folder with such files alone is no one else's.
    for file in path.rglob("*"):
        if not file.is_dir() and str(file.relative_to(path)) not in files:
            hint = "Rename that folder, or use it with --force."
            raise Conflict(f"{path} is not Folklore's; nothing was changed.", hint=hint)


def _change(path: Path, content: bytes) -> Change:
    previous = read_bytes(path)
    action: Action = "added"
    if previous == content:
        action = "unchanged"
    elif previous:
        action = "updated"
    return Change(path, action, previous, content)


def _changed(
    path: Path,
    files: Mapping[str, bytes],
    record: Mapping[str, str],
    server_in: str | None,
) -> dict[str, str]:
    """Return the recorded digests of files that their owner changed, but not to the new ones nor in the server's."""
    changed = {}
    for name, content in files.items():
        present = read_bytes(path / name)
        if name == server_in or present is None or present == content:
            continue
        if _digest(present) != record.get(name):
            changed[name] = record.get(name, "")
    return changed


def _as_recorded(path: Path, record: Mapping[str, str]) -> set[str]:
    """Return the files that are as they were installed."""
    unchanged = set()
    for name, digest in record.items():
        if _digest(read_bytes(path / name)) == digest:
            unchanged.add(name)
    return unchanged


def _removal(path: Path) -> Change:
    return Change(path, "deleted", read_bytes(path), None)


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
