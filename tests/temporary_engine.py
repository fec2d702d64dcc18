"""An embedded engine that is gone, files and all, at the end of a block or of the process, however that ends."""

from __future__ import annotations

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

_ROOT = Path(__file__).parents[1]


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A home whose engine, if one is started there, is stopped at the end, and all files removed.

    A cleaner process does both as soon as its standard input ends. The kernel closes that pipe with this process too: a
    signal or the controller of pytest-xdist can end it before any `finally` runs.

    The home lies in memory where there is plenty: on a disk, each drop of a database waits for it.
    """
    memory = Path("/dev/shm")
    roomy = memory.exists() and shutil.disk_usage(memory).free > 2**31
    home = Path(tempfile.mkdtemp(prefix="folklore-test-", dir=memory if roomy else None))
    cleaner = subprocess.Popen(
        [sys.executable, "-m", "tests.temporary_engine"],
        stdin=subprocess.PIPE,
        cwd=_ROOT,
        start_new_session=True,  # Ctrl-C and `timeout` signal the whole group
    )
    assert cleaner.stdin is not None
    cleaner.stdin.write(os.fsencode(home))
    cleaner.stdin.flush()
    try:
        yield home
    finally:
        cleaner.communicate()
        assert cleaner.returncode == 0, f"The engine in {home} was not stopped and removed."


@contextmanager
def temporary_engine(shared_buffers: str = "64MB") -> Iterator[str]:
    """The DSN of a new engine."""
    with temporary_home() as home:
        yield Engine(home, idle_minutes=10, shared_buffers=shared_buffers).start()


def _remove(home: Path) -> None:
    deadline = time.monotonic() + 5
    while True:
        try:
            shutil.rmtree(home)
        except OSError:  # the engine's watcher looks once more, which makes a file, and ends
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


if __name__ == "__main__":
    abandoned = Path(os.fsdecode(sys.stdin.buffer.read()))
    Engine(abandoned).stop()
    _remove(abandoned)
