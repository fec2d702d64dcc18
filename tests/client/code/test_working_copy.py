"""Paths get one spelling, and a file that a memory is about is compared with the content that it had then."""

import asyncio
import os
import shutil
import subprocess
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from folklore.client.code import working_copy as module
from folklore.client.code.git import GitFailed
from folklore.client.code.working_copy import Tied, WorkingCopy
from folklore.contract.anchors import Anchor
from folklore.model import Stale
from folklore.text.paths import is_inside, plain_path
from tests.repositories import Repository, git_without_settings, new_repository  # noqa: F401
from tests.waiting import STUCK

CODE = {
    "src/a.py": "a = 1\n",
    "src/b.py": "b = 1\nprint(b)\nprint(b + 1)\n",
    "docs/x.md": "x\n",
}


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give git more time than an answer would: a test machine may be busy."""
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 20.0)


@pytest.fixture
def repository(user_of_git: None, tmp_path: Path) -> Repository:
    made = new_repository(tmp_path / "shop")
    made.commit(CODE)
    return made


def copy_of(repository: Repository, folder: str = "") -> WorkingCopy:
    return WorkingCopy(lambda: repository.root / folder, lambda: "shop")


def tie(repository: Repository, *paths: str, commit: str | None = None) -> Anchor:
    """Return what a memory about these paths keeps that is stored now."""
    [tied] = copy_of(repository).tie([(paths, commit)])
    return Anchor(
        "shop",
        tied.paths,
        tied.commit,
        tied.blobs,
        repository.at + timedelta(minutes=1),
    )


def stale(repository: Repository, *anchors: Anchor) -> list[tuple[Stale, ...]]:
    return copy_of(repository).stale(anchors)


def mark(repository: Repository, anchor: Anchor) -> Stale | None:
    [marks] = stale(repository, anchor)
    return marks[0] if marks else None


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("./src/a.py", "src/a.py"), ("src//x/../a.py", "src/a.py"), (" src/ ", "src"), ("src\\a.py", "src/a.py"),
        ("src/a.py:12", "src/a.py"), ("src/a.py:12:5", "src/a.py"), ("src/a.py:12-20", "src/a.py"),
        ("src/a.py#L12-L20", "src/a.py"), ("file:///home/me/a%20b.py", "/home/me/a b.py"),
        ("file:///c:/work/a.py", "C:/work/a.py"), ("c:\\work\\a.py:7", "C:/work/a.py"),
        ("https://example.com/a:80/b/", "https://example.com/a:80/b"), ("..", ".."), ("./", "."),
    ],
)  # fmt: skip
def test_the_spellings_of_a_path_are_one(written: str, plain: str) -> None:
    assert plain_path(written) == plain


@given(st.text(st.sampled_from("ab./\\:1#L-~ é"), max_size=12) | st.text(max_size=20))
def test_a_plain_path_stays_as_it_is(text: str) -> None:
    plain = plain_path(text)

    assert plain_path(plain) == plain
    assert not (is_inside(plain) and ".." in plain.split("/"))


def test_paths_are_relative_to_the_root_of_the_repository(
    repository: Repository, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(repository.root)
    here = copy_of(repository)
    below = copy_of(repository, "src")
    linked = WorkingCopy(lambda: link / "src", lambda: "shop")

    for spelled in (
        "src/a.py",
        f"{repository.root}/src/a.py:3",
        f"file://{link}/src/a.py",
        "../shop/src/a.py",
    ):
        assert here.spellings(spelled) == ("src/a.py",)
    assert below.spellings("a.py")[0] == "src/a.py"
    assert below.spellings("../docs/")[0] == "docs"
    assert below.spellings("docs/x.md")[0] == "docs/x.md", (
        "as it is there, and no src/docs/x.md"
    )
    assert set(below.spellings("gone.py")) == {"src/gone.py", "gone.py"}
    assert linked.spellings(f"{link}/src/b.py") == ("src/b.py",)
    assert linked.spellings("a.py")[0] == "src/a.py"
    assert here.spellings(str(repository.root)) == (".",)


def test_a_path_outside_the_repository_stays_as_it_is(repository: Repository) -> None:
    copy = copy_of(repository)

    for path in (
        "/etc/hosts",
        "../other/x.py",
        "~/notes.md",
        "~someone/x",
        "https://example.com/x",
    ):
        assert copy.spellings(path) == (path,)
    assert copy.tie([(["/etc/hosts"], None)]) == [Tied(("/etc/hosts",))]
    assert copy.spellings("a\0b") == ("a\0b",)


def test_outside_a_repository_paths_are_only_written_alike(
    user_of_git: None, tmp_path: Path
) -> None:
    copy = WorkingCopy(lambda: tmp_path, lambda: "default")

    assert not copy.found
    assert copy.tie([(["./a.py:3"], "abc1234")]) == [Tied(("a.py",), "abc1234")]
    assert copy.stale(
        [Anchor("default", ("a.py",), None, (), datetime.now().astimezone())]
    ) == [()]


def test_the_present_commit_and_contents_are_kept_where_none_are_given(
    repository: Repository,
) -> None:
    head = repository.head
    committed = repository.git("rev-parse", "HEAD:src/a.py")
    copy = copy_of(repository)

    [tied] = copy.tie([(["src/a.py", "docs", "new.py"], None)])
    repository.write("src/a.py", "a = 2\n")
    [dirty] = copy.tie([(["src/a.py"], None)])

    assert tied == Tied(
        ("src/a.py", "docs", "new.py"), head, (f"{committed} src/a.py",)
    )
    assert dirty.blobs == (f"{repository.git('hash-object', 'src/a.py')} src/a.py",)


def test_a_commit_is_resolved_to_its_full_hash_and_contents(
    repository: Repository,
) -> None:
    first = repository.head
    second = repository.commit({"src/a.py": "a = 2\n"})
    repository.git("tag", "v1", first)
    copy = copy_of(repository)

    for revision in (first[:8], "v1", "HEAD~1"):
        [tied] = copy.tie([(["src/a.py"], revision)])
        assert tied.commit == first
        assert tied.blobs == (
            f"{repository.git('rev-parse', f'{first}:src/a.py')} src/a.py",
        )
    assert copy.tie([((), "HEAD")]) == [Tied((), second)]
    for unknown in ("PR 12", "--help", "deadbeef", "HEAD:src/a.py", ":/change\nHEAD"):
        assert copy.tie([((), unknown)]) == [Tied((), unknown)]


def test_a_file_that_changed_is_stale_since_the_first_change(
    repository: Repository,
) -> None:
    anchor = tie(repository, "src/a.py", "docs/x.md")
    folder = tie(repository, "src", ".")
    repository.commit({"src/b.py": "b = 2\n"})
    assert mark(repository, anchor) is None
    first = repository.commit({"src/a.py": "a = 2\n"})
    since = repository.at
    repository.commit({"src/a.py": "a = 3\n"})

    assert mark(repository, anchor) == Stale("src/a.py", since, first)
    assert mark(repository, folder) is None, "a folder changes all the time"
    assert mark(repository, replace(anchor, namespace="other")) is None
    repository.commit({"src/a.py": CODE["src/a.py"]})
    assert mark(repository, anchor) is None, "the change was taken back"


def test_what_is_not_committed_counts_only_as_the_content_that_a_memory_is_about(
    repository: Repository,
) -> None:
    clean = tie(repository, "src/a.py")
    repository.write("src/a.py", "a = 2\n")
    dirty = tie(repository, "src/a.py")
    assert stale(repository, clean, dirty) == [(), ()]

    fixed = repository.commit()
    assert [bool(marks) for marks in stale(repository, clean, dirty)] == [True, False]
    later = repository.commit({"src/a.py": "a = 3\n"})

    assert [marks[0].commit for marks in stale(repository, clean, dirty)] == [
        fixed,
        later,
    ]


def test_the_commit_of_work_in_progress_makes_nothing_stale(
    repository: Repository,
) -> None:
    """Formatters change a file between the store of a memory and the commit."""
    repository.write("src/a.py", "a=2\n")
    repository.write("new.py", "n=1\n")
    anchors = tie(repository, "src/a.py"), tie(repository, "new.py")
    repository.commit({"src/a.py": "a = 2\n", "new.py": "n = 1\n"})
    assert stale(repository, *anchors) == [(), ()]

    later = repository.commit({"src/a.py": "a = 3\n", "new.py": "n = 2\n"})

    assert [marks[0].commit for marks in stale(repository, *anchors)] == [later, later]


def test_a_file_that_vanished_or_moved_is_stale(repository: Repository) -> None:
    gone = tie(repository, "src/a.py")
    moved = tie(repository, "src/b.py")
    folder = tie(repository, "docs")
    removed = repository.commit({"src/a.py": None})
    repository.git("mv", "src/b.py", "src/c é.py")
    repository.git("mv", "docs", "guide")
    renamed = repository.commit()

    marks = [marks[0] for marks in stale(repository, gone, moved, folder)]

    assert [
        (mark.path, mark.commit, mark.vanished, mark.moved_to) for mark in marks
    ] == [
        ("src/a.py", removed, True, None),
        ("src/b.py", renamed, True, "src/c é.py"),
        ("docs", renamed, True, "guide"),
    ]


def test_a_squash_a_rebase_and_a_merge_make_nothing_stale_but_what_they_change(
    repository: Repository, tmp_path: Path
) -> None:
    """A colleague's clone never has the commit of a branch that was squashed."""
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit({"src/a.py": "a = 2\n"})
    anchor = tie(repository, "src/a.py")
    repository.git("checkout", "--quiet", "main")
    repository.commit({"docs/x.md": "y\n"})
    repository.git("merge", "--squash", "--quiet", "feature")
    repository.commit()
    repository.git("branch", "--quiet", "-D", "feature")
    clone = repository.clone(tmp_path / "clone")
    assert anchor.commit is not None
    with pytest.raises(subprocess.CalledProcessError):
        clone.git("cat-file", "-e", anchor.commit)

    assert mark(repository, anchor) is mark(clone, anchor) is None
    changed = clone.commit({"src/a.py": "a = 3\n"})

    found = mark(clone, anchor)
    assert found is not None
    assert found.commit == changed


