"""Stands for a process of Folklore that was forked: passes its streams on, and its signals, and ends as that does.

Run as a file, without the modules of a site, by `tests.forks`; it must start in a few milliseconds.
"""

import json
import os
import signal
import socket
import sys

_PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)


def main(address: str, arguments: list[str]) -> int:
    """Have a command carried out by the process that listens at an address; return its exit code."""
    request = {
        "arguments": arguments,
        "environment": dict(os.environ),
        "umask": os.umask(0),
    }
    content = json.dumps(request).encode()
    directory = os.open(".", os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        head = b"%10d" % len(content)
        socket.send_fds(connection, [head], [0, 1, 2, directory])
        connection.sendall(content)
        with connection.makefile("rb") as answer:
            process = int(answer.readline())
            for number in _PASSED_ON:
                signal.signal(number, lambda number, _: os.kill(process, number))
            # Who reads what the fork writes is to see the end of it when the fork ends.
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            return os.waitstatus_to_exitcode(int(answer.readline() or b"9"))


if __name__ == "__main__":
    code = main(sys.argv[1], sys.argv[2:])
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
