"""The engine's major version changes under the data: complete or not at all, whatever is killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from folklore.db.migrate import migrate
from folklore.embedding.protocol import Embedder
from folklore.engine import Engine, replacement
from folklore.engine.binaries import MAJOR
from folklore.engine.cluster import version_on_disk
from folklore.engine.files import EnginePaths
from folklore.errors import EngineFailed
from folklore.model import Draft, Relation
from tests.old_engine import OLD, old_engine
from tests.person import Person
from tests.team import library_at
from tests.temporary_engine import temporary_home
from tests.test_engine import processes
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(not Path("/proc/self/exe").exists(), reason="looks at processes through /proc")


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLKLORE_")}
    return kept | {"FOLKLORE_HOME": str(home), "FOLKLORE_AUTHOR": "tester", "FOLKLORE_NAMESPACE": "notes"} | more


def run(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command of folklore as users do."""
    return subprocess.run(
        [sys.executable, "-m", "folklore", *arguments],
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )


def exported(home: Path, **more: str) -> list[str]:
    """Every line of an export but its header, which has the time."""
    done = run(home, "export", "-", "--embeddings", **more)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[1:]


async def fill(dsn: str, embedder: Embedder, memories: int) -> None:
    """Store memories with relations, histories, and one that is forgotten."""
    await migrate(dsn)
    async with library_at(dsn, embedder) as library:
        person = Person(library)
        texts = [f"Pier {number} has {number * 3} bollards, größer als Straße {number}." for number in range(memories)]
        ids = [id_ for start in range(0, memories, 500) for id_ in await person.keep(*texts[start : start + 500])]
        for one, other in zip(ids[:40:2], ids[1:40:2], strict=True):
            await person.relate(Relation(one, "relates_to", other))
        for id_ in ids[:10]:
            await person.update(id_, content=f"Pier {id_} was rebuilt.")
        await person.keep(Draft("The old mole.", supersedes=ids[20]))
        await person.forget(ids[30])


@pytest.fixture(scope="module")
def original(embedder: Embedder) -> Iterator[tuple[Path, list[str]]]:
    """A home with data of the older version, and what it holds."""
    with temporary_home() as home:
        with old_engine(home) as dsn:
            asyncio.run(fill(dsn, embedder, 60))
            lines = exported(home, FOLKLORE_DATABASE_URL=dsn)
        assert version_on_disk(EnginePaths(home)) == str(OLD)
        yield home, lines


@pytest.fixture
def home(original: tuple[Path, list[str]]) -> Iterator[Path]:
    with temporary_home() as room:
        copy = room / "home"
        subprocess.run(["cp", "-a", original[0], copy], check=True)
        yield copy
        Engine(copy).stop()
        end_all(copy)


def end_all(home: Path) -> None:
    """Kill all processes that have to do with a home, as a failing machine would."""
    for process in processes(str(home)):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    eventually(lambda: not processes(str(home)))


def test_data_of_an_older_version_is_taken_over_by_the_first_command(
    home: Path, original: tuple[Path, list[str]]
) -> None:
    paths = EnginePaths(home)

    assert exported(home) == original[1]
    assert len(original[1]) > 60
    assert version_on_disk(paths) == str(MAJOR)
    assert [path.name for path in replacement.kept(paths)] == [f"data.postgres-{OLD}"]
    assert not paths.next.exists()
    assert "bollards" in run(home, "search", "bollards of pier 51").stdout
    assert run(home, "store", "The new pier is open.").returncode == 0
    assert run(home, "db", "stop").returncode == 0
    assert len(exported(home)) == len(original[1]) + 1
    assert f"data.postgres-{OLD}" in run(home, "db", "status").stdout
    assert f"data.postgres-{OLD}" in run(home, "db", "prune").stdout
    assert replacement.kept(paths) == []
    assert len(exported(home)) == len(original[1]) + 1


def test_two_processes_at_once_take_it_over_once(home: Path, original: tuple[Path, list[str]]) -> None:
    command = [sys.executable, "-m", "folklore", "export", "-", "--embeddings"]
    both = [
        subprocess.Popen(command, env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=300) for process in both]

    assert [out.splitlines()[1:] for out, _ in answers] == [original[1]] * 2, answers[0][1] + answers[1][1]
    assert len(replacement.kept(EnginePaths(home))) == 1