def test_a_change_that_arrives_by_a_pull_or_a_merge_is_dated_by_its_arrival(
    repository: Repository,
) -> None:
    """It may be older than the memory."""
    repository.git("checkout", "--quiet", "-b", "feature")
    repository.commit({"src/a.py": "a = 2\n"})
    repository.git("checkout", "--quiet", "main")
    pulled = repository.git("rev-parse", "feature")
    repository.commit({"docs/x.md": "y\n"})
    repository.at += timedelta(hours=5)
    anchor = tie(repository, "src/a.py")
    repository.at += timedelta(hours=1)
    repository.git("merge", "--quiet", "--no-edit", "feature")

    merged = mark(repository, anchor)
    repository.git("reset", "--quiet", "--hard", "feature")
    fast_forward = mark(repository, anchor)

    assert merged is not None
    assert merged.since == repository.at
    assert fast_forward is not None
    assert fast_forward.commit == pulled


def test_a_checkout_of_before_the_memory_marks_nothing(repository: Repository) -> None:
    old = repository.head
    repository.commit({"src/a.py": "a = 2\n", "late.py": "x\n"})
    anchors = tie(repository, "src/a.py"), tie(repository, "late.py")

    repository.git("checkout", "--quiet", old)

    assert stale(repository, *anchors) == [(), ()]


