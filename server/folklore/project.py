"""The project that a process works in: the repository around its directory, the same for every clone and worktree."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from folklore.text import names

# Variables that git sets for its hooks, by which every command would work in the hook's repository.
_OF_A_HOOK = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"})


def project_namespace(directory: Path) -> str:
    """Return the namespace of the repository that holds `directory`: from its remote, else its common directory's name.

    Outside a repository, or without git, it is "default". Never raises.
    """
    remote = _remote(directory)
    if remote and (namespace := names.from_remote(remote)):
        return namespace
    common = _git(directory, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if common:
        path = Path(common)
        return (
            names.from_directory(str(path.parent if path.name == ".git" else path))
            or names.DEFAULT
        )
    return names.DEFAULT


def repository_root(directory: Path) -> Path:
    """Return the top directory of the working tree that holds `directory`, else `directory` itself."""
    return Path(_git(directory, "rev-parse", "--show-toplevel") or directory)


def working_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory the assistant works in: CLAUDE_PROJECT_DIR (set by Claude Code), else this process's."""
    path = environ.get("CLAUDE_PROJECT_DIR")
    try:
        return Path(path) if path else Path.cwd()
    except OSError:  # the directory was removed under us
        return Path(os.sep)


def _remote(directory: Path) -> str | None:
    """Return the URL of `origin`, or of the only remote, which a clone may have called otherwise.

    `git remote get-url` writes out a URL that the settings of this user shorten (url.BASE.insteadOf).
    """
    urls = (
        _git(directory, "config", "--name-only", "--get-regexp", r"^remote\..*\.url$")
        or ""
    )
    remotes = {
        line.removeprefix("remote.").removesuffix(".url") for line in urls.splitlines()
    }
    candidates = {"origin"} & remotes or remotes
    return (
        _git(directory, "remote", "get-url", "--", *candidates)
        if len(candidates) == 1
        else None
    )


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            ["git", "-C", str(directory), *arguments],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
            env={
                name: value
                for name, value in os.environ.items()
                if name not in _OF_A_HOOK
            },
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
