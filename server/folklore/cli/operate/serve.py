"""`folklore serve`: MCP over stdio or HTTP, and the commands that connect assistants."""

import asyncio
import gc
import os
import shlex
import socket as sockets
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from folklore import log, telemetry as spans
from folklore.app import App, working_copy
from folklore.cli import forkserver
from folklore.cli.client import LOCAL_URL, request_headers, token_for
from folklore.cli.context import local_server, quick_settings, settings_of
from folklore.clients.credentials import normalised
from folklore.config import Settings
from folklore.errors import InvalidInput
from folklore.local.server import LocalServer


@click.command()
@click.option("--http", is_flag=True, help="Serve streamable HTTP at /mcp and SSE at /sse instead of stdio.")
@click.option("--host", help="Address to listen on (with --http).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (with --http).")
@click.option("--url", help="Address by which clients call it, such as a proxy's (with --http).")
@click.option("--insecure", is_flag=True, help="Listen on --host even though no token is needed (with --http).")
@click.option("--read-only", is_flag=True, default=None, help="Offer only the tools that read.")
@click.option("--own", is_flag=True, help="Serve in a process of its own, as with FOLKLORE_OWN=1 (on stdio).")
@click.option("--socket", type=int, hidden=True, help="Serve the user's commands and sessions on this descriptor.")
@click.option("--snippets", is_flag=True, help="Print the commands that connect assistants first (with --http).")
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    http: bool,
    read_only: bool | None,
    snippets: bool,
    insecure: bool,
    own: bool,
    socket: int | None,
    **given: Any,
) -> None:
    """Serve MCP over stdio (for one client that starts it), or over HTTP for several.

    With --server this is a bridge: the client gets that server's tools, resources and prompts over stdio, for the
    project of the working directory, with the token that was saved for the server.
    """
    given = {name: value for name, value in given.items() if value is not None}
    if http:
        url = given.pop("url", None)
        settings = settings_of(ctx, quiet=False, read_only=read_only, http=given or None)
        if url is not None:
            url = normalised(url)
            allowed = (url, *settings.http.allowed_hosts)
            settings = settings.model_copy(update={"http": settings.http.model_copy(update={"allowed_hosts": allowed})})
        _serve_http(ctx, settings, snippets, insecure, url)
        return
    for name, value in (given | {"insecure": insecure, "snippets": snippets}).items():
        if value is not False:
            raise click.UsageError(f"--{name}: needs --http.")
    if socket is not None:
        _serve_socket(ctx, socket)
        return
    settings, level = quick_settings(ctx, read_only=read_only)
    log.configure_early(level)
    if settings.server is not None and settings.read_only:
        raise InvalidInput("read_only", "does not apply to a bridge.", hint="Use a token that may only read.")
    local = None if own else local_server(ctx, settings)
    if local is not None or settings.server is not None:
        asyncio.run(_serve_bridge(settings, local))
    else:
        asyncio.run(_serve_stdio(settings, level))


def _serve_socket(ctx: click.Context, descriptor: int) -> None:
    settings = settings_of(ctx, quiet=False)
    server = LocalServer(str(settings.home), os.environ)
    with sockets.socket(fileno=descriptor) as listening:
        listening.set_inheritable(False)
        server.path = listening.getsockname()
        server.claim()
        with suppress(OSError):  # clients do without
            forkserver.start(Path(server.forks_path))
        from folklore.http.server.local import run

        run(settings, server, listening)


async def _serve_bridge(settings: Settings, local: LocalServer | None) -> None:
    from folklore.bridge.bridge import Bridge
    from folklore.bridge.connections import Message
    from folklore.bridge.remote import Access, Remote
    from folklore.bridge.stdio import claim_stdout, read_lines
    from folklore.memory.service.bridged_code import BridgedCode

    async def own(messages: Sequence[Message]) -> Message:
        """Answer as the server of this package does; its libraries are imported only while the team's is away."""
        in_memory = await asyncio.to_thread(import_module, "folklore.mcp.in_memory")
        protocol = (await asyncio.to_thread(import_module, "folklore.mcp.server")).build_server(
            App(settings).service, offered=settings.tools
        )
        answer: Message = await in_memory.answer(protocol, messages)
        return answer

    address = LOCAL_URL if local else normalised(str(settings.server))
    remote = Remote(address, lambda: Access(token_for(settings), request_headers(settings)), settings.home, local)
    remote.prepare()
    bridge = Bridge(remote, claim_stdout(), own, BridgedCode(working_copy(settings)))
    try:
        await read_lines(bridge.take)
    finally:
        await bridge.close()


async def _serve_stdio(settings: Settings, level: str) -> None:
    gc.disable()  # the import of the SDK makes many objects and no garbage; collection is a tenth of the start
    from folklore.mcp import server, stdio

    app = App(settings, prepare=lambda: log.configure(level, settings.log_format))
    protocol = server.build_server(app.service, offered=settings.tools)
    gc.freeze()
    gc.enable()
    # Engine, pool and model start after the client's first answers; a call starts them at once.
    start = asyncio.get_running_loop().call_later(0.3, app.start)
    app.start_jobs()
    collector = spans.start_collector(os.environ)
    try:
        await stdio.serve_stdio(protocol)
    finally:
        start.cancel()
        await app.close()
        if collector is not None:
            await collector.stop()


def _serve_http(ctx: click.Context, settings: Settings, snippets: bool, insecure: bool, url: str | None) -> None:
    if settings.server is not None:  # over HTTP it would be ignored
        raise InvalidInput("server", "does not apply to `folklore serve --http`.", hint="Unset FOLKLORE_SERVER.")
    from folklore.http.server.serve import run

    def announce(url: str) -> None:
        if not snippets:
            return
        from folklore.cli.operate.install import options_for_assistants, own_command

        flags = ctx.find_root().obj
        database_url = flags["flags"]["database_url"] or os.environ.get("FOLKLORE_DATABASE_URL")
        command = own_command(sys.executable, options_for_assistants(settings, flags["config"]))
        click.echo(install_commands(url, command, needs_database_url=bool(database_url)))

    run(settings, settings.http.host, settings.http.port, insecure=insecure, announce=announce, public_url=url)


def install_commands(url: str, command: Sequence[str], *, needs_database_url: bool = False) -> str:
    """Return the commands that connect assistants to this server, or to one of their own on the same memory.

    An assistant starts its server on stdio outside this shell. With `needs_database_url` that server needs this
    variable too, which is not printed, because it may hold a password.
    """
    install = shlex.join([*command, "install"])
    variable = "A server on stdio needs the FOLKLORE_DATABASE_URL of this shell, else it uses another memory."
    return "\n".join(
        [
            "Connect your assistants, in a second terminal (edits the settings of those found here, and keeps copies):",
            f"  {install}",
            "Each then starts its own server on the same memory. To connect them to this server, from any machine:",
            f"  {install} --server {url}",
            "Name some to choose (claude-code, cursor, vscode …). Add --token fk_… if the server has tokens.",
            "--dry-run shows the changes first, --print entries to paste; `uninstall` removes them.",
            *([variable] if needs_database_url else []),
            "",
        ]
    )