def test_without_a_known_commit_and_content_the_time_of_the_memory_counts(
    repository: Repository,
) -> None:
    before = Anchor(
        "shop", ("src/a.py", "never.py"), None, (), repository.at + timedelta(minutes=1)
    )
    changed = repository.commit({"src/a.py": "a = 2\n"})
    after = Anchor(
        "shop", ("src/a.py",), "f" * 40, (), repository.at + timedelta(minutes=1)
    )

    assert [
        [mark.commit for mark in marks] for marks in stale(repository, before, after)
    ] == [[changed], []]
    removed = repository.commit({"src/a.py": None})
    assert [
        [mark.commit for mark in marks] for marks in stale(repository, before, after)
    ] == [[removed]] * 2


def test_memories_of_several_commits_are_compared_each_with_its_own(
    repository: Repository,
) -> None:
    anchors = []
    changes = []
    for number in range(2, 6):
        anchors.append(tie(repository, "src/a.py"))
        changes.append(repository.commit({"src/a.py": f"a = {number}\n"}))
    anchors.append(tie(repository, "src/a.py"))

    assert [
        [mark.commit for mark in marks] for marks in stale(repository, *anchors)
    ] == [*([it] for it in changes), []]


def test_an_explicit_commit_on_another_branch_is_compared_by_its_content(
    repository: Repository,
) -> None:
    repository.git("checkout", "--quiet", "-b", "side")
    side = repository.commit({"src/a.py": "a = 9\n"})
    repository.git("checkout", "--quiet", "main")
    anchors = tie(repository, "src/a.py", commit=side), tie(repository, "src/a.py")
    changed = repository.commit({"src/a.py": "a = 2\n"})

    marks = stale(repository, *anchors)

    assert marks[0] == (), (
        "main never had that content, and its first change may be the merge of it"
    )
    assert marks[1][0].commit == changed


