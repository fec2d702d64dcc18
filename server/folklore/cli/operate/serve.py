"""`folklore serve`: MCP over stdio or HTTP, and the commands that connect assistants."""

from __future__ import annotations

import asyncio
import os
import socket as sockets
import sys
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from folklore.app import App
from folklore.cli import forkserver
from folklore.cli.context import has_own_process, local_server, settings_of, user_server
from folklore.client.access import LOCAL_URL, access_of
from folklore.client.credentials import normalised
from folklore.client.local_server import LocalServer
from folklore.client.surroundings import namespace_of
from folklore.config import Settings, load_settings, namespace_of_file
from folklore.errors import FolkloreError, InvalidInput

if TYPE_CHECKING:
    from folklore.client.remote import Remote
    from folklore.server.application.beside import TakenServer

# One process needs few of the modules that serve: each function imports its own.


@click.command()
@click.option(
    "--http",
    is_flag=True,
    help="Serve streamable HTTP at /mcp and SSE at /sse instead of stdio.",
)
@click.option("--host", help="Address to listen on (with --http).")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Port to listen on (with --http)."
)
@click.option(
    "--url", help="Address by which clients call it, such as a proxy's (with --http)."
)
@click.option(
    "--insecure",
    is_flag=True,
    help="Admit whoever reaches --host, without a token (with --http).",
)
@click.option(
    "--read-only", is_flag=True, default=None, help="Offer only the tools that read."
)
@click.option(
    "--own",
    is_flag=True,
    help="Serve in a process of its own, as with FOLKLORE_OWN=1 (on stdio).",
)
@click.option(
    "--socket",
    type=int,
    hidden=True,
    help="Serve the user's commands and sessions on this descriptor.",
)
@click.option(
    "--inode", type=int, hidden=True, help="The inode of the path of that socket."
)
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    http: bool,
    read_only: bool | None,
    insecure: bool,
    own: bool,
    socket: int | None,
    inode: int | None,
    **options: Any,
) -> None:
    """Serve MCP over stdio (for one client that starts it), or over HTTP for several.

    With --server this is a bridge: the client gets that server's tools, resources and prompts over stdio, for the
    project of the working directory, with the token that was saved for the server.
    """
    options = {name: value for name, value in options.items() if value is not None}
    if http:
        _serve_http(ctx, read_only, insecure, **options)
    elif unusable := [*options, *(["insecure"] if insecure else [])]:
        raise click.UsageError(f"--{unusable[0]}: needs --http.")
    elif socket is not None and inode is not None:
        _serve_socket(ctx, socket, inode)
    else:
        _serve_stdio(ctx, read_only, own)


def _serve_stdio(ctx: click.Context, read_only: bool | None, own: bool) -> None:
    settings = settings_of(ctx, read_only=read_only)
    if settings.server is not None and settings.read_only:
        raise InvalidInput(
            "read_only",
            "does not apply to a bridge.",
            hint="Use a token that may only read.",
        )
    local = None if own else local_server(ctx, settings)
    if local is not None or settings.server is not None:
        from folklore.client.serving import serve as serve_session

        asyncio.run(serve_session(settings, local, partial(_packaged, settings)))
    else:
        asyncio.run(_serve_own(settings))


def _serve_socket(ctx: click.Context, descriptor: int, inode: int) -> None:
    settings = settings_of(ctx, quiet=False)
    server = LocalServer(str(settings.home), os.environ)
    with sockets.socket(fileno=descriptor) as listening:
        listening.set_inheritable(False)
        server.path = listening.getsockname()
        # Clients that connected before another process took the place are served all the same.
        if server.claim(inode):
            _start_engine_early(settings, listening)
            _start_forks(server)
        from folklore.server.application.local import run

        run(settings, server, listening, inode)


def _start_engine_early(
    settings: Settings, listening: sockets.socket | None = None
) -> None:
    """Start the embedded engine while this process imports its modules; the application waits for it, and reports.

    A fork does it where one can be made: it needs no turn of this interpreter, and the process of `_start_forks` must be
    forked while there is one thread. The fork listens on no socket of this process.
    """
    if settings.database_url is not None:
        return

    def start() -> None:
        from folklore.engine import Engine

        with suppress(FolkloreError):
            Engine(settings.home, idle_minutes=settings.engine.idle_minutes).start()

    if sys.platform != "linux" or threading.active_count() > 1:
        threading.Thread(target=start, name="folklore-engine", daemon=True).start()
        return
    with suppress(OSError):  # the application starts it
        process = os.fork()
        if process == 0:
            try:
                if (
                    os.fork() == 0
                ):  # nobody need wait for a process whose parent has ended
                    if listening is not None:
                        listening.close()
                    start()
            finally:
                os._exit(0)
        os.waitpid(process, 0)


def _start_forks(server: LocalServer) -> None:
    with suppress(OSError):  # clients do without
        forkserver.start(Path(server.forks_path), Path(server.log))


async def _packaged(settings: Settings, stack: AsyncExitStack) -> Remote:
    """Open a server of this package for what it knows without a database, until the end of the stack.

    Its libraries are imported only while the other server is away.
    """
    await asyncio.to_thread(import_module, "folklore.server.application.in_process")
    from folklore.client.remote import Remote
    from folklore.server.application.in_process import in_process

    app = App(settings, brief=True)
    server = await stack.enter_async_context(in_process(app))
    return Remote(
        LOCAL_URL,
        lambda: access_of(settings, namespace_of(settings), anonymous=True),
        settings.home,
        server,
    )


async def open_package(stack: AsyncExitStack, options: Mapping[str, str]) -> Remote:
    """Open what the package knows, as for a bridge, for a session with these options (client/session.py)."""
    config = options.get("config")
    path = None if config is None else Path(config)
    settings = load_settings(path, home=options.get("home"))
    return await _packaged(settings, stack)


async def _serve_own(settings: Settings) -> None:
    from folklore.client.serving import serve as serve_session
    from folklore.server.application.in_process import in_process

    async with in_process(App(settings), is_for_session=True) as server:
        await serve_session(settings, server, partial(_packaged, settings))


def _serve_http(
    ctx: click.Context,
    read_only: bool | None,
    insecure: bool,
    url: str | None = None,
    **options: Any,
) -> None:
    settings = settings_of(ctx, quiet=False, read_only=read_only, http=options or None)
    if settings.server is not None:  # over HTTP it would be ignored
        raise InvalidInput(
            "server",
            "does not apply to `folklore serve --http`.",
            hint="Unset FOLKLORE_SERVER.",
        )
    if url is not None:
        url = normalised(url)
        allowed = (url, *settings.http.allowed_hosts)
        settings = settings.model_copy(
            update={"http": settings.http.model_copy(update={"allowed_hosts": allowed})}
        )
    from folklore.server.application.serve import run

    run(
        settings,
        settings.http.host,
        settings.http.port,
        insecure=insecure,
        public_url=url,
        user_server=_user_server(ctx, settings),
    )


def _user_server(ctx: click.Context, settings: Settings) -> TakenServer | None:
    """Return what serves this user beside HTTP; None where each process is to have a server of its own."""
    if has_own_process():
        return None
    from folklore.server.application.beside import TakenServer

    def prepare(server: LocalServer) -> None:
        _start_engine_early(settings)
        _start_forks(server)

    project = namespace_of_file(ctx.find_root().obj["config"])
    return TakenServer(user_server(ctx, settings), project, prepare)
