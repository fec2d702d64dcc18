"""The user's server: one process that serves every session and command of a home, over a Unix socket.

A client that finds no server binds the socket and passes it on to the server that it starts, so that other clients can
connect at once. `folklore serve --http` binds the socket itself, and is the user's server for as long as it runs.
Imports the standard library only, since every hook of an assistant does this.
"""

import hashlib
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple

from folklore import __version__

# Each request states these; the other variables of Folklore belong to the server.
_SESSION_VARIABLES = frozenset(
    f"FOLKLORE_{name}"
    for name in ("AUTHOR", "HOME", "NAMESPACE", "OWN", "SERVER", "TIME_ZONE", "TOKEN")
)
# Settings of what listens for others; sessions and commands do not depend on them.
_HTTP_PREFIXES = ("FOLKLORE_HTTP", "FOLKLORE_OAUTH")
# Of variables about the repository in which a client works.
_REPOSITORY_PREFIXES = ("GIT_", "CLAUDE_")
_LONGEST_PATH = 100  # of a socket: 104 bytes on macOS, 108 on Linux
_BACKLOG = 2048  # connections that wait while a server starts
_LONGEST_LOG = 5_000_000  # bytes
_STUCK_SECONDS = 10.0
_POLL_SECONDS = 0.02
# Errors of a connection where no server listens.
ABSENT = (FileNotFoundError, ConnectionRefusedError)
# The end of the name of a record, which a server has locked for its whole life.
_RECORD = ".pid"


def home_of(environ: Mapping[str, str]) -> str | None:
    """Return the home that the environment names, else the default one; None if the system knows no home of the user."""
    home = os.path.expanduser(environ.get("FOLKLORE_HOME") or "~/.folklore")
    return None if home.startswith("~") else home


class Running(NamedTuple):
    """A server that runs: its process, the address of its console, and whether it is `folklore serve --http`.

    The address is empty while no console listens.
    """

    pid: int
    url: str
    is_http: bool


class Bound(NamedTuple):
    """A listening socket at the path of a server, and the inode of that path."""

    listening: socket.socket
    inode: int


