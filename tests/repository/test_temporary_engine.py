"""A test run that is killed leaves no Postgres and no files."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests import ROOT
from tests.waiting import eventually

WAITS = """
import asyncio
from pathlib import Path

import pytest

@pytest.fixture
def finished():
    yield
    Path("finished").touch()

async def test_waits(finished, cluster):
    process = await cluster.admin.fetchval("select pg_backend_pid()")
    Path("note.part").write_text(f"{process} {cluster.dsn}")
    Path("note.part").rename("note")
    await asyncio.sleep(600)
"""


@contextmanager
def waiting_run(
    folder: Path, options: Sequence[str]
) -> Iterator[tuple[subprocess.Popen[bytes], int, Path]]:
    """Start pytest with a test that waits; give its process, a Postgres session's process id and the engine's home."""
    (folder / "test_waits.py").write_text(WAITS, encoding="utf-8")
    note = folder / "note"
    plugin = (
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
    )
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "TEST_"))
    }
    paths = [str(ROOT), str(ROOT / "server")]
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            *plugin,
            *options,
            f"--rootdir={folder}",
            "test_waits.py",
        ],
        cwd=folder,
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as run:
        try:
            eventually(note.exists)
            session, dsn = note.read_text(encoding="utf-8").split()
            yield (
                run,
                int(session),
                Path(parse_qs(urlsplit(dsn).query)["host"][0]).parents[1],
            )
        finally:
            run.kill()


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("options", "sign", "torn_down"),
    [
        pytest.param([], signal.SIGTERM, True, id="ended"),
        pytest.param([], signal.SIGKILL, False, id="killed"),
        pytest.param(
            ["-n", "1"],
            signal.SIGTERM,
            True,
            id="controller ended",
            marks=pytest.mark.strain,
        ),
        pytest.param(
            ["-n", "1"],
            signal.SIGKILL,
            True,
            id="controller killed",
            marks=pytest.mark.strain,
        ),
    ],
)
def test_a_run_that_is_ended_by_a_signal_leaves_no_engine(
    tmp_path: Path, options: Sequence[str], sign: signal.Signals, torn_down: bool
) -> None:
    with waiting_run(tmp_path, options) as (run, session, home):
        assert is_alive(session)

        run.send_signal(sign)

        eventually(lambda: not home.exists())
        assert not is_alive(session)
        assert (tmp_path / "finished").exists() == torn_down
