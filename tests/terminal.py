"""Pseudo-terminal for tests: runs a command as a person sees it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests import forks

# The line about work that takes long, and the spaces that erase it.
_WAITING = re.compile(r"\r[^\n]*\r(?!\n)")
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Screen:
    """Exit code and output of a command on a terminal."""

    code: int
    raw: str

    @property
    def text(self) -> str:
        """The output without colours."""
        return _WAITING.sub("", _STYLE.sub("", self.raw).replace("\r\n", "\n"))

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def on_terminal(
    environment: Mapping[str, str],
    *arguments: object,
    columns: int = 80,
    typed: str = "",
    keys: str = "",
    prompt: str = "",
    **more: str,
) -> Screen:
    """Run a command on a terminal of this width; `typed` waits in its input. Blocks: call it in a thread.

    Each of `keys` is typed when `prompt` is shown again.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    process = subprocess.Popen(
        [*forks.command(), *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**clean, "TERM": "xterm-256color", "PAGER": "cat", **environment, **more},
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    prompted = 0
    output = b""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        readable, _, _ = select.select([ours], [], [], 0.2)
        try:
            part = os.read(ours, 65_536) if readable else None
        except OSError:  # the last writer has closed the terminal
            break
        if part == b"":
            break
        output += part or b""
        if keys and output.decode("utf-8", "replace").count(prompt) > prompted:
            prompted += 1
            while (
                termios.tcgetattr(ours)[3] & termios.ICANON and time.monotonic() < end
            ):
                # the terminal drops what comes before it is switched to single keys
                time.sleep(0.01)
            os.write(ours, keys[0].encode())
            keys = keys[1:]
    process.kill() if process.poll() is None and time.monotonic() >= end else None
    code = process.wait(10)
    os.close(ours)
    return Screen(code, output.decode("utf-8", "replace"))
