"""`folklore serve`: MCP over stdio, or over HTTP."""

from __future__ import annotations

import asyncio
import gc
import os
import sys

import click

from folklore import log, spans
from folklore.app import App
from folklore.cli.context import quick_settings, settings_of
from folklore.config import Settings


@click.command()
@click.option("--http", is_flag=True, help="Serve streamable HTTP at /mcp and SSE at /sse instead of stdio.")
@click.option("--host", help="Address to listen on (with --http).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (with --http).")
@click.option("--read-only", is_flag=True, default=None, help="Offer only the tools that read.")
@click.option("--snippets", is_flag=True, help="Print ready-to-paste client settings first (with --http).")
@click.pass_context
def serve(
    ctx: click.Context, http: bool, host: str | None, port: int | None, read_only: bool | None, snippets: bool
) -> None:
    """Serve MCP over stdio (for one client that starts it), or over HTTP for several."""
    if not http and (host is not None or port is not None):
        raise click.UsageError("--host and --port go with --http.")
    if http:
        settings = settings_of(ctx, quiet=False, read_only=read_only)
        _serve_http(settings, host or settings.http.host, settings.http.port if port is None else port, snippets)
    else:
        settings, level = quick_settings(ctx, read_only=read_only)
        log.first(level)
        asyncio.run(_serve_stdio(settings, level))


async def _serve_stdio(settings: Settings, level: str) -> None:
    gc.disable()  # the SDK's import makes many objects and no garbage: looking for some is a tenth of the start
    from folklore.tools.server import build_server

    app = App(settings, prepare=lambda: log.configure(level, settings.log_format))
    server = build_server(app.host, offered=settings.tools, read_only=settings.read_only)
    gc.freeze()
    gc.enable()
    # The engine, the pool and the model begin once the client has its first answers; a call does not wait for this.
    soon = asyncio.get_running_loop().call_later(0.3, app.start)
    app.start_upkeep()
    collector = spans.collect(os.environ)
    try:
        await server.run_stdio_async()
    finally:
        soon.cancel()
        await app.close()
        if collector is not None:
            await collector.stop()


def _serve_http(settings: Settings, host: str, port: int, snippets: bool) -> None:
    from folklore.http.serve import run

    if snippets:
        from folklore.cli.snippets import client_snippets

        click.echo(client_snippets(f"http://{host}:{port}", sys.executable))
    run(settings, host, port)
