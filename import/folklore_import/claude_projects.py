"""Folders of Claude Code below `~/.claude/projects`, and the directories on this machine that they belong to.

Claude Code names a folder by the path of its directory, every character but letters and digits replaced by `-`: several
paths have the same name. The paths that are recorded are its transcripts (`cwd` on each line), the projects in
`.claude.json`, and `history.jsonl`. Without a record, the directories on the disk are compared.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from itertools import islice
from pathlib import Path

from folklore.client.project import project_namespace
from folklore.text import names

_REPLACED = re.compile(r"[^a-zA-Z0-9]")
# Claude Code cuts a longer name, and adds a hash of the path.
_NAME_CHARACTERS = 200
_SAME_NAME = 10
_TRANSCRIPTS = 20
_TRANSCRIPT_BYTES = 128 * 1024  # the first lines name the directory
_LINE_BYTES = 1024 * 1024
_SETTINGS_BYTES = 64 * 1024 * 1024
_CWD = re.compile(rb'"cwd":\s?("(?:[^"\\]|\\.){1,4096}")')


def encoded(path: str) -> str:
    """Return the name of the folder for a directory."""
    name = _REPLACED.sub(
        lambda match: "-" * (len(match[0].encode("utf-16-le", "surrogatepass")) // 2),
        path,
    )
    return name[:_NAME_CHARACTERS]


class ClaudeProjects:
    """The projects of one configuration folder, such as `~/.claude`."""

    def __init__(self, root: Path, remote: str | None = None) -> None:
        self._root = root
        self._remote = remote
        self._children = cache(_children)

    def namespace(self, folder: Path) -> tuple[str | None, str]:
        """Return the namespace of the repository that a folder below `projects` belongs to, None with the reason."""
        name = folder.name[:_NAME_CHARACTERS]
        directories = set(self._recorded(folder, name)) or set(self._on_disk(name))
        if not directories:
            return None, "no folder on this machine has this name"

        existing = sorted(path for path in directories if path.is_dir())
        if not existing:
            return None, f"{min(map(str, directories))} does not exist"

        projects = {project_namespace(path, self._remote): path for path in existing}
        if len(projects) > 1:
            several = ", ".join(map(str, existing))
            return None, f"several folders have this name: {several}"

        [(namespace, path)] = projects.items()
        if namespace == names.DEFAULT:
            return None, f"{path} is in no git repository"
        return namespace, ""

    def _recorded(self, folder: Path, name: str) -> Iterator[Path]:
        """Yield the directories of this name among those that Claude Code recorded."""
        for text in _worked_in(folder):
            directory = Path(text)
            for path in (directory, *directory.parents):
                if encoded(str(path)) == name:
                    yield path
        yield from self._known.get(name, ())

    @cached_property
    def _known(self) -> dict[str, list[Path]]:
        """The directories in `.claude.json` and `history.jsonl`, by their names."""
        recorded = {*_settings_projects(self._root), *_history_projects(self._root)}
        folders: dict[str, list[Path]] = {}
        for text in recorded:
            path = Path(text)
            is_absolute = bool(path.anchor) and text.startswith(path.anchor)
            if is_absolute:
                folders.setdefault(encoded(text), []).append(path)
        return folders

    def _on_disk(self, name: str) -> Iterator[Path]:
        """Yield the directories on the disk whose path has this name."""
        anchor = Path(Path.cwd().anchor)
        start = encoded(str(anchor)).removesuffix("-")
        if name.startswith(start) and len(name) < _NAME_CHARACTERS:
            yield from islice(self._below(anchor, name.removeprefix(start)), _SAME_NAME)

    def _below(self, folder: Path, rest: str) -> Iterator[Path]:
        for child in self._children(folder):
            part = f"-{encoded(child)}"
            if rest == part:
                yield folder / child
            elif rest.startswith(f"{part}-"):
                yield from self._below(folder / child, rest.removeprefix(part))


def _worked_in(folder: Path) -> set[str]:
    """Return the directories that the newest transcripts of a folder name."""
    folders: set[str] = set()
    with suppress(OSError):
        for path in _newest_transcripts(folder):
            with suppress(OSError):
                folders |= _directories_in(path)
    return folders


def _newest_transcripts(folder: Path) -> list[Path]:
    files = [
        path for path in folder.iterdir() if path.suffix == ".jsonl" and path.is_file()
    ]
    files.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    return files[:_TRANSCRIPTS]


def _directories_in(transcript: Path) -> set[str]:
    with transcript.open("rb") as file:
        head = file.read(_TRANSCRIPT_BYTES)
    directories = set()
    for match in _CWD.finditer(head):
        with suppress(ValueError):
            directories.add(json.loads(match[1]))
    return directories


def _settings_projects(root: Path) -> Iterable[str]:
    """Return the directories that `.claude.json` has settings for; it is next to `~/.claude`, or in another folder."""
    for path in (root.parent / ".claude.json", root / ".claude.json"):
        with suppress(OSError, ValueError, RecursionError, TypeError, KeyError):
            if path.stat().st_size <= _SETTINGS_BYTES:
                projects = json.loads(path.read_bytes())["projects"]
                return [text for text in projects if isinstance(text, str)]
    return ()


def _history_projects(root: Path) -> set[str]:
    """Return the directories in which prompts were written."""
    projects: set[str] = set()
    with suppress(OSError), (root / "history.jsonl").open("rb") as history:
        while line := history.readline(_LINE_BYTES):
            with suppress(ValueError, RecursionError, TypeError, KeyError):
                project = json.loads(line)["project"]
                if isinstance(project, str):
                    projects.add(project)
    return projects


def _children(folder: Path) -> tuple[str, ...]:
    with suppress(OSError), os.scandir(folder) as entries:
        return tuple(sorted(entry.name for entry in entries if entry.is_dir()))
    return ()
