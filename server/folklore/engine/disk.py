"""Free space on the disk of the engine, below which writes are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

from folklore.errors import DiskFull

# Postgres ends when it cannot write its log, and reading ends with it: so much is left for the log of what is running.
LEAST_FREE = 100 << 20
# With less than this, probes and `folklore doctor` warn.
LITTLE_FREE = 1 << 30


def free_space(folder: Path) -> int:
    """Return the free bytes of the disk that a folder is on, or will be."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free


def require_space(home: Path) -> None:
    """Raise DiskFull unless the disk has room for writes. It takes some microseconds."""
    free = free_space(home)
    if free < LEAST_FREE:
        raise DiskFull(
            f"The disk of {home} has {free / 2**20:,.0f} MB free, and a write needs {LEAST_FREE >> 20} MB.",
            hint="Free some space; until then recall works and nothing can be written.",
        )
