"""A repository as its files show it, without git: for machines without it, and where git refuses to read.

Git refuses a repository of another user ("dubious ownership"), since its settings may name programs. Here nothing is
run, and nothing but the addresses of remotes is read.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_LARGEST = 2**20  # bytes of a file that is read
_SECTION = re.compile(r'\[\s*remote\s+"((?:[^"\\]|\\.)*)"\s*\]', re.IGNORECASE)
_URL = re.compile(r"url\s*=\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Repository:
    """The top of a working tree, or a bare repository, and the directory that all of its worktrees share."""

    root: Path
    common: Path

    def remotes(self) -> dict[str, str]:
        """Return the addresses of the remotes by name."""
        remotes: dict[str, str] = {}
        section: re.Match[str] | None = None
        for line in _read(self.common / "config").splitlines():
            text = line.strip()
            if text.startswith("["):
                section = _SECTION.match(text)
                continue
            url = _URL.match(text)
            if section is not None and url is not None:
                name = section[1].replace("\\", "")
                remotes.setdefault(name, url[1].strip().strip('"'))
        return remotes


def repository_at(directory: Path) -> Repository | None:
    """Return the repository that holds a directory; None if there is none. Never raises."""
    with suppress(OSError, RuntimeError):
        here = directory.resolve()
        for folder in (here, *here.parents):
            repository = _repository_in(folder)
            if repository is not None:
                return repository
    return None


def _repository_in(folder: Path) -> Repository | None:
    dot_git = folder / ".git"
    if dot_git.is_file():  # of a worktree or a submodule: it names the directory
        git_directory = _read(dot_git).partition("gitdir:")[2].strip()
        if not git_directory:
            return None
        return _with_common(folder, folder / git_directory)
    if dot_git.is_dir():
        return _with_common(folder, dot_git)
    if (folder / "objects").is_dir():  # a bare repository
        return _with_common(folder, folder)
    return None


def _with_common(root: Path, git_directory: Path) -> Repository | None:
    if not (git_directory / "HEAD").is_file():
        return None
    common = _read(git_directory / "commondir").strip()
    return Repository(root, Path(os.path.normpath(git_directory / common)))


def _read(path: Path) -> str:
    """Return the text of a file, "" if it cannot be read or is too large."""
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return ""
