"""postmaster.pid, the file in which Postgres writes who serves a data directory and where it listens."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

# A process id that no system gives out: Postgres takes a lock file that names it for a dead server's.
NOBODYS_PID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PidFile:
    """What a server wrote when it started; it may be long dead, so nothing here is believed without being checked."""

    pid: int
    port: int
    socket_directory: str


def read_pid(path: Path) -> int | None:
    try:
        return int(path.read_bytes().partition(b"\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def read_pid_file(data: Path) -> PidFile | None:
    try:
        lines = [os.fsdecode(line) for line in (data / "postmaster.pid").read_bytes().splitlines()]
        return PidFile(pid=int(lines[0]), port=int(lines[3]), socket_directory=lines[4])
    except (OSError, ValueError, IndexError):  # absent, or being written at this moment
        return None


def disown(data: Path) -> None:
    """Make the file name no living process, but keep the rest of it.

    Postgres refuses to start while the named process lives, whatever that process is. The file is not removed: its
    line about shared memory is how Postgres finds survivors of the earlier server.
    """
    path = data / "postmaster.pid"
    try:
        _, _, rest = path.read_bytes().partition(b"\n")
        with path.open("r+b") as file:  # the same file, so its owner stays
            file.write(str(NOBODYS_PID).encode() + b"\n" + rest)
            file.truncate()
    except FileNotFoundError:
        return