class LocalServer:
    """The server of one home and one set of settings, whether it runs or not.

    Another version, installation or configuration has a server of its own; that of the former one ends when it is idle.
    """

    answer_seconds = 60.0
    waiting = "Waiting for your server"

    def __init__(
        self, home: str, environ: Mapping[str, str], **flags: str | None
    ) -> None:
        """Read the settings file, and find where the server listens; start nothing.

        `flags` are settings of a command line by their names, which precede the variables in `environ`.
        `settings_file` is the content of the file, empty without one.
        """
        settings, others = _divided(environ, flags)
        file = settings.pop("FOLKLORE_CONFIG", f"{home}/config.yaml")
        file = os.path.abspath(os.path.expanduser(file))
        self.settings_file = b""
        with suppress(OSError), open(file, "rb") as stream:
            self.settings_file = stream.read()
            settings["FOLKLORE_CONFIG"] = file
        unset = {"FOLKLORE_SERVER": "", "FOLKLORE_NAMESPACE": ""}
        self._environment = {**others, **settings, **unset, "FOLKLORE_HOME": home}
        self.home = home
        self.log = f"{home}/logs/server.log"
        self.path = _socket_path(home, _key(home, settings, self.settings_file))
        self._record: int | None = None
        self._is_http = False

    def connect(self, seconds: float) -> socket.socket:
        """Return a connection to the server, which is started if it does not run. Raises OSError."""
        with suppress(*ABSENT):
            return self._connected(seconds)
        with self._locked():
            with suppress(*ABSENT):
                # another client has started it meanwhile
                return self._connected(seconds)
            self._start()
            return self._connected(seconds)

    def take_over(self) -> Bound | None:
        """Bind the socket for this process; the server that had it ends when its requests are answered.

        None if another `folklore serve --http` is the server. Raises OSError.
        """
        with self._locked():
            running = self.running()
            if running is not None and running.is_http:
                return None
            return self._bind()

    def replace_stuck(self) -> None:
        """Kill the server if it does not answer in ten seconds; the next connection starts another. Raises OSError.

        `folklore serve --http` may serve others: it lives on, and is the user's server no more.
        """
        with self._locked():
            running = self.running()
            if running is None or self._answers() or running != self.running():
                return
            if running.is_http:
                os.unlink(self.path)
                os.unlink(self.path + _RECORD)
                return
            os.kill(running.pid, signal.SIGKILL)
            self.wait(_STUCK_SECONDS)

    def stop(self) -> int | None:
        """Ask the server that runs to end when its requests are answered; return its process id, None without one."""
        pid = self.pid()
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        return pid

    def wait(self, seconds: float) -> bool:
        """Wait until no server runs, at most this long; return whether none does."""
        deadline = time.monotonic() + seconds
        while self.pid() is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def pid(self) -> int | None:
        """Return the process id of the server that runs; None if none does."""
        running = self.running()
        if running is None:
            return None
        return running.pid

    def running(self) -> Running | None:
        """Return the server that runs; None if none does."""
        return _recorded(self.path + _RECORD)

    def running_at(self, port: int) -> tuple[str, Running] | None:
        """Return the path of the socket and the server, of any settings and version, whose console has a port."""
        folder = os.path.dirname(self.path)
        with suppress(OSError):
            for name in os.listdir(folder):
                path = f"{folder}/{name}"
                running = _recorded(path) if name.endswith(_RECORD) else None
                if running is not None and running.url.endswith(f":{port}"):
                    return path.removesuffix(_RECORD), running
        return None

    def claim(self, inode: int, url: str = "", *, is_http: bool = False) -> bool:
        """Declare this process the server, for its whole life; wait for the end of the one before it.

        False if the socket with this inode is replaced meanwhile: then another process is the server.
        """
        file = os.open(self.path + _RECORD, os.O_RDWR | os.O_CREAT, 0o600)
        while True:
            try:
                _lock(file, wait=False)
                break
            except BlockingIOError:
                if self.inode() != inode:
                    os.close(file)
                    return False
                time.sleep(_POLL_SECONDS)
        self._record = file  # never closed
        self._is_http = is_http
        self.note_url(url)
        return True

    def give_up(self) -> None:
        """Declare this process no server any more, though it lives on."""
        if self._record is not None:
            os.close(self._record)
            self._record = None

    def note_url(self, url: str) -> None:
        """Record the address of the console, once this process is the server."""
        if self._record is not None:
            lines = (str(os.getpid()), url, "http" if self._is_http else "")
            os.ftruncate(self._record, 0)
            os.pwrite(self._record, "\n".join(lines).encode(), 0)

    def release(self, inode: int) -> bool:
        """Remove the socket with this inode, so that no client connects any more; False while another has the lock."""
        with suppress(BlockingIOError), self._locked(wait=False):
            if self.inode() == inode:
                os.unlink(self.path)
            return True
        return False

    def inode(self) -> int | None:
        """Return the inode of the socket, or None without a socket or its home, which may be elsewhere."""
        with suppress(OSError):
            os.stat(self.home)
            return os.stat(self.path).st_ino
        return None

    def age(self) -> float | None:
        """Return the seconds since the socket was bound, which is when a server was started; None without a socket."""
        with suppress(OSError):
            return time.time() - os.stat(self.path).st_mtime
        return None

    def _answers(self) -> bool:
        with suppress(OSError), self._connected(_STUCK_SECONDS) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n")
            return bool(connection.recv(1))
        return False

    def connect_to_forks(self, seconds: float) -> socket.socket:
        """Return a connection to the process that forks for clients of the server. Raises OSError."""
        return self._connected(seconds, self.forks_path)

    @property
    def forks_path(self) -> str:
        """Path of the socket of that process."""
        return f"{self.path.removesuffix('.sock')}.fork"

    def _connected(self, seconds: float, path: str | None = None) -> socket.socket:
        _require_private(os.path.dirname(self.path))
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(seconds)
            connection.connect(path or self.path)
        except OSError:
            connection.close()
            raise
        return connection

    def _bind(self) -> Bound:
        """Return a new listening socket at the path. The caller holds the lock."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        listening = socket.socket(socket.AF_UNIX)
        try:
            listening.bind(self.path)
            os.chmod(self.path, 0o600)
            listening.listen(_BACKLOG)
            return Bound(listening, os.stat(self.path).st_ino)
        except OSError:
            listening.close()
            with suppress(FileNotFoundError):
                os.unlink(self.path)
            raise

    def _start(self) -> None:
        """Bind the socket, and start a server that gets it. The caller holds the lock."""
        import subprocess

        os.makedirs(os.path.dirname(self.log), exist_ok=True)
        with suppress(OSError):
            if os.stat(self.log).st_size > _LONGEST_LOG:
                os.replace(self.log, f"{self.log}.1")
        listening, inode = self._bind()
        # -P: without it, a file folklore.py of the working directory would be executed.
        command = [sys.executable, "-P", "-m", "folklore", "serve"]
        command += ["--socket", str(listening.fileno()), "--inode", str(inode)]
        with listening, open(self.log, "ab") as log:
            try:
                process = subprocess.Popen(  # noqa: S603 - this program itself
                    command,
                    env=self._environment,
                    cwd=self.home,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[listening.fileno()],
                    start_new_session=True,
                )
            except OSError:
                os.unlink(self.path)
                raise
            process.returncode = 0  # keeps Popen from warning that it still runs

    @contextmanager
    def _locked(self, *, wait: bool = True) -> Iterator[None]:
        """Let one process at a time start or end a server. Raises BlockingIOError, and OSError without a folder."""
        folder = os.path.dirname(self.path)
        if wait:
            os.makedirs(self.home, exist_ok=True)
            with suppress(FileExistsError):
                os.mkdir(folder, 0o700)
        _require_private(folder)
        file = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock(file, wait=wait)
            yield
        finally:
            os.close(file)


def _key(home: str, settings: Mapping[str, str], settings_file: bytes) -> str:
    """Return what tells this server from others of the user: 12 digits that follow from version, home and settings."""
    shared = []
    for name, value in sorted(settings.items()):
        if name not in _SESSION_VARIABLES and not name.startswith(_HTTP_PREFIXES):
            shared.append((name, value))
    about = (__version__, __file__, socket.gethostname(), home, shared, settings_file)
    text = repr(about).encode("utf-8", "surrogateescape")
    return hashlib.sha256(text).hexdigest()[:12]


def _socket_path(home: str, key: str) -> str:
    """Return the path of the socket: in the home, unless that is too long for a socket."""
    path = f"{home}/run/{key}.sock"
    if len(os.fsencode(path)) <= _LONGEST_PATH:
        return path
    # Anybody may create this folder: whose it is, is checked before each use.
    return f"/tmp/folklore-{os.getuid()}/{key}.sock"  # noqa: S108


def _divided(
    environ: Mapping[str, str], flags: Mapping[str, str | None]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings by variable, and the variables that are none, without those of the client's repository."""
    settings = {}
    others = {}
    for name, value in environ.items():
        if name.startswith("FOLKLORE_"):
            if value:
                settings[name] = value
        elif not name.startswith(_REPOSITORY_PREFIXES):
            others[name] = value
    for flag, setting in flags.items():
        if setting:
            settings[f"FOLKLORE_{flag.upper()}"] = setting
    return settings, others


def _recorded(path: str) -> Running | None:
    """Return the server that has locked a record; None if none has."""
    import fcntl

    with suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        try:
            # Shared, so that two processes that look at once do not take one another for the server.
            fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            pid, _, rest = file.read().partition("\n")
            url, _, kind = rest.partition("\n")
            return Running(int(pid), url, kind == "http")
    return None


def _lock(file: int, *, wait: bool = True) -> None:
    """Lock an open file until it is closed. Raises BlockingIOError."""
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


def _require_private(folder: str) -> None:
    """Raise PermissionError unless this user alone reaches the folder: what listens in it is trusted."""
    status = os.lstat(folder)
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_ours or status.st_mode & 0o077:
        raise PermissionError(
            f"{folder} is not a directory with mode 0700 of user id {os.getuid()}"
        )
