"""`folklore serve`: MCP over stdio, or over HTTP."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
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
    if not http and (given or insecure or snippets):
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in [*given, *(["insecure"] if insecure else [])])
        raise click.UsageError(f"{flags or '--snippets'}: goes with --http.")
    if http:
        settings = _own(settings_of(ctx, quiet=False, read_only=read_only, http=given or None))
        _serve_http(ctx, settings, snippets, insecure)
    else:
        settings, level = quick_settings(ctx, read_only=read_only)
        log.configure_early(level)
        asyncio.run(_serve_stdio(_own(settings), level))


def _own(settings: Settings) -> Settings:
    """Settings of a server, which asks no other. Raises InvalidInput: it would serve another memory than is meant."""
    if settings.server is not None:
        raise InvalidInput(
            "server", "names a server that commands ask; this command is one itself.", hint="Unset FOLKLORE_SERVER."
        )
    return settings


async def _serve_stdio(settings: Settings, level: str) -> None:
    gc.disable()  # the SDK's import makes many objects and no garbage: looking for some is a tenth of the start
    from folklore.mcp.server import build_server
    from folklore.mcp.stdio import serve_stdio

    app = App(settings, prepare=lambda: log.configure(level, settings.log_format))
    server = build_server(app.service, offered=settings.tools)
    gc.freeze()
    gc.enable()
    # The engine, the pool and the model begin once the client has its first answers; a call does not wait for this.
    soon = asyncio.get_running_loop().call_later(0.3, app.start)
    app.start_jobs()
    collector = spans.start_collector(os.environ)
    try:
        await serve_stdio(server)
    finally:
        soon.cancel()
        await app.close()
        if collector is not None:
            await collector.stop()


def _serve_http(ctx: click.Context, settings: Settings, snippets: bool, insecure: bool) -> None:
    from folklore.http.serve import run

    def announce(url: str) -> None:
        from folklore.cli.snippets import client_snippets

        given = ctx.find_root().obj
        said = given["flags"]["database_url"] or os.environ.get("FOLKLORE_DATABASE_URL")
        click.echo(client_snippets(url, sys.executable, _where(settings, given["config"]), database_said=bool(said)))

    run(settings, settings.http.host, settings.http.port, insecure=insecure, announce=announce if snippets else _silent)


def _where(settings: Settings, config: Path | None) -> list[str]:
    """The options by which somebody else's shell finds the home and the file of these settings."""
    file = config or os.environ.get("FOLKLORE_CONFIG")
    by_file = [] if not file else ["--config", os.path.abspath(Path(file).expanduser())]  # noqa: PTH100 - keeps links
    usual = Path("~/.folklore").expanduser()
    return [*by_file, *([] if settings.home == usual else ["--home", str(settings.home)])]


def _silent(_url: str) -> None:
    """Nothing is announced."""
