"""Context of a command: its settings, and the operations of this process or of a server."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, tzinfo
from typing import Any, TypeVar

import click

from folklore import log
from folklore.client.http_client import HttpClient
from folklore.client.local_server import LocalServer
from folklore.client.surroundings import local_zone
from folklore.config import Settings, load_settings
from folklore.contract.requests import Result, Returns
from folklore.errors import InvalidInput
from folklore.phases import phase

logger = log.get_logger(__name__)

Value = TypeVar("Value")

CONNECT_SECONDS = 10.0


def settings_of(ctx: click.Context, *, quiet: bool = True, **flags: object) -> Settings:
    """Return the settings of a command, loaded once, and configure logging. Raises ConfigInvalid.

    `quiet` commands log warnings and errors alone, unless --log-level says otherwise. `flags` are settings by the
    command's own options; with them, the settings are loaded anew.
    """
    options: dict[str, Any] = ctx.find_root().obj
    # a command asks for them several times
    if flags or options.get("settings") is None:
        settings = load_settings(options["config"], **options["flags"], **flags)
        if quiet and options["flags"]["log_level"] is None:
            level = "warning"
        else:
            level = settings.log_level
        log.configure_on_use(level, settings.log_format)
        for name, advice in settings.replaced.items():
            logger.warning("former_setting", setting=name, advice=advice)
        if flags:
            return settings
        options["settings"] = settings
    loaded: Settings = options["settings"]
    return loaded


def zone_of(ctx: click.Context) -> tzinfo:
    """Return the time zone in which a command shows times."""
    if ctx.find_root().obj["utc"]:
        return UTC
    return local_zone(settings_of(ctx))


def call(ctx: click.Context, request: Returns[Result]) -> Result:
    """Return the result of one operation, as with_operations runs it. Raises FolkloreError."""
    with phase("Working"):
        return with_operations(ctx, lambda operations: operations.call(request))


def with_operations(
    ctx: click.Context, work: Callable[[HttpClient], Awaitable[Value]]
) -> Value:
    """Return what `work` returns, whose operations run at the server that --server names, else at the user's.

    Without either, as with FOLKLORE_OWN, the application runs in this process. Raises FolkloreError.
    """
    settings = settings_of(ctx)

    async def whole() -> Value:
        async with operations_of(ctx, settings) as operations:
            return await work(operations)

    return asyncio.run(whole())


@asynccontextmanager
async def operations_of(
    ctx: click.Context, settings: Settings
) -> AsyncIterator[HttpClient]:
    """Open the operations of a command, as with_operations says."""
    local = local_server(ctx, settings)
    if local is not None or settings.server is not None:
        async with HttpClient(settings, local) as client:
            yield client
    else:
        from folklore.server.application.in_process import operations_here

        async with operations_here(settings) as client:
            yield client


def local_settings(ctx: click.Context) -> Settings:
    """Load the settings of a command that works on a database or an engine; --server is refused."""
    settings = settings_of(ctx)
    if settings.server is not None:
        hint = "Run it where the server runs. If it is meant for this machine, unset FOLKLORE_SERVER."
        raise InvalidInput("server", "does not apply to this command.", hint=hint)
    return settings


def local_server(ctx: click.Context, settings: Settings) -> LocalServer | None:
    """Return this user's server, which is started if it does not run.

    None with --server, with FOLKLORE_OWN, and if it cannot be started.
    """
    if settings.server is not None or has_own_process():
        return None
    server = user_server(ctx, settings)
    try:
        server.connect(CONNECT_SECONDS).close()
    except OSError as error:
        reason = error.strerror or str(error)
        logger.warning("no_local_server", socket=server.path, reason=reason)
        return None
    return server


def has_own_process() -> bool:
    """Return whether each command and session works in a process of its own."""
    return bool(os.environ.get("FOLKLORE_OWN")) or not hasattr(socket, "AF_UNIX")


def user_server(ctx: click.Context, settings: Settings) -> LocalServer:
    """Return the server of this user with the settings of a command, whether it runs or not; start nothing."""
    options = ctx.find_root().obj
    return LocalServer(
        str(settings.home),
        os.environ,
        config=options["config"] and str(options["config"]),
        database_url=options["flags"]["database_url"],
        read_only="true" if settings.read_only else None,
    )
