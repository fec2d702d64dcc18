"""The project that a process works in: the repository around its directory, the same for every clone and worktree."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from folklore.client.repository_files import repository_at
from folklore.text import names

ORIGIN = "origin"
UPSTREAM = "upstream"
# Variables that git sets for its hooks, by which every command would work in the hook's repository.
_OF_A_HOOK = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"})


def project_namespace(directory: Path, remote: str | None = None) -> str:
    """Return the namespace of the repository that holds `directory`: from its remote, else from its common directory.

    `remote` is the name of the remote to prefer to origin, if the repository has it. What git does not tell, since it
    is missing or refuses, is read from the repository's files. Outside a repository it is "default". Never raises.
    """
    address = _address(directory, remote)
    if address and address.startswith("."):  # relative to the repository
        address = os.path.realpath(repository_root(directory) / address)
    namespace = names.of_project(address) if address else None
    if namespace:
        return namespace
    common = _common_directory(directory)
    if common is None:
        return names.DEFAULT
    folder = common.parent if common.name == ".git" else common
    return names.of_folder(os.path.realpath(folder)) or names.DEFAULT


def repository_root(directory: Path) -> Path:
    """Return the top directory of the working tree that holds `directory`, else `directory` itself."""
    top = _git(directory, "rev-parse", "--show-toplevel")
    if top:
        return Path(top)
    repository = repository_at(directory)
    if repository is None:
        return directory
    return repository.root


def upstream_namespace(directory: Path) -> str | None:
    """Return the namespace of what a fork was made from, by its remote `upstream`; None if that is the project."""
    upstream = project_namespace(directory, UPSTREAM)
    if upstream == project_namespace(directory):
        return None
    return upstream


def fork_advice(directory: Path, remote: str | None) -> str:
    """Return how a fork shares the memory of its upstream, "" where it does or there is none."""
    upstream = None
    if remote is None:
        upstream = upstream_namespace(directory)
    if upstream is None:
        return ""
    return (
        f"; this is a fork of {upstream}: with `remote: {UPSTREAM}` in config.yaml,"
        " all forks share its memory"
    )


def working_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory the assistant works in: CLAUDE_PROJECT_DIR (set by Claude Code), else this process's."""
    path = environ.get("CLAUDE_PROJECT_DIR")
    try:
        if path:
            return Path(path)
        return Path.cwd()
    except OSError:  # the directory was removed under us
        return Path(os.sep)


def _address(directory: Path, preferred: str | None) -> str | None:
    """Return the URL of the preferred remote, of `origin`, or of the only remote, which a clone may have called otherwise.

    `git remote get-url` writes out a URL that the settings of this user shorten (url.BASE.insteadOf).
    """
    listed = _git(
        directory, "config", "--name-only", "--get-regexp", r"^remote\..*\.url$"
    )
    if listed is None:
        repository = repository_at(directory)
        urls = {} if repository is None else repository.remotes()
        name = _chosen(set(urls), preferred)
        return None if name is None else urls[name]
    remotes = set()
    for line in listed.splitlines():
        remotes.add(line.removeprefix("remote.").removesuffix(".url"))
    name = _chosen(remotes, preferred)
    if name is None:
        return None
    return _git(directory, "remote", "get-url", "--", name)


def _chosen(remotes: set[str], preferred: str | None) -> str | None:
    for name in (preferred, ORIGIN):
        if name in remotes:
            return name
    if len(remotes) == 1:
        return remotes.pop()
    return None


def _common_directory(directory: Path) -> Path | None:
    """Return the directory that all worktrees of a repository share."""
    common = _git(directory, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if common:
        return Path(common)
    repository = repository_at(directory)
    if repository is None:
        return None
    return repository.common


def _git(directory: Path, *arguments: str) -> str | None:
    """Return what git prints; None if it fails or prints nothing."""
    environment = dict(os.environ)
    for name in _OF_A_HOOK:
        environment.pop(name, None)
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            ["git", "-C", str(directory), *arguments],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    if done.returncode != 0:
        return None
    return done.stdout.strip() or None
