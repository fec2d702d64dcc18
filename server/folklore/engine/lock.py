"""Locks between processes that the kernel releases when their holder dies, however it dies."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from folklore.errors import EngineFailed

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NAP = 0.01


def try_lock(path: Path) -> int | None:
    """Lock the file and return its descriptor, or None if somebody holds it. The last copy closed ends it."""
    descriptor = os.open(path, os.O_RDWR)  # never made here: a watcher must not leave files in a home being deleted
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if os.name == "nt" or isinstance(error, BlockingIOError):
            return None
        raise  # a file system without locks
    return descriptor


def release(descriptor: int) -> None:
    """Unlock at once, even if a fork of this process has inherited the descriptor in the meantime."""
    if sys.platform != "win32":
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def is_locked(path: Path) -> bool:
    descriptor = try_lock(path)
    if descriptor is None:
        return True
    release(descriptor)
    return False


@contextmanager
def locked(path: Path, patience: float) -> Iterator[None]:
    """Hold the lock; wait up to `patience` seconds for it."""
    give_up = time.monotonic() + patience
    while (descriptor := try_lock(path)) is None:
        if time.monotonic() > give_up:
            raise EngineFailed(
                f"Another process has been starting or stopping the embedded engine for {patience:.0f} s.",
                hint=f"End the process that holds {path}, then try again.",
            )
        time.sleep(NAP)
    try:
        yield
    finally:
        release(descriptor)
