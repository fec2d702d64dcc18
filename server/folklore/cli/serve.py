"""`folklore serve`: MCP over stdio or HTTP, and the settings of clients to paste."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from folklore import log
from folklore import telemetry as spans
from folklore.app import App
from folklore.cli.context import quick_settings, settings_of
from folklore.config import Settings
from folklore.errors import InvalidInput


@click.command()
@click.option("--http", is_flag=True, help="Serve streamable HTTP at /mcp and SSE at /sse instead of stdio.")
@click.option("--host", help="Address to listen on (with --http).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (with --http).")
@click.option("--insecure", is_flag=True, help="Listen on --host even though no token is needed (with --http).")
@click.option("--read-only", is_flag=True, default=None, help="Offer only the tools that read.")
@click.option("--snippets", is_flag=True, help="Print ready-to-paste client settings first (with --http).")
@click.pass_context
def serve(
    ctx: click.Context, /, http: bool, read_only: bool | None, snippets: bool, insecure: bool, **given: Any
) -> None:
    """Serve MCP over stdio (for one client that starts it), or over HTTP for several."""
    given = {name: value for name, value in given.items() if value is not None}
    if http:
        settings = _checked(settings_of(ctx, quiet=False, read_only=read_only, http=given or None))
        _serve_http(ctx, settings, snippets, insecure)
        return
    for name, value in (given | {"insecure": insecure, "snippets": snippets}).items():
        if value is not False:
            raise click.UsageError(f"--{name}: needs --http.")
    settings, level = quick_settings(ctx, read_only=read_only)
    log.configure_early(level)
    asyncio.run(_serve_stdio(_checked(settings), level))


def _checked(settings: Settings) -> Settings:
    """Return the settings. Raises InvalidInput if they name another server: this command would ignore it."""
    if settings.server is not None:
        raise InvalidInput("server", "does not apply to `folklore serve`.", hint="Unset FOLKLORE_SERVER.")
    return settings


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


def _serve_http(ctx: click.Context, settings: Settings, snippets: bool, insecure: bool) -> None:
    from folklore.http.serve import run

    def announce(url: str) -> None:
        if not snippets:
            return
        flags = ctx.find_root().obj
        database_url = flags["flags"]["database_url"] or os.environ.get("FOLKLORE_DATABASE_URL")
        options = _options_for_stdio(settings, flags["config"])
        click.echo(client_snippets(url, sys.executable, options, needs_database_url=bool(database_url)))

    run(settings, settings.http.host, settings.http.port, insecure=insecure, announce=announce)


def _options_for_stdio(settings: Settings, config: Path | None) -> list[str]:
    """Return the options by which a server that another shell starts uses this home and this settings file."""
    file = config or os.environ.get("FOLKLORE_CONFIG")
    options = [] if not file else ["--config", os.path.abspath(Path(file).expanduser())]  # noqa: PTH100 - keeps links
    if settings.home != Path("~/.folklore").expanduser():
        options += ["--home", str(settings.home)]
    return options


def client_snippets(url: str, python: str, options: Sequence[str] = (), *, needs_database_url: bool = False) -> str:
    """Return the settings of Claude Code, Cursor and VS Code for this server over HTTP, and for one of their own.

    All are settings of the user, valid in every repository. A client starts its server on stdio outside this shell:
    `options` make that server use the same memory. With `needs_database_url` it needs that variable too, which is not
    printed, because it may hold a password.
    """
    script = Path(python).with_name("folklore")
    command = [*([str(script)] if script.exists() else [python, "-m", "folklore"]), *options, "serve"]
    over_http = {"url": f"{url}/mcp"}
    on_stdio = {"command": command[0], "args": command[1:]}
    variable = "A server on stdio needs the FOLKLORE_DATABASE_URL of this shell, else it uses another memory."
    return "\n".join(
        [
            "Each of these holds in every repository; choose one per client.",
            "Claude Code, over HTTP (this server):",
            f"  claude mcp add --scope user --transport http folklore {url}/mcp",
            "Claude Code, on stdio (starts its own server, same memory):",
            f"  claude mcp add --scope user folklore -- {shlex.join(command)}",
            "Cursor (add it to ~/.cursor/mcp.json), over HTTP:",
            f"  {_cursor(over_http)}",
            "Cursor, on stdio:",
            f"  {_cursor(on_stdio)}",
            "VS Code (adds it to your user profile), over HTTP:",
            f"  {_vs_code({'type': 'http', **over_http})}",
            "VS Code, on stdio:",
            f"  {_vs_code({'type': 'stdio', **on_stdio})}",
            'Over HTTP with tokens, add at the end of the line for Claude Code (Cursor, VS Code: in "headers"):',
            '  --header "Authorization: Bearer fk_…"',
            *([variable] if needs_database_url else []),
            "If neither a call nor the settings name a namespace, memories go:",
            "  from Claude Code, on stdio: to that of the repository it works in;",
            "  from Cursor and VS Code, on stdio: to `default`, as both start the server in your home directory;",
            "  over HTTP: to that in the header Folklore-Namespace or the token's, else the call fails",
            "    (docs/how-to/connect.md).",
            "",
        ]
    )


def _cursor(server: Mapping[str, object]) -> str:
    return json.dumps({"mcpServers": {"folklore": server}})


def _vs_code(server: Mapping[str, object]) -> str:
    return shlex.join(["code", "--add-mcp", json.dumps({"name": "folklore", **server})])
