"""Processes of Folklore without the second that a start takes: forks of one that has everything imported.

For tests that need a process and are not about its start, its imports, its memory or its place among processes.
A fork has the environment, the directory, the streams and the user of the process that stands for it.
"""

import atexit
import ctypes
import functools
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import folklore as package
from folklore import __main__ as program
from folklore.embedding import bundled
from tests import ROOT

# More than the process that forks has open.
_DESCRIPTORS = 4_096
# The signal that a process gets when the one that forked it has ended.
_PR_SET_PDEATHSIG = 1


def command() -> list[str]:
    """The beginning of a command line that stands for `python -m folklore`."""
    if sys.platform != "linux":
        return [sys.executable, "-m", "folklore"]
    program = str(Path(__file__).with_name("fork_client.py"))
    return [sys.executable, "-I", "-S", program, _address()]


@functools.cache
def _address() -> str:
    """Start the process that forks, once, and return its address; it ends with this process, as its input does."""
    folder = Path(tempfile.mkdtemp(prefix="folklore-forks-", dir="/tmp"))
    folder.chmod(0o755)  # other users are tested too
    address = str(folder / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forks", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    atexit.register(process.communicate)
    return address


@dataclass(frozen=True, slots=True)
class _Client:
    """A process that a fork stands for: its request, the descriptors that came with it, and its user and group."""

    arguments: list[str]
    environment: dict[str, str]
    umask: int
    descriptors: list[int]
    user: int
    group: int


def _serve(address: str) -> None:
    """Fork for each connection, and tell it the id of the fork and how that ended, until standard input ends."""
    for module in pkgutil.walk_packages(package.__path__, "folklore."):
        import_module(module.name)
    bundled.load_model = functools.cache(bundled.load_model)
    bundled.load_model()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    Path(address).chmod(0o777)
    listening.listen(64)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C means the tests
    gc.collect()
    gc.freeze()
    print("ready", flush=True)

    # by the descriptors that tell of their ends
    forks: dict[int, tuple[int, socket.socket]] = {}
    while True:
        events: list[int | socket.socket] = [0, listening, *forks]
        events += [connection for _, connection in forks.values()]
        ready = select.select(events, [], [])[0]
        if 0 in ready:
            break
        for ended in [fork for fork in forks if fork in ready]:
            process, connection = forks.pop(ended)
            os.close(ended)
            status = os.waitpid(process, 0)[1]
            with suppress(OSError), connection:
                connection.sendall(b"%d\n" % status)
        for process, connection in forks.values():
            if connection in ready:  # the process that it stands for was killed
                os.kill(process, signal.SIGKILL)
        if listening in ready:
            connection = listening.accept()[0]
            with suppress(OSError, ValueError):  # it has ended meanwhile
                process = _fork(_client(connection))
                forks[os.pidfd_open(process)] = (process, connection)
                connection.sendall(b"%d\n" % process)

    for process, _ in forks.values():
        os.kill(process, signal.SIGKILL)
    Path(address).unlink()
    Path(address).parent.rmdir()


def _client(connection: socket.socket) -> _Client:
    """Read a request. Raises OSError, ValueError: it is not whole."""
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    _, user, group = struct.unpack("3i", credentials)
    head, descriptors, _, _ = socket.recv_fds(connection, 10, 4)
    with connection.makefile("rb") as content:
        request = json.loads(content.read(int(head)))
    return _Client(**request, descriptors=descriptors, user=user, group=group)


def _fork(client: _Client) -> int:
    """Fork for a client; return the id of the fork."""
    process = os.fork()
    if process == 0:
        try:
            _become(client)
            os._exit(_exit_code())
        finally:
            os._exit(1)
    for descriptor in client.descriptors:
        os.close(descriptor)
    return process


def _become(client: _Client) -> None:
    """Take over the streams, the directory, the environment and the user of a client, as a new Python does."""
    *streams, directory = client.descriptors
    os.fchdir(directory)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, _DESCRIPTORS)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.umask(client.umask)
    if client.user != os.geteuid():
        os.setgroups([])
        os.setgid(client.group)
        os.setuid(client.user)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    os.environ.clear()
    os.environ.update(client.environment)
    time.tzset()
    sys.argv = ["folklore", *client.arguments]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    for folder in client.environment.get("PYTHONPATH", "").split(os.pathsep):
        custom = Path(folder, "sitecustomize.py")
        if folder and custom.is_file():
            runpy.run_path(str(custom))


def _exit_code() -> int:
    """Run a command, and return the exit code of its process."""
    code = 0
    try:
        program.main()
    except SystemExit as ended:
        code = (
            ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        )
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except Exception:  # noqa: BLE001 - as Python at its end
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return code


if __name__ == "__main__":
    _serve(sys.argv[1])
