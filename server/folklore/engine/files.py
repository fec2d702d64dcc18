"""Files of one embedded engine: their paths, the pid file that Postgres writes, and the log."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from folklore.disk import LEAST_FREE, free_space
from folklore.errors import DiskFull, EngineFailed

# A process id that no system assigns. Postgres takes a lock file with this id for the file of a dead server.
_UNUSED_PID = 2**31 - 1

_SHOWN_LINES = 15
_SHOWN_BYTES = 8_192
_ROTATE_AT_BYTES = 10 * 1024 * 1024

NO_SPACE = "No space left"
_HINTS = (
    (
        (NO_SPACE, "File too large", "Disk quota"),
        "Free some disk space, then start again.",
    ),
    (
        ("shared memory", "Cannot allocate memory"),
        "Give the machine more memory, then start again.",
    ),
)
_OTHER_HINT = "Correct what the log reports, or set FOLKLORE_DATABASE_URL to a Postgres 15 or newer with pgvector 0.8 or newer."


class EnginePaths:
    """Paths of one engine, all absolute and derived from the home directory as a user may write it."""

    def __init__(self, home: Path, sockets: Path | None = None) -> None:
        self.home = Path(os.path.abspath(home.expanduser()))  # noqa: PTH100  (resolve() would follow symbolic links)
        self.engine = self.home / "engine"  # all files but the log
        self.data = self.engine / "data"
        # complete data of this major version, to be put in place
        self.upgraded = self.engine / "data.upgraded"
        # the preferred directory of the socket
        self.sockets = sockets or self.engine / "run"
        self._tag_ending = "-private" if sockets else ""
        # names the data: outside of it, so that its loss is noticed
        self.identity = self.home / "engine.id"
        # locked by a process that starts, joins or stops the engine
        self.lock = self.engine / "lock"
        # locked by the server's processes until the last one ends
        self.alive = self.engine / "alive"
        self.watch = self.engine / "watch"  # locked by the watcher
        self.log = self.home / "logs" / "engine.log"
        self.older_log = self.home / "logs" / "engine.log.1"

    @property
    def tag(self) -> str:
        """Short name of the data directory under any spelling, for process titles and for sockets outside the home."""
        digest = hashlib.sha256(os.fsencode(os.path.realpath(self.data))).hexdigest()
        return f"folklore-{digest[:12]}{self._tag_ending}"

    def with_private_socket(self, folder: Path) -> EnginePaths:
        """Return the same paths with the socket in a folder where no client looks for it."""
        return EnginePaths(self.home, folder / "run")


@dataclass(frozen=True, slots=True)
class PidFile:
    """Content of postmaster.pid. The server that wrote it may be dead, so check each value before you rely on it."""

    pid: int
    port: int
    socket_directory: str


def read_pid_file(data: Path) -> PidFile | None:
    """Return the content of postmaster.pid; None if the file is absent or incomplete."""
    try:
        lines = [
            os.fsdecode(line)
            for line in (data / "postmaster.pid").read_bytes().splitlines()
        ]
        return PidFile(pid=int(lines[0]), port=int(lines[3]), socket_directory=lines[4])
    except (
        OSError,
        ValueError,
        IndexError,
    ):  # the server may be writing it at this moment
        return None


def read_pid(path: Path) -> int | None:
    """Return the process id in the first line of a lock file; None without one."""
    try:
        return int(path.read_bytes().partition(b"\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def invalidate_pid(data: Path) -> None:
    """Replace the process id in postmaster.pid by an unused one and keep the other lines.

    Postgres refuses to start while any process with that id lives. The file must stay: by its line about shared memory
    Postgres finds surviving processes of the earlier server.
    """
    path = data / "postmaster.pid"
    try:
        _, _, rest = path.read_bytes().partition(b"\n")
        with path.open("r+b") as file:  # the same file, so its owner stays
            file.write(str(_UNUSED_PID).encode() + b"\n" + rest)
            file.truncate()
    except FileNotFoundError:
        return


def sync(path: Path) -> None:
    """Make a change of a file or folder survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def append_to_log(paths: EnginePaths, text: str) -> None:
    """Write an action of the launcher into the log, in the format of Postgres' lines."""
    with paths.log.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(
            f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S.%f} UTC [{os.getpid()}] folklore: {text}\n"
        )


def rotate_log(paths: EnginePaths) -> None:
    """Keep one older log. The log is copied and emptied, not renamed: the server keeps it open for appending."""
    if paths.log.exists() and paths.log.stat().st_size > _ROTATE_AT_BYTES:
        shutil.copyfile(paths.log, paths.older_log)
        os.truncate(paths.log, 0)


def engine_failure(reason: str, paths: EnginePaths, output: str = "") -> EngineFailed:
    """Return an error: in its first line a reason and the log, then the last output of a program, and the log's end."""
    excerpt = "".join(
        f"\n{line}" for line in output.strip().splitlines()[-_SHOWN_LINES:]
    )
    message = f"{reason} The log is {paths.log}.{excerpt}\nThe log ends with:\n{_tail(paths.log)}\n"
    for signs, hint in _HINTS:
        if any(sign in message for sign in signs):
            if NO_SPACE in message and (free := free_space(paths.home)) < LEAST_FREE:
                return DiskFull(
                    f"The disk of {paths.home} is full: {free / 2**20:,.0f} MB free. {message}",
                    hint=hint,
                )
            return EngineFailed(message, hint=hint)
    return EngineFailed(message, hint=_OTHER_HINT)


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _SHOWN_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
    except OSError:
        return "(no log yet)"
    return "\n".join(lines[-_SHOWN_LINES:]) or "(the log is empty)"