HOSTILE_NAMES = [
    ":(nope)", ":(glob)*.py", ":!top.py", "-rf.py", 'it\'s "quoted" $(touch pwned).py', "tab\there.py", "ünï.py", "a b",
    "*",
]  # fmt: skip


def test_hostile_file_names_are_plain_names(repository: Repository) -> None:
    repository.commit(dict.fromkeys(HOSTILE_NAMES, "1\n"))
    anchors = [tie(repository, name) for name in HOSTILE_NAMES]
    assert [len(anchor.blobs) for anchor in anchors] == [1] * len(HOSTILE_NAMES)
    repository.commit({HOSTILE_NAMES[0]: "2\n"})
    changed = [marks[0].path for marks in stale(repository, *anchors) if marks]
    repository.commit(dict.fromkeys(HOSTILE_NAMES, "3\n"))

    assert changed == HOSTILE_NAMES[:1]
    assert [marks[0].path for marks in stale(repository, *anchors)] == HOSTILE_NAMES


def test_nothing_that_a_repository_configures_is_run(
    repository: Repository, tmp_path: Path
) -> None:
    repository.commit(CODE | {".gitattributes": "*.py diff=evil filter=evil\n"})
    anchors = tie(repository, "src/a.py"), tie(repository, "src/b.py")
    repository.git("mv", "src/b.py", "src/c.py")
    repository.commit({"src/a.py": "a = 2\n"})
    ran = tmp_path / "ran"
    program = tmp_path / "evil.sh"
    program.write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\nexit 1\n', encoding="utf-8")
    program.chmod(0o755)
    for setting in (
        "core.fsmonitor", "diff.external", "diff.evil.command", "diff.evil.textconv", "filter.evil.clean",
        "filter.evil.smudge", "filter.evil.process", "gpg.program", "core.sshCommand", "core.pager",
        "remote.origin.uploadpack",
    ):  # fmt: skip
        repository.git("config", setting, str(program))
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "core.hooksPath", str(tmp_path))
    head, _, rest = repository.git("cat-file", "commit", "HEAD").partition("\n\n")
    signed = f"{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n -----END PGP SIGNATURE-----\n\n{rest}\n"
    (tmp_path / "commit").write_text(signed, encoding="utf-8")
    repository.git(
        "update-ref",
        "HEAD",
        repository.git("hash-object", "-t", "commit", "-w", str(tmp_path / "commit")),
    )
    repository.write("src/a.py", "a = 3\n")

    assert [len(marks) for marks in stale(repository, *anchors)] == [1, 1]
    assert tie(repository, "src/a.py").blobs
    assert not ran.exists(), ran.read_text()


def test_a_missing_object_of_a_partial_clone_is_not_fetched(
    repository: Repository, tmp_path: Path
) -> None:
    anchor = tie(repository, "src/a.py", "src/b.py")
    repository.git("mv", "src/b.py", "src/c.py")
    repository.commit({"src/a.py": "a = 2\n"})
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = repository.clone(tmp_path / "partial", "--no-checkout", "--filter=tree:0")
    ran = tmp_path / "ran"
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
    program.chmod(0o755)
    clone.git("config", "remote.origin.url", f"ext::{program}")
    clone.git("config", "protocol.ext.allow", "always")

    with pytest.raises(GitFailed):
        stale(clone, anchor)
    assert not ran.exists()


def test_a_shallow_clone_marks_what_differs_and_nothing_else(
    repository: Repository, tmp_path: Path
) -> None:
    anchors = tie(repository, "src/a.py"), tie(repository, "src/b.py")
    repository.commit({"src/a.py": "a = 2\n"})
    clone = repository.clone(tmp_path / "clone", "--depth", "1")
    assert stale(clone, *anchors) == [(), ()], (
        "the history that would date the change is not there"
    )

    changed = clone.commit({"src/a.py": "a = 3\n", "src/b.py": "b = 3\n"})

    assert [[mark.commit for mark in marks] for marks in stale(clone, *anchors)] == [
        [changed],
        [changed],
    ]


