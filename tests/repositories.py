"""Git repositories for tests: real ones, with commits at stated times."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

START = datetime(2026, 5, 1, 9, 0, tzinfo=UTC)


@dataclass
class Repository:
    """A repository and its working copy; each commit is dated an hour after the one before."""

    root: Path
    at: datetime = START

    def git(self, *arguments: str) -> str:
        """Run git at the present time of the repository."""
        stamp = {
            name: f"{int(self.at.timestamp())} +0000"
            for name in ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")
        }
        done = subprocess.run(
            ["git", "-C", str(self.root), *arguments],
            check=True, capture_output=True, timeout=60, env=os.environ | stamp,
        )  # fmt: skip
        return done.stdout.decode().strip()

    def write(self, path: str, text: str) -> Path:
        """Write a file of the working copy, uncommitted."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def commit(
        self, files: Mapping[str, str | None] | None = None, message: str = "change"
    ) -> str:
        """Write files (None removes one), commit all that differs, and return the commit."""
        self.at += timedelta(hours=1)
        for path, text in (files or {}).items():
            if text is None:
                (self.root / path).unlink()
            else:
                self.write(path, text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head

    def clone(self, root: Path, *options: str) -> Repository:
        """Clone it over git's own protocol, as from another machine."""
        self.git("clone", "--quiet", *options, f"file://{self.root}", str(root))
        return Repository(root, self.at)

    @property
    def head(self) -> str:
        """The present commit."""
        return self.git("rev-parse", "HEAD")


@pytest.fixture(name="user_of_git")
def git_without_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the developer's settings of git out, and find no repository around the tests' folders."""
    for variable in (
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
    ):
        monkeypatch.setenv(variable, "tester")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")


def repository_of(folder: Path, remote: str) -> Path:
    """Make a repository without a commit, whose remote `origin` is this."""
    folder.mkdir(parents=True)
    for arguments in (["init", "--quiet"], ["remote", "add", "origin", remote]):
        subprocess.run(["git", *arguments], cwd=folder, check=True, timeout=60)
    return folder


def new_repository(root: Path, *options: str) -> Repository:
    """Make a repository with one empty commit."""
    root.mkdir(parents=True)
    made = Repository(root)
    made.git("init", "--quiet", "--initial-branch", "main", *options)
    made.commit(message="first")
    return made


@pytest.fixture(name="repository")
def empty_repository(user_of_git: None, tmp_path: Path) -> Repository:
    return new_repository(tmp_path / "shop")