def killed_after(home: Path, seconds: float, *, servers: bool = True) -> None:
    """Begin to take the data over, and kill the process that does it after a time, with its servers or not."""
    process = subprocess.Popen(
        [sys.executable, "-m", "folklore", "db", "start"],
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    process.kill()
    process.wait()
    if servers:
        end_all(home)


@pytest.mark.parametrize(("share", "servers"), [(0.2, True), (0.5, False), (0.7, True), (0.8, False)])
def test_a_kill_leaves_the_old_data_or_the_new(
    home: Path, original: tuple[Path, list[str]], usual: float, share: float, servers: bool
) -> None:
    killed_after(home, usual * share, servers=servers)

    assert exported(home) == original[1]
    assert version_on_disk(EnginePaths(home)) == str(MAJOR)
    assert not EnginePaths(home).next.exists()


@pytest.mark.strain
@pytest.mark.parametrize("place", range(20))
def test_a_kill_at_any_of_many_moments_leaves_the_old_data_or_the_new(
    home: Path, original: tuple[Path, list[str]], usual: float, place: int
) -> None:
    killed_after(home, usual * (place + 0.5) / 20)
    killed_after(home, usual * ((place * 7) % 20 + 0.5) / 20)

    assert exported(home) == original[1]


@pytest.fixture(scope="module")
def usual(original: tuple[Path, list[str]]) -> Iterator[float]:
    """How many seconds taking the data over takes."""
    with temporary_home() as room:
        copy = room / "home"
        subprocess.run(["cp", "-a", original[0], copy], check=True)
        began = time.monotonic()
        assert run(copy, "db", "start").returncode == 0
        yield time.monotonic() - began
        Engine(copy).stop()


# The steps of the replacement


class Killed(BaseException):
    """The process ends here."""


def directory(path: Path, version: int, control: str) -> None:
    (path / "global").mkdir(parents=True)
    (path / "PG_VERSION").write_text(f"{version}\n")
    (path / "global" / "pg_control").write_text(control)


def prepared(home: Path) -> EnginePaths:
    paths = EnginePaths(home)
    directory(paths.data, OLD, "old")
    paths.identity.write_text("1\n")
    new = EnginePaths(paths.next)
    directory(new.data, MAJOR, "new")
    new.identity.write_text("2\n")
    return paths


def stop_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process end before the n-th change of a file."""
    taken = iter(range(1_000))

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*arguments: Any, **options: Any) -> Any:
            if next(taken) == step:
                raise Killed
            return real(*arguments, **options)

        return changed

    for owner, name in ((Path, "rename"), (Path, "replace"), (shutil, "rmtree"), (shutil, "copyfile"), (os, "fsync")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.parametrize("step", range(14))
def test_a_replacement_is_complete_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    paths = prepared(tmp_path)
    with monkeypatch.context() as patched:
        stop_at(step, patched)
        try:
            replacement.decide(paths, str(OLD))
            replacement.finish(paths)
        except Killed:
            ended = True
        else:
            ended = False

    replacement.finish(paths)

    assert ended == (step < 12), "all steps are tried"
    if version_on_disk(paths) == str(OLD):  # not decided yet
        assert step < 4
        assert paths.identity.read_text() == "1\n"
        assert replacement.kept(paths) == []
    else:
        assert paths.identity.read_text() == "2\n"
        assert version_on_disk(paths) == str(MAJOR)
        assert [(path / "PG_VERSION").read_text() for path in replacement.kept(paths)] == [f"{OLD}\n"]
        assert not paths.next.exists()


def test_a_decision_about_data_that_changed_since_is_void(tmp_path: Path) -> None:
    paths = prepared(tmp_path)
    replacement.decide(paths, str(OLD))
    (paths.data / "global" / "pg_control").write_text("an older Folklore wrote to it")

    replacement.finish(paths)

    assert version_on_disk(paths) == str(OLD)
    assert paths.identity.read_text() == "1\n"
    assert not paths.next.exists()


def test_kept_data_is_never_overwritten(tmp_path: Path) -> None:
    for _ in range(2):
        paths = prepared(tmp_path)
        replacement.decide(paths, str(OLD))
        replacement.finish(paths)
        shutil.rmtree(paths.data)

    assert [path.name for path in replacement.kept(paths)] == [f"data.postgres-{OLD}", f"data.postgres-{OLD}-1"]


# What cannot be taken over


@pytest.mark.parametrize(
    ("version", "message", "hint"),
    [("12", "programs are not here", "apt-get install postgresql-12"), ("99", "Postgres 99", "Upgrade Folklore")],
)
def test_data_without_programs_stays_as_it_is(home: Path, version: str, message: str, hint: str) -> None:
    paths = EnginePaths(home)
    (paths.data / "PG_VERSION").write_text(f"{version}\n")

    done = run(home, "list")

    assert done.returncode != 0
    assert message in done.stderr
    assert hint in done.stderr
    assert version_on_disk(paths) == version
    assert replacement.kept(paths) == []
    with pytest.raises(EngineFailed):
        Engine(home).start()


async def test_without_free_space_the_old_data_stays(
    home: Path, monkeypatch: pytest.MonkeyPatch, original: tuple[Path, list[str]]
) -> None:
    from folklore.backup import operations
    from folklore.backup.major_change import change_major
    from folklore.errors import Refused

    with monkeypatch.context() as patched:
        patched.setattr(operations, "free_space", lambda _folder: 10 << 20)
        with pytest.raises(Refused, match="MB free"):
            await change_major(Engine(home), home / "backups")

    assert version_on_disk(EnginePaths(home)) == str(OLD)
    assert not EnginePaths(home).next.exists()
    assert await asyncio.to_thread(exported, home) == original[1]
