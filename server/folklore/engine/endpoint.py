"""Endpoint of an engine: a socket in a private directory, or a port with a password on systems without sockets."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from folklore.engine.account import Account
from folklore.engine.files import EnginePaths, read_pid_file
from folklore.errors import EngineFailed

USER = "folklore"
DATABASE = "folklore"
SOCKET_PORT = 5432
SOCKET_LOCK = f".s.PGSQL.{SOCKET_PORT}.lock"
_LOCALHOST = "127.0.0.1"

# asyncpg cannot use Unix sockets on Windows. The branches for TCP were tested on Linux with this flag, not on Windows.
OVER_TCP = os.name == "nt"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a server. `host` is a directory (socket) or an IP address (TCP, with a password)."""

    host: str
    port: int
    password: str | None = field(default=None, repr=False)

    @property
    def dsn(self) -> str:
        """Address of the database in the form that asyncpg takes."""
        if self.password is not None:
            return f"postgresql://{USER}:{quote(self.password, safe='')}@{self.host}:{self.port}/{DATABASE}"
        return f"postgresql://{USER}@/{DATABASE}?host={quote(os.fsencode(self.host), safe='')}&port={self.port}"

    def variables(self, database: str) -> dict[str, str]:
        """Return the environment variables of libpq: a password there is not visible in the process list."""
        variables = {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": USER, "PGDATABASE": database}
        return variables | ({"PGPASSWORD": self.password} if self.password is not None else {})


def recorded_endpoint(paths: EnginePaths) -> Endpoint | None:
    """Return the endpoint in postmaster.pid. The server may be dead.

    Read from there because clients with another TMPDIR must find the same socket.
    """
    recorded = read_pid_file(paths.data)
    if recorded is None:
        return None
    if OVER_TCP:
        return Endpoint(_LOCALHOST, recorded.port, _read_password(paths))
    return Endpoint(recorded.socket_directory, recorded.port)


def choose_endpoint(paths: EnginePaths, account: Account | None) -> Endpoint:
    """Return the endpoint for the next start, with its directory created. Raises EngineFailed if none is possible."""
    if OVER_TCP:
        return Endpoint(_LOCALHOST, _free_port(), _read_password(paths))
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
        "No directory is usable for the engine's socket:\n" + "\n".join(failures) + "\n",
        hint="Set TMPDIR or FOLKLORE_HOME to a path of at most 65 bytes on a local disk.",
    )


def share_password(paths: EnginePaths, other: EnginePaths, account: Account | None) -> None:
    """Let another engine have the same password, which a copy of the roles takes along."""
    if OVER_TCP:
        other.engine.mkdir(mode=0o700)
        if account:
            account.chown(other.engine)
        _write_password(other, _read_password(paths), account)


def ensure_password(paths: EnginePaths, account: Account | None) -> None:
    """Write a random password into a file that only its owner can read, unless it has one."""
    if not _read_password(paths):
        _write_password(paths, hashlib.sha256(os.urandom(32)).hexdigest(), account)


def _write_password(paths: EnginePaths, password: str, account: Account | None) -> None:
    descriptor = os.open(paths.password, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{password}\n")
    if account:
        account.chown(paths.password)


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
    owner = account.uid if account else os.geteuid()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if account:
            account.chown(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
        raise PermissionError(f"not a directory with mode 0700 of user id {owner}")


def _try_socket(folder: Path) -> None:
    """Bind a socket: fails if the path is too long (over 107 bytes, macOS 103) or the file system has no sockets."""
    probe = folder / f".s.FOLK.{SOCKET_PORT}"  # as long as the name that Postgres uses
    probe.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fsencode(probe))
    probe.unlink()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((_LOCALHOST, 0))
        return int(listener.getsockname()[1])


def _read_password(paths: EnginePaths) -> str:
    try:
        return paths.password.read_text("ascii").strip()
    except FileNotFoundError:
        return ""
