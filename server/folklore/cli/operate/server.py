"""`folklore server`: the user's own server, which sessions and commands share."""

from collections import deque
from contextlib import suppress
from pathlib import Path

import click

from folklore.cli.context import CONNECT_SECONDS, found_server, local_settings
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_line
from folklore.errors import Unavailable

_STOP_SECONDS = 30.0
_LOG_LINES = 50

server = click.Group(
    "server",
    help="Your own server, which the sessions of assistants and commands share. It starts when it is needed.",
)


@server.command()
@context_and_json
def status(ctx: click.Context) -> None:
    """Show whether it runs, its process, socket and log."""
    server = found_server(ctx, local_settings(ctx))
    pid = server.pid()

    def show() -> None:
        print_line(
            "It does not run." if pid is None else f"It runs as process {pid}.",
            bold=True,
        )
        print_line(f"socket {server.path}\nlog    {server.log}", dim=True)

    print_either({"pid": pid, "socket": server.path, "log": server.log}, show)


@server.command()
@click.pass_context
def stop(ctx: click.Context) -> None:
    """Stop it when the requests that run are answered. The next session or command starts it again."""
    server = found_server(ctx, local_settings(ctx))
    pid = server.stop()
    if not server.wait(_STOP_SECONDS):
        hint = "`folklore server restart` kills one that does not answer."
        raise Unavailable(
            f"Process {pid} has not ended in {_STOP_SECONDS:g} seconds.", hint=hint
        )
    print_line("It did not run." if pid is None else f"Process {pid} has ended.")


@server.command()
@click.pass_context
def restart(ctx: click.Context) -> None:
    """Stop it and start it again; one that does not answer is killed."""
    server = found_server(ctx, local_settings(ctx))
    server.replace_stuck()
    ctx.invoke(stop)
    server.connect(CONNECT_SECONDS).close()


@server.command()
@click.pass_context
def log(ctx: click.Context) -> None:
    """Print the last lines of its log."""
    with (
        suppress(FileNotFoundError),
        Path(found_server(ctx, local_settings(ctx)).log).open(
            encoding="utf-8"
        ) as lines,
    ):
        click.echo("".join(deque(lines, _LOG_LINES)), nl=False)
