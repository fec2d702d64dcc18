"""`folklore server`: the user's own server, which sessions and commands share."""

from collections import deque
from contextlib import suppress
from pathlib import Path

import click

from folklore.cli.context import CONNECT_SECONDS, local_settings, user_server
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either, print_line
from folklore.client.local_server import Running
from folklore.config import Settings
from folklore.engine import Engine
from folklore.errors import Refused, Unavailable

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
    settings = local_settings(ctx)
    server = user_server(ctx, settings)
    running = server.running()
    database = _database(settings)
    serves_http = running is not None and running.is_http

    def show() -> None:
        print_line(_process(running), bold=True)
        print_line(f"database {database}")
        print_line(f"socket   {server.path}", dim=True)
        if not serves_http:  # which logs where it was started
            print_line(f"log      {server.log}", dim=True)

    value = {
        "pid": None if running is None else running.pid,
        "url": (running.url or None) if running else None,
        "http": serves_http,
        "database": database,
        "socket": server.path,
        "log": None if serves_http else server.log,
    }
    print_either(value, show)


def _process(running: Running | None) -> str:
    """Return a sentence on the process."""
    if running is None:
        return "It does not run; the next session or command starts it."
    if running.is_http:
        return f"It runs as process {running.pid}: `folklore serve --http` at {running.url}"
    console = f" Its console is at {running.url}" if running.url else ""
    return f"It runs as process {running.pid}.{console}"


def _database(settings: Settings) -> str:
    """Return where the memories are, and whether the embedded Postgres runs."""
    if settings.database_url is not None:
        return "that of database_url"
    if Engine(settings.home).status().running:
        return "embedded Postgres, which runs"
    return "embedded Postgres, stopped until the next session or command"


@server.command()
@click.pass_context
def stop(ctx: click.Context) -> None:
    """Stop it when the requests that run are answered. The next session or command starts it again."""
    server = user_server(ctx, local_settings(ctx))
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
    server = user_server(ctx, local_settings(ctx))
    running = server.running()
    if running is not None and running.is_http:
        raise Refused(
            f"Process {running.pid} is `folklore serve --http` at {running.url}, which others may use.",
            hint="Restart it where it was started. `folklore server stop` ends it.",
        )
    server.replace_stuck()
    ctx.invoke(stop)
    server.connect(CONNECT_SECONDS).close()


@server.command()
@click.pass_context
def log(ctx: click.Context) -> None:
    """Print the last lines of its log."""
    with (
        suppress(FileNotFoundError),
        Path(user_server(ctx, local_settings(ctx)).log).open(encoding="utf-8") as lines,
    ):
        click.echo("".join(deque(lines, _LOG_LINES)), nl=False)
