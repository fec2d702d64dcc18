"""Endpoint of an engine: a socket in a private directory."""

import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from folklore.engine.account import Account
from folklore.engine.files import EnginePaths, read_pid_file
from folklore.errors import EngineFailed

USER = "folklore"
DATABASE = "folklore"
SOCKET_PORT = 5432
SOCKET_LOCK = f".s.PGSQL.{SOCKET_PORT}.lock"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a server; `host` is the directory of its socket."""

    host: str
    port: int

    @property
    def dsn(self) -> str:
        """Address of the database in the form that asyncpg takes."""
        return f"postgresql://{USER}@/{DATABASE}?host={quote(os.fsencode(self.host), safe='')}&port={self.port}"

    def variables(self, database: str) -> dict[str, str]:
        """Return the environment variables of libpq."""
        return {
            "PGHOST": self.host,
            "PGPORT": str(self.port),
            "PGUSER": USER,
            "PGDATABASE": database,
        }


def recorded_endpoint(paths: EnginePaths) -> Endpoint | None:
    """Return the endpoint in postmaster.pid. The server may be dead.

    Read from there because clients with another TMPDIR must find the same socket.
    """
    recorded = read_pid_file(paths.data)
    if recorded is None:
        return None
    return Endpoint(recorded.socket_directory, recorded.port)


def choose_endpoint(paths: EnginePaths, account: Account | None) -> Endpoint:
    """Return the endpoint for the next start, with its directory created. Raises EngineFailed if none is possible."""
    failures: list[str] = []
    for folder in _socket_directories(paths, account):
        try:
            _make_private(folder, account)
            _try_socket(folder)
        except OSError as error:
            failures.append(f"{folder}: {error.strerror or error}")
        else:
            return Endpoint(str(folder), SOCKET_PORT)
    raise EngineFailed(
        "No directory is usable for the engine's socket:\n"
        + "\n".join(failures)
        + "\n",
        hint="Set TMPDIR or FOLKLORE_HOME to a path of at most 65 bytes on a local disk.",
    )


def _socket_directories(paths: EnginePaths, account: Account | None) -> Iterator[Path]:
    if "," not in str(paths.sockets):  # a comma would separate two hosts
        yield paths.sockets
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and account is None:  # the account cannot enter root's own
        yield Path(runtime, paths.tag)
    yield Path(tempfile.gettempdir(), paths.tag)
    yield Path("/tmp", paths.tag)  # noqa: S108  (private, ownership verified; build machines often have a long TMPDIR)


def _make_private(folder: Path, account: Account | None) -> None:
    """Create the directory, or check its owner and mode: the server trusts every process that reaches the socket."""
    if account:
        owner = account.uid
    else:
        owner = os.geteuid()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if account:
            account.chown(folder)
    status = folder.lstat()
    if (
        not stat.S_ISDIR(status.st_mode)
        or status.st_uid != owner
        or status.st_mode & 0o077
    ):
        raise PermissionError(f"not a directory with mode 0700 of user id {owner}")


def _try_socket(folder: Path) -> None:
    """Bind a socket: fails if the path is too long (over 107 bytes, macOS 103) or the file system has no sockets."""
    probe = folder / f".s.FOLK.{SOCKET_PORT}"  # as long as the name that Postgres uses
    probe.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fsencode(probe))
    probe.unlink()
