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
from folklore.client.assistants.editing import HOOKS, NAME
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
        return any(one.writes for one in self.files)


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
    texts = _with_server(path, files, server_in, former)
    changed = {} if force else _changed(path, texts, digests, server_in)
    changes = [
        _change(path / name, content)
        for name, content in texts.items()
        if name not in changed
    ]
    changes += [
        _removal(path / name) for name in _as_recorded(path, digests) - files.keys()
    ]
    new_record = {name: _digest(content) for name, content in texts.items()} | changed
    changes.append(_change(path / _RECORD, _document(new_record)))
    change = FolderChange(
        path,
        "added" if record is None else "updated",
        changes,
        [*map(path.joinpath, changed)],
    )
    if change.writes:
        return change
    return replace(change, action="unchanged")


def uninstall_folder(path: Path, server_in: str | None) -> FolderChange:
    """Return the change that removes what was installed in a folder."""
    record = _record(path)
    if record is None:
        return FolderChange(path, "absent", [])
    unchanged = _as_recorded(path, record)
    ours = [name for name in record if name == server_in or name in unchanged]
    remaining = [
        path / name for name in record if name not in ours and (path / name).exists()
    ]
    changes = [
        _removal(path / name) for name in [*ours, _RECORD] if (path / name).exists()
    ]
    return FolderChange(path, "removed", changes, remaining)


def installation(
    client: Client, machine: Machine, server: str
) -> Literal["none", "of this server", "another"]:
    """Return which Folklore a client starts for this user. Raises as `uninstall` of settings files does."""
    file = client.file(machine, None)
    folder = client.folder and client.in_folder and client.folder(machine)
    if not (folder and (folder / _RECORD).exists()):
        folder = None
        if uninstall(file, client.section).action in ("absent", "foreign"):
            return "none"
    address = re.compile(re.escape(server.encode()) + rb"(?![\w.-])")
    texts = map(read_bytes, folder.rglob("*.json") if folder else [file])
    if any(address.search(text or b"") for text in texts):
        return "of this server"
    return "another"


def write_folder(change: FolderChange) -> None:
    """Write the changes of a folder."""
    for one in change.files:
        if one.writes:
            write(one)


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
    if isinstance(value, list):
        return [_with_command(one, command) for one in value]
    if not isinstance(value, dict):
        return value
    program, _, words = str(value.get("command")).partition(" ")
    if program != _COMMAND:
        return {key: _with_command(one, command) for key, one in value.items()}
    if not words:
        return {**value, "command": command[0], "args": [*command[1:], *value["args"]]}
    return {**value, "command": f"{shlex.join(command)} {words}"}


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
    with suppress(ValueError):
        record = json.loads(content)
        if isinstance(record, dict):
            # A record that someone wrote names no file outside the folder.
            paths = ((name, Path(name)) for name in record)
            return {
                name: str(record[name])
                for name, path in paths
                if not path.is_absolute() and ".." not in path.parts
            }
    return {}


def _require_ours(
    path: Path, record: Mapping[str, str] | None, files: Mapping[str, bytes]
) -> None:
    # Changed files stay when Folklore is removed: a folder with such files alone is no one else's.
    others = (
        file
        for file in path.rglob("*")
        if not file.is_dir() and str(file.relative_to(path)) not in files
    )
    if record is None and any(others):
        hint = "Rename that folder, or use it with --force."
        raise Conflict(f"{path} is not Folklore's; nothing was changed.", hint=hint)


def _change(path: Path, content: bytes) -> Change:
    previous = read_bytes(path)
    return Change(
        path,
        "unchanged" if previous == content else "updated" if previous else "added",
        previous,
        content,
    )


def _changed(
    path: Path,
    files: Mapping[str, bytes],
    record: Mapping[str, str],
    server_in: str | None,
) -> dict[str, str]:
    """Return the recorded digests of files that their owner changed, but not to the new ones nor in the server's."""
    present = {name: read_bytes(path / name) for name in files if name != server_in}
    return {
        name: record.get(name, "")
        for name, content in present.items()
        if content not in (None, files[name]) and _digest(content) != record.get(name)
    }


def _as_recorded(path: Path, record: Mapping[str, str]) -> set[str]:
    """Return the files that are as they were installed."""
    return {
        name
        for name, digest in record.items()
        if _digest(read_bytes(path / name)) == digest
    }


def _removal(path: Path) -> Change:
    return Change(path, "deleted", read_bytes(path), None)


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
