"""A session of an assistant at the user's server: `folklore serve` without options of its own.

Imports the standard library and small modules alone, since an assistant waits for its tools. Where the settings are not
plain, or the server does not start, the command does the same and reports what is wrong (cli/operate/serve.py).
"""

from __future__ import annotations

import gc
import select
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from folklore.client.local_server import LocalServer, home_of
from folklore.client.session_start import has_plain_settings, leading_options
from folklore.machine import user_name

if TYPE_CHECKING:
    from folklore.client.remote import Remote

_CONNECT_SECONDS = 10.0
# What a start takes at most on a machine with much other work; then the command waits.
_START_SECONDS = 60.0
_POLL_SECONDS = 0.02
# How lines of a settings file begin that say something about a session.
_SESSION_SETTINGS = (b"author", b"log_format", b"namespace", b"remote", b"time_zone")
_LONGEST_AUTHOR = 200  # characters
# New objects after which Python looks for cycles among them.
_GARBAGE_THRESHOLD = 50_000


@dataclass(frozen=True, slots=True)
class PlainSettings:
    """The settings of a session, as the environment alone states them."""

    home: Path
    author: str
    namespace: str | None
    remote: str | None
    time_zone: str | None
    server: None = None
    token: None = None


def served(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    open_package: Callable[[AsyncExitStack, Mapping[str, str]], Awaitable[Remote]],
) -> bool:
    """Serve a session until its standard input ends, and return True.

    False, before anything was read, if the arguments mean something else, or the command line is to serve it.
    `open_package` opens the application in this process, with the options of the arguments, until the stack is closed.
    """
    # What is imported is no garbage, and a search among it takes a tenth of the start.
    gc.set_threshold(_GARBAGE_THRESHOLD)
    home = home_of(environ)
    command, options = leading_options(arguments)
    if home is None or command != ["serve"] or not hasattr(socket, "AF_UNIX"):
        return False
    config = options.get("config")
    server = LocalServer(options.get("home", home), environ, config=config)
    if environ.get("FOLKLORE_OWN") or not has_plain_settings(server, environ):
        return False
    try:
        connection = server.connect(_CONNECT_SECONDS)
    except OSError:
        return False
    with connection:
        settings = plain_settings(server, environ)
        if settings is None:
            return False
        # while the server starts
        import asyncio

        from folklore.client.serving import serve

        if not _wait_for_start(server, connection):
            return False
    try:
        asyncio.run(serve(settings, server, lambda stack: open_package(stack, options)))
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        gc.freeze()  # Python would look for cycles at its end
    return True


def plain_settings(
    server: LocalServer, environ: Mapping[str, str]
) -> PlainSettings | None:
    """Return the settings of a session; None if the file says something about them, or they may not be valid."""
    lines = server.settings_file.splitlines()
    if any(line.startswith(_SESSION_SETTINGS) for line in lines):
        return None

    def stated(name: str) -> str | None:
        value = environ.get(f"FOLKLORE_{name}", "")
        return value if value.strip() else None

    author = stated("AUTHOR") or user_name()
    is_valid = author.isprintable() and "://" not in author
    if not is_valid or len(author) > _LONGEST_AUTHOR:
        return None
    return PlainSettings(
        Path(server.home),
        author,
        stated("NAMESPACE"),
        stated("REMOTE"),
        stated("TIME_ZONE"),
    )


def _wait_for_start(server: LocalServer, connection: socket.socket) -> bool:
    """Wait until the server has read its settings; return False if it ended before, or takes longer than a minute."""
    deadline = time.monotonic() + _START_SECONDS
    while server.running() is None:
        # a server that ends closes the connection: there is nothing else to read
        is_closed = bool(select.select([connection], [], [], _POLL_SECONDS)[0])
        if is_closed or time.monotonic() > deadline:
            return False
    return True
