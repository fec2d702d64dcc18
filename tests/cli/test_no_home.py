"""A user without a home, as a bare user id in a container: one sentence says what to set, and then it works."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import forks
from tests.commands import Ran
from tests.doorway import Doorway

USER = 23456
pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="only root may run a command as another user, by setpriv",
)
AWAY = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user reaches; pytest's own is closed to others."""
    with TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


def run(folder: Path, *arguments: str, **environment: str) -> Ran:
    """Run a command in a fork, in a folder of its own, as a user of whom nothing is known but the id."""
    return carried_out(forks.command(), folder, *arguments, **environment)


def carried_out(
    program: Sequence[str], folder: Path, *arguments: str, **environment: str
) -> Ran:
    os.chown(folder, USER, USER)
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    done = subprocess.run(
        [
            *("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"),
            *(*program, *arguments),
        ],
        input=b"{}",
        capture_output=True,
        cwd=folder,
        env=kept | {"PYTHONDONTWRITEBYTECODE": "1"} | environment,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize(
    "arguments",
    [
        "status",
        "store x",
        "serve",
        "serve --http",
        "doctor",
        "open",
        "install --dry-run",
        "config path",
        "db status",
        "server status",
        "hook session-start",
        "hook session-start --json",
        "join http://127.0.0.1:1 fi_x",
        "--server http://127.0.0.1:1 recall x",
    ],
)
@pytest.mark.parametrize(
    "environment", [{}, {"FOLKLORE_DATABASE_URL": AWAY}, {"FOLKLORE_HOME": "~/notes"}]
)
def test_without_a_home_every_command_names_what_to_set(
    folder: Path, arguments: str, environment: dict[str, str]
) -> None:
    ran = run(folder, *arguments.split(), **environment)

    said = ran.out + ran.err
    assert f"user id {USER} is in no list of users; set FOLKLORE_HOME" in said
    assert len(said.splitlines()) == 1
    assert ran.code == (0 if arguments.startswith("hook") else 1 if arguments == "doctor" else 2)  # fmt: skip
    assert list(folder.iterdir()) == []


def test_assistants_without_a_home_are_no_error_of_ours(folder: Path) -> None:
    ran = run(folder, "install", "--dry-run", FOLKLORE_HOME=str(folder / "home"))

    assert ran.code == 2
    assert "Set HOME" in ran.err
    assert len(ran.err.splitlines()) == 1


async def test_with_a_home_of_ours_and_a_database_everything_works(
    folder: Path, database_url: str
) -> None:
    door = Doorway(database_url)
    await door.open()
    settings = {
        "FOLKLORE_HOME": str(folder / "home"),
        "FOLKLORE_DATABASE_URL": door.url,
        "FOLKLORE_EMBEDDING__PROVIDER": "bundled",
        "FOLKLORE_OWN": "1",
    }

    # A fork has modules of which this user might not read the files.
    program = [sys.executable, "-P", "-m", "folklore"]

    async def ran(*arguments: str) -> Ran:
        return await asyncio.to_thread(
            carried_out, program, folder, *arguments, **settings
        )

    stored = await ran("store", "The tide gate opens at noon.")
    found = await ran("recall", "when does the gate open")
    configured = await ran("config", "show")
    session = await ran("hook", "session-start")
    await door.shut()

    assert (stored.code, stored.err) == (0, "")
    assert "noon" in found.out
    assert f"author: uid-{USER}" in configured.out
    assert (session.code, "away" in session.out) == (0, False)
