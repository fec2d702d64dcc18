"""An embedded engine that is gone, files and all, at the end of a block."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folklore.db.engine import Engine


@contextmanager
def temporary_engine(shared_buffers: str = "64MB") -> Iterator[str]:
    """The DSN of a new engine, in memory where there is plenty: on a disk, each drop of a database waits for it."""
    memory = Path("/dev/shm")
    roomy = memory.exists() and shutil.disk_usage(memory).free > 2**31
    home = Path(tempfile.mkdtemp(prefix="folklore-test-", dir=memory if roomy else None))
    engine = Engine(home, idle_minutes=10, shared_buffers=shared_buffers)
    try:
        yield engine.start()
    finally:
        engine.stop()
        _remove(home)


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
