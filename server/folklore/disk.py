"""Checks of the engine's disk before writes: the free space, and that the data is still there."""

import shutil
from pathlib import Path

from folklore.errors import DataMissing, DiskFull

# Postgres ends when it cannot write its log, and reading ends with it: so much is left for the log of what is running.
LEAST_FREE = 100 << 20
# With less than this, probes and `folklore doctor` warn.
LITTLE_FREE = 1 << 30


def free_space(folder: Path) -> int:
    """Return the free bytes of the disk that a folder is on, or will be."""
    return shutil.disk_usage(
        next(path for path in (folder, *folder.parents) if path.exists())
    ).free


def require_space(home: Path) -> None:
    """Raise DiskFull unless the disk has room for writes. It takes some microseconds."""
    free = free_space(home)
    if free < LEAST_FREE:
        raise DiskFull(
            f"The disk of {home} has {free / 2**20:,.0f} MB free, and a write needs {LEAST_FREE >> 20} MB.",
            hint="Free some space; until then nothing can be written, and a database that has stopped does not start.",
        )


class DataGuard:
    """Data directory of a running engine, by its control file: Postgres writes into that one and never replaces it.

    Postgres itself notices within a minute that its files were removed, and acknowledges writes until then.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._control_file = data / "global" / "pg_control"
        self.note()

    def note(self) -> None:
        """Take the data that is here now for that of the engine."""
        self._known = self._identity()

    def require(self) -> None:
        """Raise DataMissing unless the data is that of the engine. It takes one system call."""
        identity = self._identity()
        if identity is None or identity != self._known:
            raise DataMissing(
                f"The data directory {self._data} was {'removed' if identity is None else 'replaced'} while its engine "
                "ran: nothing is written.",
                hint="Put it back, or stop this server and run `folklore restore FILE`.",
            )

    def _identity(self) -> tuple[int, int] | None:
        try:
            status = self._control_file.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino
