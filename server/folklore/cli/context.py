"""Context of a command: its settings, and the operations of this process or of a server."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar

import click

from folklore import log
from folklore.app import App, local_zone, running
from folklore.cli.client import HttpClient
from folklore.config import Settings, load_settings
from folklore.errors import InvalidInput
from folklore.local.server import LocalServer
from folklore.memory.requests import Result, Returns
from folklore.memory.service import Operations, Service
from folklore.phases import phase

if TYPE_CHECKING:  # imports the database driver
    from folklore.runtime import Runtime

Value = TypeVar("Value")

CONNECT_SECONDS = 10.0


def settings_of(ctx: click.Context, *, quiet: bool = True, **flags: object) -> Settings:
    """Load the settings of a command and configure logging: from warnings, unless --log-level gives another level."""
    settings, level = quick_settings(ctx, quiet=quiet, **flags)
    log.configure_on_use(level, settings.log_format)
    return settings


def quick_settings(ctx: click.Context, *, quiet: bool = True, **flags: object) -> tuple[Settings, str]:
    """Load the settings of a command, and return them with the log level for the caller to configure."""
    options: dict[str, Any] = ctx.find_root().obj
    settings: Settings | None = None if flags else options.get("settings")
    if settings is None:
        settings = load_settings(options["config"], **options["flags"], **flags)
    if not flags:  # read once: a command asks for them several times
        options["settings"] = settings
    level_given = options["flags"]["log_level"] is not None
    return settings, "warning" if quiet and not level_given else settings.log_level


def zone_of(ctx: click.Context) -> tzinfo:
    """Return the time zone in which a command shows times."""
    if ctx.find_root().obj["utc"]:
        return UTC
    return local_zone(quick_settings(ctx)[0])


def call(ctx: click.Context, request: Returns[Result]) -> Result:
    """Run one operation in this process, or at the server that --server names."""
    with phase("Working"):
        return with_operations(ctx, lambda operations: operations.call(request))


def with_operations(ctx: click.Context, work: Callable[[Operations], Awaitable[Value]]) -> Value:
    """Run several operations at the user's server, or at the one that --server names; without either, here."""
    settings = settings_of(ctx)

    async def whole() -> Value:
        async with operations_of(ctx, settings) as operations:
            return await work(operations)

    return asyncio.run(whole())


@asynccontextmanager
async def operations_of(ctx: click.Context, settings: Settings) -> AsyncIterator[HttpClient | Service]:
    """Open the operations of a command, as with_operations says."""
    local = local_server(ctx, settings)
    if local is not None or settings.server is not None:
        async with HttpClient(settings, local) as client:
            yield client
    else:
        async with running(settings, brief=True) as app:
            yield app.service


def local_settings(ctx: click.Context) -> Settings:
    """Load the settings of a command that works on a database or an engine; --server is refused."""
    settings = settings_of(ctx)
    if settings.server is not None:
        raise InvalidInput("server", "does not apply to this command.", hint="Run it where the server runs.")
    return settings


def local_server(ctx: click.Context, settings: Settings) -> LocalServer | None:
    """Return the running server of this user; None with --server, with FOLKLORE_OWN, and if it cannot be started."""
    if settings.server is not None or os.environ.get("FOLKLORE_OWN") or not hasattr(socket, "AF_UNIX"):
        return None
    server = found_server(ctx, settings)
    try:
        server.connect(CONNECT_SECONDS).close()
    except OSError as error:
        log.get_logger(__name__).warning("no_local_server", socket=server.path, reason=error.strerror or str(error))
        return None
    return server


def found_server(ctx: click.Context, settings: Settings) -> LocalServer:
    """Return the server of this user with the settings of a command, whether it runs or not."""
    options = ctx.find_root().obj
    return LocalServer(
        str(settings.home),
        os.environ,
        config=options["config"] and str(options["config"]),
        database_url=options["flags"]["database_url"],
        read_only="true" if settings.read_only else None,
    )


def with_app(ctx: click.Context, work: Callable[[App, Runtime], Awaitable[Value]]) -> Value:
    """Run work on a ready application of this process, and close it."""
    settings = local_settings(ctx)

    async def whole() -> Value:
        async with running(settings) as app:
            return await work(app, await app.ready())

    return asyncio.run(whole())
