"""The namespace of a repository is the same for every clone, worktree and colleague."""

import subprocess
from pathlib import Path

import pytest

from folklore.client.project import (
    project_namespace,
    repository_root,
    upstream_namespace,
    working_directory,
)
from folklore.text import names
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
    # as many users have it for every repository
    git(folder, "config", "remote.origin.prune", "true")

    assert project_namespace(folder) == "repo:acme/api"


def test_origin_names_the_project_among_several_remotes_and_the_folder_without_origin(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "somewhere", "git@github.com:acme/api.git")
    git(folder, "remote", "add", "fork", "git@github.com:sarah/api.git")
    assert project_namespace(folder) == "repo:acme/api"

    git(folder, "remote", "rename", "origin", "company")
    assert names.former(project_namespace(folder)) == "repo:somewhere"


def test_the_folder_names_a_repository_without_a_remote_from_any_subfolder(
    tmp_path: Path,
) -> None:
    folder = repository(tmp_path / "api")
    inside = folder / "src" / "deep"
    inside.mkdir(parents=True)

    assert project_namespace(folder) == project_namespace(inside)
    assert names.former(project_namespace(folder)) == "repo:api"


def test_a_worktree_has_the_name_of_its_repository(tmp_path: Path) -> None:
    folder = repository(tmp_path / "api")
    git(folder, "worktree", "add", "--quiet", str(tmp_path / "elsewhere"))

    assert project_namespace(tmp_path / "elsewhere") == project_namespace(folder)


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


def test_two_folders_of_one_name_without_a_remote_are_two_projects(
    tmp_path: Path,
) -> None:
    one = repository(tmp_path / "alpha" / "app")
    other = repository(tmp_path / "beta" / "app")

    found = [project_namespace(one), project_namespace(other)]

    assert len(set(found)) == 2
    assert [names.former(name) for name in found] == ["repo:app", "repo:app"]
    (tmp_path / "link").symlink_to(one)
    assert project_namespace(tmp_path / "link") == found[0]


def test_repositories_of_one_path_on_two_hosts_are_two_projects(tmp_path: Path) -> None:
    found = [
        project_namespace(repository(tmp_path / str(place), remote))
        for place, remote in enumerate(
            [
                "https://github.com/acme/shop",
                "https://gitlab.example.com:8443/acme/shop.git",
                "git@git.example.org:acme/shop.git",
                "/srv/git/acme/shop.git",
                "/mnt/git/acme/shop.git",
                "../shop.git",
            ]
        )
    ]

    assert found[:3] == [
        "repo:acme/shop",
        "repo:gitlab.example.com/acme/shop",
        "repo:git.example.org/acme/shop",
    ]
    assert len(set(found)) == 6


@pytest.mark.parametrize("remote", ["git@gitlab.com:acme/shop.git", None])
def test_a_repository_is_read_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remote: str | None
) -> None:
    folder = repository(tmp_path / "somewhere", remote)
    git(folder, "remote", "add", "odd.name", "https://elsewhere.org/a/b")
    worktree = tmp_path / "review"
    git(folder, "worktree", "add", "--quiet", str(worktree))
    module = tmp_path / "outer" / "module"
    repository(tmp_path / "outer")
    git(
        tmp_path / "outer",
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "add",
        "--quiet",
        str(folder),
        "module",
    )
    git(module, "remote", "set-url", "origin", "https://gitlab.com/acme/module")
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(folder), str(bare))
    (folder / "src").mkdir()
    places = [folder, folder / "src", worktree, module, bare, tmp_path]
    expected = [(project_namespace(each), repository_root(each)) for each in places]

    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))

    assert [(project_namespace(each), repository_root(each)) for each in places] == (
        expected
    )
    assert expected[-1] == ("default", tmp_path)
    if remote:
        assert expected[0][0] == expected[2][0] == "repo:gitlab.com/acme/shop"


def test_a_repository_of_another_user_is_read_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "somewhere", "git@github.com:acme/api.git")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    refused = subprocess.run(
        ["git", "-C", str(folder), "status"], capture_output=True, check=False
    )
    assert refused.returncode != 0

    assert project_namespace(folder) == "repo:acme/api"
    assert repository_root(folder) == folder


def test_files_of_a_hostile_repository_are_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "api")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    config = folder / ".git" / "config"
    for content in (
        b"\xff\xfe[remote",
        b'[remote "origin"]\nurl',
        b'[remote "origin"]\nurl = \n',
        b"x" * 2**21,
    ):
        config.write_bytes(content)
        assert names.former(project_namespace(folder)) == "repo:api"
    config.unlink()
    config.mkdir()
    assert names.former(project_namespace(folder)) == "repo:api"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / ".git").write_text("gitdir: /dev/zero\n")
    assert project_namespace(tmp_path / "b") == "default"


def test_a_setting_makes_the_upstream_of_a_fork_the_project(tmp_path: Path) -> None:
    fork = repository(tmp_path / "fork", "git@github.com:me/shop.git")
    assert upstream_namespace(fork) is None

    git(fork, "remote", "add", "upstream", "https://github.com/acme/shop")

    assert project_namespace(fork) == "repo:me/shop"
    assert project_namespace(fork, "upstream") == upstream_namespace(fork)
    assert upstream_namespace(fork) == "repo:acme/shop"
    plain = repository(tmp_path / "plain", "git@github.com:acme/web.git")
    assert project_namespace(plain, "upstream") == "repo:acme/web"