def test_a_worktree_and_a_submodule_are_compared_by_their_own_history(
    repository: Repository, tmp_path: Path
) -> None:
    inner = new_repository(tmp_path / "inner")
    inner.commit({"lib.py": "1\n"})
    repository.git(
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        f"file://{inner.root}",
        "vendor",
    )
    anchor = tie(repository, "src/a.py", "vendor")
    within = tie(repository, "vendor/lib.py")
    repository.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = Repository(tmp_path / "side", repository.at)
    changed = side.commit({"src/a.py": "a = 2\n"})
    vendor = Repository(repository.root / "vendor", repository.at)
    vendor.commit({"lib.py": "2\n"})
    repository.commit()

    assert [mark.commit for mark in stale(side, anchor)[0]] == [changed]
    assert stale(repository, anchor, within) == [(), ()]


def test_files_with_line_ends_of_windows_are_compared_as_git_stores_them(
    repository: Repository,
) -> None:
    repository.git("config", "core.autocrlf", "true")
    repository.commit({"a.txt": "one\r\ntwo\r\n"})
    assert repository.git("cat-file", "-p", "HEAD:a.txt") == "one\ntwo"

    anchor = tie(repository, "a.txt")

    assert anchor.blobs == (f"{repository.git('rev-parse', 'HEAD:a.txt')} a.txt",)


def test_devices_and_files_behind_links_are_not_read(repository: Repository) -> None:
    os.mkfifo(repository.root / "pipe")
    (repository.root / "etc").symlink_to("/etc")
    (repository.root / "link").symlink_to("/dev/zero")
    loop = repository.root / "loop"
    loop.symlink_to(loop)

    anchor = tie(repository, "pipe", "etc/passwd", "link", "loop/x")

    assert [blob.split(" ", 1)[1] for blob in anchor.blobs] == ["link"], (
        "git keeps a link by its target's name"
    )


def test_a_repository_without_a_commit_keeps_contents_alone(
    user_of_git: None, tmp_path: Path
) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True, timeout=60)
    (folder / "a.py").write_text("1\n", encoding="utf-8")
    copy = WorkingCopy(lambda: folder, lambda: "shop")

    [tied] = copy.tie([(["a.py"], None)])

    assert (tied.commit, len(tied.blobs)) == (None, 1)
    assert copy.stale(
        [Anchor("shop", tied.paths, None, tied.blobs, datetime.now().astimezone())]
    ) == [()]


async def test_without_git_nothing_is_marked_and_nothing_fails(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchor = tie(repository, "src/a.py")
    known = copy_of(repository)
    assert known.found
    monkeypatch.setenv("PATH", "/nowhere")

    assert await known.marks([anchor]) == [()]
    assert known.tie([(["./src/a.py"], None)]) == [Tied(("src/a.py",))]
    assert not copy_of(repository).found


def slowed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a git before the user's that waits for a file `released` in the folder returned, and counts its `calls`."""
    slow = folder / "bin"
    slow.mkdir()
    (slow / "calls").touch()
    wait = f"echo call >> {slow}/calls; while ! test -e {slow}/released; do sleep 0.05; done"
    (slow / "git").write_text(
        f'#!/bin/sh\n{wait}\nexec {shutil.which("git")} "$@"\n', encoding="utf-8"
    )
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{slow}{os.pathsep}{os.environ['PATH']}")
    return slow


async def test_an_answer_does_not_wait_for_a_slow_git_whose_marks_a_later_one_has(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchor = tie(repository, "src/a.py")
    repository.commit({"src/a.py": "a = 2\n"})
    copy = copy_of(repository)
    assert copy.found
    slow = slowed(tmp_path, monkeypatch)
    monkeypatch.setattr(module, "_ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(WorkingCopy.stale, "__kwdefaults__", {"seconds": STUCK})

    assert await copy.marks([anchor]) == [()]
    assert await copy.marks([anchor]) == [()], "and asks no second one meanwhile"
    (slow / "released").touch()

    monkeypatch.setattr(module, "_ANSWER_SECONDS", 20.0)
    async with asyncio.timeout(STUCK):
        while not (await copy.marks([anchor]))[0]:
            await asyncio.sleep(0.1)


async def test_a_git_that_fails_is_left_alone_for_a_while(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    anchor = tie(repository, "src/a.py")
    copy = copy_of(repository)
    assert copy.found
    slow = slowed(tmp_path, monkeypatch)
    monkeypatch.setattr(WorkingCopy.stale, "__kwdefaults__", {"seconds": 0.2})
    assert await copy.marks([anchor]) == [()]

    for _ in range(100):
        assert await copy.marks([anchor]) == [()]

    assert len((slow / "calls").read_text().splitlines()) <= 1
    with pytest.raises(GitFailed):
        copy.stale([anchor], seconds=0.2)
