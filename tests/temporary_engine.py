"""Embedded engine that is removed at the end of a block, or when the process is killed."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folklore.engine import Engine
from tests import ROOT


@contextmanager
def temporary_home() -> Iterator[Path]:
    """Give a home; at the end, stop its engine and remove all files.

    A cleaner process does both as soon as its standard input ends. The kernel closes that pipe with this process too: a
    signal or the controller of pytest-xdist can end it before any `finally` runs.

    The home is in memory if it has enough: on a disk, each drop of a database waits for the disk.
    """
    memory = Path("/dev/shm")
    roomy = memory.exists() and shutil.disk_usage(memory).free > 2**31
    home = Path(
        tempfile.mkdtemp(prefix="folklore-test-", dir=memory if roomy else None)
    )
    cleaner = subprocess.Popen(
        [sys.executable, "-m", "tests.temporary_engine"],
        stdin=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,  # Ctrl-C and `timeout` signal the whole group
    )
    assert cleaner.stdin is not None
    cleaner.stdin.write(os.fsencode(home))
    cleaner.stdin.flush()
    try:
        yield home
    finally:
        cleaner.communicate()
        assert cleaner.returncode == 0, (
            f"The engine in {home} was not stopped and removed."
        )


@contextmanager
def temporary_engine(shared_buffers: str = "64MB") -> Iterator[str]:
    """Give the DSN of a new engine."""
    with temporary_home() as home:
        yield Engine(home, idle_minutes=10, shared_buffers=shared_buffers).start()


def _remove(home: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            shutil.rmtree(home)
        except OSError:  # the watcher may write its log once more before it ends
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


if __name__ == "__main__":
    abandoned = Path(os.fsdecode(sys.stdin.buffer.read()))
    Engine(abandoned).stop()
    _remove(abandoned)
