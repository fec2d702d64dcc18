"""The recipe in deploy/point-in-time brings back exactly what was stored at a given minute."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from folklore.engine import Engine
from folklore.engine.account import account_for
from folklore.engine.binaries import find_binaries
from folklore.engine.files import EnginePaths
from tests import ROOT
from tests.engine.test_engine import query
from tests.temporary_engine import temporary_home

pytestmark = pytest.mark.strain
RECIPE = ROOT / "deploy" / "point-in-time"


@pytest.fixture
def room() -> Iterator[Path]:
    with temporary_home() as room:
        room.chmod(0o755)
        yield room
        for home in room.glob("home*"):
            Engine(home).stop()


def run(home: Path, *arguments: str) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("FOLKLORE_")
    }
    done = subprocess.run(
        [sys.executable, "-m", "folklore", *arguments],
        env=kept
        | {
            "FOLKLORE_HOME": str(home),
            "FOLKLORE_AUTHOR": "tester",
            "FOLKLORE_NAMESPACE": "notes",
        },
        capture_output=True,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def held(home: Path) -> list[str]:
    """Every line of an export but its header, which has the time."""
    return run(home, "export", "-").splitlines()[1:]


def script(name: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of the recipe as the user of Postgres."""
    account = account_for(EnginePaths(home))
    identity = (
        {"user": account.uid, "group": account.gid, "extra_groups": []}
        if account
        else {}
    )
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [str(RECIPE / name), *arguments],
        env={
            "PATH": f"{find_binaries().folder}:{os.environ['PATH']}",
            "PGHOST": str(home / "engine" / "run"),
            "PGUSER": "folklore",
        },
        capture_output=True,
        text=True,
        timeout=120,
        cwd="/",
        **identity,  # type: ignore[call-overload]
    )
    return done


def archived(home: Path, archive: Path) -> None:
    """Begin to archive the log of an engine, by the command of archive.conf."""
    given = (RECIPE / "archive.conf").read_text(encoding="utf-8")
    settings = dict(
        line.split(" = ", 1)
        for line in given.splitlines()
        if line and not line.startswith("#")
    )
    # its name has a space, as that of the archive
    recipe = archive.parent / "the recipe"
    shutil.copytree(RECIPE, recipe)
    command = settings["archive_command"].replace(
        "/usr/local/lib/folklore", str(recipe)
    )
    settings["archive_command"] = command.replace("/mnt/archive/folklore", str(archive))
    query(
        Engine(home).start(),
        *(f"alter system set {name} = {value}" for name, value in settings.items()),
    )
    Engine(home).stop()
    Engine(home).start()


def test_a_store_comes_back_as_it_was_at_a_minute(room: Path) -> None:
    home = room / "home"
    archive = room / "the archive"
    run(home, "store", "The mole is closed in November.")
    account = account_for(EnginePaths(home))
    archive.mkdir()
    if account:
        account.chown(archive)
    archived(home, archive)
    made = script("base-backup", home, str(archive), "1")
    assert made.returncode == 0, made.stderr
    run(home, "store", "The ferry leaves at six.")
    time.sleep(1.1)
    then = held(home)
    at = query(Engine(home).start(), "select now()::text")
    time.sleep(1.1)
    run(home, "store", "This came later.")
    run(home, "namespaces", "delete", "notes", "--erase", "--yes")
    query(Engine(home).start(), "select pg_switch_wal()")
    waiting = time.monotonic() + 60
    while query(
        Engine(home).start(), "select last_archived_wal is null from pg_stat_archiver"
    ):
        assert time.monotonic() < waiting
    Engine(home).stop()  # which archives the rest

    restored = room / "home-restored"
    (restored / "engine").mkdir(parents=True)
    if account:
        account.chown(restored / "engine")
    done = script(
        "restore-to", home, str(archive), str(at), str(restored / "engine" / "data")
    )
    assert done.returncode == 0, done.stderr

    assert held(restored) == then
    assert len(then) == 2
    assert run(restored, "store", "It goes on.")


def test_a_time_before_the_archive_and_an_existing_directory_are_refused(
    room: Path, tmp_path: Path
) -> None:
    (room / "archive" / "base" / "20260101T000000Z").mkdir(parents=True)
    (room / "target").mkdir()

    early = script(
        "restore-to",
        room / "home",
        str(room / "archive"),
        "2025-12-31 23:59:00+00",
        str(room / "new"),
    )
    there = script(
        "restore-to",
        room / "home",
        str(room / "archive"),
        "2026-02-01 00:00:00+00",
        str(room / "target"),
    )

    assert early.returncode == there.returncode == 1
    assert "no base backup from before" in early.stderr
    assert "Name a new directory" in there.stderr


def test_a_file_of_other_content_is_never_overwritten(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_text("first")

    def archive() -> int:
        return subprocess.run(
            [RECIPE / "archive-wal", one, "0001", tmp_path / "archive"], check=False
        ).returncode

    assert archive() == 0
    assert archive() == 0
    one.write_text("second")
    assert archive() != 0
    assert (tmp_path / "archive" / "wal" / "0001").read_text() == "first"
