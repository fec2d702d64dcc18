"""An embedded engine that is gone, files and all, at the end of a block."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folklore.engine import Engine


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A home whose engine, if one is started there, is stopped at the end, and all files removed.

    It lies in memory where there is plenty: on a disk, each drop of a database waits for it.
    """
    memory = Path("/dev/shm")
    roomy = memory.exists() and shutil.disk_usage(memory).free > 2**31
    home = Path(tempfile.mkdtemp(prefix="folklore-test-", dir=memory if roomy else None))
    try:
        yield home
    finally:
        Engine(home).stop()
        _remove(home)


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
