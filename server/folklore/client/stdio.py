"""Standard input and output of the bridge, by lines."""

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress

from folklore.background import in_thread
from folklore.client.remote import Message
from folklore.text.lines import LineReader, LongLine

_CHUNK = 65_536
_LOOK_SECONDS = 1.0


def claim_stdout() -> Callable[[Message], None]:
    """Return a writer of messages; whatever else this process or its children print goes to stderr from now on.

    A client that no longer reads is no error: standard input ends with it.
    """
    wire = os.dup(1)
    os.dup2(2, 1)

    def write(message: Message) -> None:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        line = memoryview(text.encode("utf-8", "replace") + b"\n")
        with suppress(BrokenPipeError):
            while line:
                line = line[os.write(wire, line) :]

    return write


async def read_lines(take: Callable[[bytes | LongLine], None]) -> None:
    """Pass each line of standard input to `take`, until it ends or the process that started this one is gone."""
    loop = asyncio.get_running_loop()
    # A thread reads every kind of standard input on every system.
    reading = in_thread(
        lambda: _read(lambda line: loop.call_soon_threadsafe(take, line)),
        "folklore-stdin",
    )
    parent = os.getppid()
    while not reading.done():
        await asyncio.wait({reading}, timeout=_LOOK_SECONDS)
        if os.getppid() != parent:
            return


def _read(take: Callable[[bytes | LongLine], object]) -> None:
    reader = LineReader()
    # the latter: the loop is closed, since the parent is gone
    with suppress(OSError, RuntimeError):
        while chunk := os.read(0, _CHUNK):
            for line in reader.feed(chunk):
                take(line)
