"""Process that forks for each command of a client of the user's server, with the command line already imported.

On Linux only, where a client's rights can be compared with those of the server: a fork acts for the client.
"""

import gc
import json
import logging
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn, TextIO, cast

from folklore.cli import screen
from folklore.cli.main import outcome
from folklore.client import forked

_MODULES = (
    "cli.daily.injected",
    "cli.daily.read",
    "cli.daily.stale",
    "cli.daily.status",
    "cli.daily.undo",
    "cli.daily.write",
)
# Beginnings of lines in /proc/PID/status: user, groups, capabilities, and what a sandbox forbids.
_RIGHTS = ("Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp")
_NAME = "folklore-forks"
_BACKLOG = 128
_SECONDS = 5.0  # within which a client sends its command


def start(path: Path, log: Path) -> None:
    """Fork the process that listens at a path, until this one has ended. Call it while there is one thread.

    What it has to say goes to a log: it may outlive this process, whose output others wait for.
    Raises OSError: no socket or process can be made.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return
    for module in _MODULES:
        import_module(f"folklore.{module}")
    path.unlink(missing_ok=True)
    # the end to write to stays open in this process alone, so that the other one tells when it has ended
    end_of_server, _ = os.pipe()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(_BACKLOG)
        if os.fork() == 0:
            try:
                _redirect_streams(log)
                _serve(listening, end_of_server)
            finally:
                os._exit(1)
    os.close(end_of_server)


def _redirect_streams(log: Path) -> None:
    log.parent.mkdir(parents=True, exist_ok=True)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for descriptor, stream in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(descriptor, stream)


def _serve(listening: socket.socket, end_of_server: int) -> None:
    """Fork for each client until the other end of `end_of_server` is closed, and stay until the last fork has ended."""
    Path("/proc/self/comm").write_text(_NAME)
    # What ends a server in a terminal is not meant for the sessions that forks carry on.
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    for descriptor in [int(file.name) for file in Path("/proc/self/fd").iterdir()]:
        if descriptor > 2 and descriptor not in (listening.fileno(), end_of_server):
            with suppress(OSError):  # the lock and the socket of the server
                os.close(descriptor)
    gc.collect()
    gc.freeze()
    rights = _rights_of(os.getpid())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # forks leave no zombies
    events: list[socket.socket | int] = [listening, end_of_server]
    while end_of_server not in select.select(events, [], [])[0]:
        with suppress(OSError), listening.accept()[0] as connection:
            if os.fork() == 0:
                listening.close()
                _carry_out(connection, rights)
    listening.close()
    # while SIGCHLD is ignored, this returns, with an error, when the last fork has ended
    with suppress(ChildProcessError):
        os.wait()


def _rights_of(process: int) -> object:
    """Return all that decides what a process may do and see, to be compared with that of another. Raises OSError."""
    folder = Path("/proc", str(process))
    lines = (folder / "status").read_text().splitlines()
    rights = [line for line in lines if line.startswith(_RIGHTS)]
    # the root directory and the kernel's namespaces of a process are known by their inodes
    inodes = []
    for file in (folder / "root", *sorted((folder / "ns").iterdir())):
        status = file.stat()
        inodes.append((status.st_dev, status.st_ino))
    label = b""
    with suppress(OSError):  # without a security module
        label = (folder / "attr/current").read_bytes()
    return rights, inodes, label


def _carry_out(connection: socket.socket, rights: object) -> NoReturn:
    """Carry out the command of a client with these rights, else nothing; answer its exit code and the page to show.

    Nothing is done before the client knows the id of this process.
    """
    code = 1
    page = list[Any]()
    try:
        credentials = connection.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
        )
        forked.client_process = struct.unpack("3i", credentials)[0]
        if _rights_of(forked.client_process) == rights:
            connection.settimeout(_SECONDS)
            arguments = _become_client(connection)
            connection.sendall(b"%d\n" % os.getpid())
            connection.settimeout(None)
            threading.Thread(
                target=_end_with_client, args=(connection,), daemon=True
            ).start()
            screen.show_page = lambda *shown: page.extend(shown)
            code = outcome(arguments)
            sys.stdout.flush()
    except KeyboardInterrupt:  # before the command or after it
        code = 130
    finally:
        with suppress(OSError):  # the client has ended
            connection.sendall(json.dumps({"code": code, "page": page}).encode())
        os._exit(code)


def _become_client(connection: socket.socket) -> list[str]:
    """Take over the streams, directory and environment of a client, and return its arguments. Raises OSError."""
    head, (*streams, directory), _, _ = socket.recv_fds(
        connection, forked.HEAD_BYTES, 4
    )
    with connection.makefile("rb") as content:
        message = json.loads(content.read(int(head)))
    os.fchdir(directory)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.close(directory)
    os.umask(message["umask"])
    os.environ.clear()
    os.environ.update(message["environment"])
    time.tzset()
    sys.stdin = _text_stream(0, "r", "strict")
    sys.stdout = _text_stream(1, "w", "replace")
    sys.stderr = _text_stream(2, "w", "replace")
    logging.getLogger().handlers.clear()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    return list(message["arguments"])


def _text_stream(number: int, mode: str, errors: str) -> TextIO:
    """Return a stream as Python opens it at its start: buffered by lines for a person, and for errors."""
    by_lines = number == 2 or os.isatty(number)
    buffering = 1 if by_lines else -1
    stream = open(number, mode, buffering, "utf-8", errors, closefd=False)  # noqa: SIM115
    return cast("TextIO", stream)


def _end_with_client(connection: socket.socket) -> None:
    """End this process when the client closes the connection, on which it sends nothing more."""
    with suppress(OSError):
        connection.recv(1)
    os._exit(1)
