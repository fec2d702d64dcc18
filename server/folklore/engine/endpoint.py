"""Where an engine listens: a socket in a private directory, or a port with a password where there are no sockets."""

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
from folklore.engine.paths import Place
from folklore.engine.pidfile import read_pid_file
from folklore.errors import EngineFailed

USER = "folklore"
DATABASE = "folklore"
SOCKET_PORT = 5432
SOCKET_LOCK = f".s.PGSQL.{SOCKET_PORT}.lock"
LOCALHOST = "127.0.0.1"

# Windows: asyncpg cannot use Unix sockets there. None of the lines for TCP in this package were tried on Windows, only
# on Linux with this flag set.
OVER_TCP = os.name == "nt"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`host` is a directory (socket) or an address (TCP, with a password)."""

    host: str
    port: int
    password: str | None = field(default=None, repr=False)

    def dsn(self, database: str = DATABASE) -> str:
        if self.password is not None:
            return f"postgresql://{USER}:{quote(self.password, safe='')}@{self.host}:{self.port}/{database}"
        return f"postgresql://{USER}@/{database}?host={quote(os.fsencode(self.host), safe='')}&port={self.port}"

    def environment(self, database: str) -> dict[str, str]:
        """For libpq; a password in the environment is not seen in the process list."""
        variables = {"PGHOST": self.host, "PGPORT": str(self.port), "PGUSER": USER, "PGDATABASE": database}
        return variables | ({"PGPASSWORD": self.password} if self.password is not None else {})


def recorded(place: Place) -> Endpoint | None:
    """Where the server says that it listens (it may be dead); clients with other temporary directories must find it."""
    written = read_pid_file(place.data)
    if written is None:
        return None
    if OVER_TCP:
        return Endpoint(LOCALHOST, written.port, _read_password(place))
    return Endpoint(written.socket_directory, written.port)


def choose(place: Place, account: Account | None) -> Endpoint:
    """Where an engine about to start shall listen; makes the directory."""
    if OVER_TCP:
        return Endpoint(LOCALHOST, _free_port(), _read_password(place))
    tried: list[str] = []
    for folder in _candidates(place, account):
        try:
            _make_private(folder, account)
            _try_socket(folder)
        except OSError as error:
            tried.append(f"{folder}: {error.strerror or error}")
        else:
            return Endpoint(str(folder), SOCKET_PORT)
    raise EngineFailed(
        "No directory for the engine's socket:\n" + "\n".join(tried) + "\n",
        hint="Set TMPDIR, or FOLKLORE_HOME, to a short path on a local disk: a socket's may have some 100 bytes.",
    )


def _candidates(place: Place, account: Account | None) -> Iterator[Path]:
    if "," not in str(place.sockets):  # a comma would separate two hosts
        yield place.sockets
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and account is None:  # root's own is closed to the account
        yield Path(runtime, place.tag)
    yield Path(tempfile.gettempdir(), place.tag)
    yield Path("/tmp", place.tag)  # noqa: S108  (private, ownership verified; a long TMPDIR is common on build machines)


def _make_private(folder: Path, account: Account | None) -> None:
    """Everyone who reaches the socket is trusted, so the directory must be closed, and ours."""
    owner = account.uid if account else os.geteuid()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if account:
            account.give(folder)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
        raise PermissionError(f"not a directory with mode 0700 of user id {owner}")


def _try_socket(folder: Path) -> None:
    """Too long a path (107 bytes on Linux, 103 on macOS) and file systems without sockets show themselves here."""
    probe = folder / f".s.FOLK.{SOCKET_PORT}"  # as long as Postgres' own name
    probe.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fsencode(probe))
    probe.unlink()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((LOCALHOST, 0))
        port: int = listener.getsockname()[1]
    return port


def _read_password(place: Place) -> str:
    try:
        return place.password.read_text("ascii").strip()
    except FileNotFoundError:
        return ""


def make_password(place: Place, account: Account | None) -> None:
    """A new random password in a file that only its owner reads."""
    descriptor = os.open(place.password, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(hashlib.sha256(os.urandom(32)).hexdigest() + "\n")
    if account:
        account.give(place.password)
