"""Git as this package may run it: reads of objects and history, in repositories that may be hostile.

A repository's own configuration can name programs: hooks, a file system monitor, external diffs, filters, signature
checks, and transports for objects that a partial clone lacks. None of them runs here: commands read objects alone,
never the index or the work tree, and what the configuration could add is switched off.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

# Variables that git sets for its hooks, or that change what the commands below read or print.
_LEFT_OUT = frozenset(
    {
        "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_DIFF_OPTS",
        "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
    }
)  # fmt: skip
_SAFE = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",  # a file may be called ":(glob)*"
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # no transport has this name; older versions of git know no other way
}
_SETTINGS = (
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "log.showSignature=false"),
    *("-c", "log.follow=false"),
    *("-c", "safe.bareRepository=explicit"),
)
_CHANGES = (
    "log", "--first-parent", "-m", "--raw", "-z", "--no-abbrev", "--no-color", "--no-ext-diff", "--no-textconv",
    "--no-show-signature", "--format=%x01%H %ct",
)  # fmt: skip
_COMMITS = (
    "log", "--no-merges", "--name-only", "-z", "--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature",
    "--format=%x01%H%x02%ct%x02%an%x02%s%x02%b%x02",
)  # fmt: skip
_COMMIT_PARTS = 6  # a message with control characters has more
_COMMIT = re.compile(rb"\x01([0-9a-f]{40,64}) (\d+)\Z")
_ENTRY = re.compile(rb"\s*:\d+ (\d+) ([0-9a-f]+) ([0-9a-f]+) ([A-Z])\d*\Z")
# Renamed files of one commit that git compares with each other.
_RENAMES = 400


class GitFailed(Exception):
    """Git is not there, took too long, or reported an error."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one file by a commit, against its first parent: ids of the contents before and after.

    `kind` is git's letter: A added, M modified, D deleted, R renamed to `to`. `at` is the time of the commit in seconds
    since 1970.
    """

    commit: str
    at: int
    kind: str
    old: str
    new: str
    path: str
    to: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with its message, its time in seconds since 1970, and the paths of the files that it changed."""

    id: str
    at: int
    author: str
    subject: str
    body: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one directory; all its commands together end by `deadline`, in seconds of the monotonic clock."""

    directory: Path
    deadline: float

    def top(self) -> tuple[str, str]:
        """Return the top directory of the work tree, and this directory relative to it. Raises GitFailed."""
        output = self._run("rev-parse", "--show-toplevel", "--show-prefix")
        top, _, prefix = output.partition(b"\n")
        if not top:
            raise GitFailed("no work tree")
        return os.fsdecode(top), os.fsdecode(prefix.removesuffix(b"\n")).rstrip("/")

    def objects(self, names: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Return id and type of the objects of these names (`HEAD:src/a.py`); unknown ones are left out.

        Raises GitFailed.
        """
        requested = [name for name in dict.fromkeys(names) if "\n" not in name]
        lines = "".join(f"{name}\n" for name in requested)
        output = self._run(
            "cat-file",
            "--buffer",
            "--batch-check=%(objectname) %(objecttype)",
            stdin=os.fsencode(lines),
        )
        answers = output.split(b"\n")[: len(requested)]
        if len(answers) < len(requested):
            raise GitFailed("cut off")
        objects = {}
        for name, answer in zip(requested, answers, strict=True):
            id_, _, type_ = answer.rpartition(b" ")
            if type_ in (b"blob", b"tree", b"commit", b"tag") and id_.isalnum():
                objects[name] = id_.decode(), type_.decode()
        return objects

    def changes(
        self,
        head: str,
        paths: Sequence[str],
        *,
        since: int | None = None,
        without: str = "",
    ) -> list[Change]:
        """Return the changes of these paths, and of what is below them, the last one first.

        From the commit `head` along first parents, so that each is dated when it arrived there; only those from the
        time `since` on (seconds since 1970), and not those that the commit `without` has. Raises GitFailed.
        """
        arguments = [*_CHANGES, "--no-renames", head]
        if since is not None:
            arguments.append(f"--since={since}")
        if without:
            arguments.append(f"^{without}")
        return list(_read_changes(self._run(*arguments, "--", *paths)))

    def commits(self, most: int) -> list[Commit]:
        """Return the newest commits that HEAD has but merges, the last one first. Raises GitFailed."""
        output = self._run(*_COMMITS, f"--max-count={most}", "HEAD", "--")
        commits = []
        for record in output.decode(errors="replace").split("\x01"):
            parts = record.split("\x02")
            if len(parts) != _COMMIT_PARTS:
                continue
            id_, at, author, subject, body, names = parts
            paths = tuple(path for path in names.lstrip("\0\n").split("\0") if path)
            commits.append(Commit(id_, int(at), author, subject, body, paths))
        return commits

    def renames(self, commits: Sequence[str]) -> list[Change]:
        """Return the files that these commits renamed. Raises GitFailed."""
        options = ("--no-walk=unsorted", "-M", f"-l{_RENAMES}", "--diff-filter=R")
        return list(_read_changes(self._run(*_CHANGES, *options, *commits, "--")))

    def _run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        seconds = self.deadline - monotonic()
        if seconds <= 0:
            raise GitFailed("too late")
        environment = {**os.environ, **_SAFE}
        for name in _LEFT_OUT:
            environment.pop(name, None)
        try:
            done = subprocess.run(  # noqa: S603 - no shell; revisions are hexadecimal, paths follow `--`
                ["git", "-C", str(self.directory), *_SETTINGS, *arguments],  # noqa: S607 - the user's git
                input=stdin,
                capture_output=True,
                timeout=seconds,
                check=True,
                env=environment,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise GitFailed(type(error).__name__) from error
        return done.stdout


def _read_changes(output: bytes) -> Iterator[Change]:
    """Read `git log --raw -z`: a commit, then for each file its entry and one path, or two of a renamed file."""
    parts = iter(output.split(b"\0"))
    commit = ""
    at = 0
    for part in parts:
        if head := _COMMIT.search(part):
            commit = head[1].decode()
            at = int(head[2])
        elif entry := _ENTRY.match(part):
            _, old, new, kind = [group.decode() for group in entry.groups()]
            path = os.fsdecode(next(parts, b""))
            to = os.fsdecode(next(parts, b"")) if kind in "RC" else ""
            yield Change(commit, at, kind, old, new, path, to)
