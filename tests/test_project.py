"""The namespace of a repository is the same for every clone, worktree and colleague."""

import subprocess
from pathlib import Path

import pytest

from folklore.project import project_namespace, working_directory
from tests.repositories import git_without_settings  # noqa: F401 - the fixture `user_of_git`

pytestmark = pytest.mark.usefixtures("user_of_git")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-C", str(folder), *arguments],
        check=True,
        capture_output=True,
        timeout=20,
    )


def repository(folder: Path, remote: str | None = None) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def test_a_remote_with_a_shortened_url_names_the_project_by_its_full_url(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "somewhere", "work:api")
    git(folder, "config", "url.git@github.com:acme/.insteadOf", "work:")

    assert project_namespace(folder) == "repo:acme/api"


def test_a_single_remote_of_any_name_names_the_project(tmp_path: Path) -> None:
    folder = repository(tmp_path / "somewhere")
    git(folder, "remote", "add", "GitHub.com", "git@github.com:acme/api.git")
    git(
        folder, "config", "remote.origin.prune", "true"
    )  # as many users have it for every repository

    assert project_namespace(folder) == "repo:acme/api"


def test_origin_names_the_project_among_several_remotes_and_the_folder_without_origin(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "somewhere", "git@github.com:acme/api.git")
    git(folder, "remote", "add", "fork", "git@github.com:sarah/api.git")
    assert project_namespace(folder) == "repo:acme/api"

    git(folder, "remote", "rename", "origin", "company")
    assert project_namespace(folder) == "repo:somewhere"


def test_the_folder_names_a_repository_without_a_remote_from_any_subfolder(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "api")
    inside = folder / "src" / "deep"
    inside.mkdir(parents=True)

    assert project_namespace(folder) == project_namespace(inside) == "repo:api"


def test_a_worktree_has_the_name_of_its_repository(tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    git(folder, "worktree", "add", "--quiet", str(tmp_path / "elsewhere"))

    assert project_namespace(tmp_path / "elsewhere") == "repo:api"


# tests/text/test_names.py has the others.
SPELLINGS = (
    "git@github.com:acme/api.git", "ssh://sarah@ssh.github.com:443/Acme/api", "git://github.com/acme/api",
    "https://sarah:secret@GitHub.com:8443/acme/API.git/",
)  # fmt: skip


def test_every_clone_subfolder_and_worktree_of_a_repository_has_one_name_however_its_remote_is_spelled(
    tmp_path: Path,
) -> None:
    found = {}
    for place, remote in enumerate(SPELLINGS):
        folder = repository(tmp_path / f"user {place}" / "Checkout", remote)
        worktree = tmp_path / f"user {place}" / "review"
        git(folder, "worktree", "add", "--quiet", str(worktree))
        for inside in (folder / "src" / "deep", worktree / "docs"):
            inside.mkdir(parents=True)
            found[f"{remote} in {inside}"] = project_namespace(inside)
        found[f"{remote} in {folder}"] = project_namespace(folder)

    assert set(found.values()) == {"repo:acme/api"}, found


def test_a_subfolder_reached_by_a_link_has_the_name_of_its_repository(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "somewhere", SPELLINGS[0])
    (folder / "src").mkdir()
    (tmp_path / "link").symlink_to(folder / "src")

    assert project_namespace(tmp_path / "link") == "repo:acme/api"


def test_the_variables_of_a_hook_of_another_repository_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other", "git@github.com:acme/web.git")
    folder = repository(tmp_path / "somewhere", SPELLINGS[0])
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))

    assert project_namespace(folder) == "repo:acme/api"


def test_a_folder_outside_a_repository_or_without_git_has_the_default_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project_namespace(tmp_path) == "default"
    assert project_namespace(tmp_path / "missing") == "default"

    monkeypatch.setenv("PATH", str(tmp_path))
    assert project_namespace(repository_without_git(tmp_path)) == "default"


def repository_without_git(tmp_path: Path) -> Path:
    (tmp_path / "api" / ".git").mkdir(parents=True)
    return tmp_path / "api"


def test_the_variable_of_the_assistant_names_the_project_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert working_directory({"CLAUDE_PROJECT_DIR": "/work/api"}) == Path("/work/api")
    assert working_directory({}) == tmp_path
    assert working_directory({"CLAUDE_PROJECT_DIR": ""}) == tmp_path
