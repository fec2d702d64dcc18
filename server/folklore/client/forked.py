"""A command that a fork of the user's server carries out. Imports the standard library only: people wait for it."""

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress

from folklore.client.local_server import ABSENT, LocalServer, home_of
from folklore.client.session_start import has_plain_settings, leading_options

# What users and assistants call many times a day.
_COMMANDS = frozenset(
    {
        "forget",
        "history",
        "injected",
        "list",
        "log",
        "pin",
        "recall",
        "relate",
        "search",
        "show",
        "stale",
        "status",
        "store",
        "undo",
    }
)
_SECONDS = 5.0  # within which a command begins, else this process carries it out itself
_POLL_SECONDS = 1.0
HEAD_BYTES = 10  # of a message, before its JSON: the length of that in bytes, as a decimal number
client_process = 0  # in a fork, that of its client


def exit_code(arguments: Sequence[str], environ: Mapping[str, str]) -> int | None:
    """Let a fork of the user's server carry out a command, and return its exit code.

    None if it has not begun: this process must carry it out itself.
    """
    if sys.platform != "linux" or environ.get("FOLKLORE_OWN") or "--debug" in arguments:
        return None
    home = home_of(environ)
    if home is None:
        return None
    command, options = leading_options(arguments)
    if not _COMMANDS.issuperset(command[:1]):
        return None
    config = options.get("config")
    server = LocalServer(options.get("home", home), environ, config=config)
    try:
        for stream in (0, 1, 2):
            os.fstat(stream)  # the connection would get the number of a closed one
        connection = server.connect_to_forks(_SECONDS)
    except ABSENT:
        _start_early(server, arguments, environ)
        return None
    except OSError:
        return None
    try:
        _send(connection, arguments, environ)
        answer = connection.makefile("rb")
        process = int(answer.readline())
    except (OSError, ValueError):
        return None  # the fork ended: this process has other rights than the server

    connection.settimeout(None)
    signal.signal(signal.SIGINT, lambda *_: os.kill(process, signal.SIGINT))
    parent = os.getppid()
    while not select.select([connection], [], [], _POLL_SECONDS)[0]:
        if os.getppid() != parent:
            return 1  # an assistant was killed, and what it started may keep our standard input open
    return _shown(answer.read())


def _send(
    connection: socket.socket, arguments: Sequence[str], environ: Mapping[str, str]
) -> None:
    """Send a command, and the streams and the directory of this process. Raises OSError."""
    umask = os.umask(0o077)
    os.umask(umask)
    message = json.dumps(
        {"arguments": arguments, "environment": dict(environ), "umask": umask}
    ).encode()
    head = b"%*d" % (HEAD_BYTES, len(message))
    directory = os.open(".", os.O_PATH)
    socket.send_fds(connection, [head], [0, 1, 2, directory])
    connection.sendall(message)


def _start_early(
    server: LocalServer, arguments: Sequence[str], environ: Mapping[str, str]
) -> None:
    """Start the server that a command is about to call, so that both import their modules at the same time."""
    asks_for_help = not {"-h", "--help"}.isdisjoint(arguments)
    if not asks_for_help and has_plain_settings(server, environ):
        with suppress(OSError):  # the command reports it
            server.connect(_SECONDS).close()


def _shown(outcome: bytes) -> int:
    """Show the page that a fork left to this process, which has the terminal, and return the exit code."""
    if not outcome:
        sys.stderr.write(
            "folklore: the process that carried out this command was killed.\n"
        )
        return 128 + signal.SIGKILL
    value = json.loads(outcome)
    if value["page"]:
        import click

        click.echo_via_pager(*value["page"])
    return int(value["code"])
