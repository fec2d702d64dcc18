"""File locks between processes. The kernel releases a lock when its holder ends, even if the holder is killed."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from folklore.errors import EngineFailed

_POLL_SECONDS = 0.01


def try_lock(path: Path) -> int | None:
    """Lock a file and return its descriptor; None if it is locked. Closing the last copy of the descriptor unlocks it.

    The file must exist: a watcher must not create files in a home that is being deleted.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise  # a file system without locks
    return descriptor


def lock_open(descriptor: int) -> None:
    """Lock an open file, which another process could otherwise remove."""
    with suppress(OSError):  # a file system without locks, on which try_lock fails
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def release(descriptor: int) -> None:
    """Unlock now, even if a forked process has inherited the descriptor in the meantime."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_locked(path: Path) -> bool:
    """Return true if a process holds the lock."""
    descriptor = try_lock(path)
    if descriptor is None:
        return True
    release(descriptor)
    return False


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock for the block. Raises EngineFailed after `timeout` seconds of waiting for it."""
    deadline = time.monotonic() + timeout
    while (descriptor := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise EngineFailed(
                f"Another process has been starting or stopping the embedded engine for {timeout:.0f} s.",
                hint=f"End the process that holds {path}, then try again.",
            )
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        release(descriptor)
