"""Context of a command: its settings, and the operations of this process or of a server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import click

from folklore import log
from folklore.app import App, local_zone, running
from folklore.clients.credentials import read_token
from folklore.config import Settings, load_settings
from folklore.errors import ConfigInvalid, InvalidInput
from folklore.memory.requests import RecallRequest, Result, Returns
from folklore.memory.service import Operations
from folklore.phases import phase
from folklore.project import project_namespace, working_directory

if TYPE_CHECKING:  # imports the database driver
    from folklore.runtime import Runtime

Value = TypeVar("Value")


def settings_of(ctx: click.Context, *, quiet: bool = True, **flags: object) -> Settings:
    """Load the settings of a command and configure logging: from warnings, unless --log-level gives another level."""
    settings, level = quick_settings(ctx, quiet=quiet, **flags)
    log.configure_on_use(level, settings.log_format)
    return settings


def quick_settings(ctx: click.Context, *, quiet: bool = True, **flags: object) -> tuple[Settings, str]:
    """Load the settings of a command, and return them with the log level for the caller to configure."""
    given: dict[str, Any] = ctx.find_root().obj
    settings: Settings | None = None if flags else given.get("settings")
    if settings is None:
        settings = load_settings(given["config"], **given["flags"], **flags)
    if not flags:  # read once: a command asks for them several times
        given["settings"] = settings
    level_given = given["flags"]["log_level"] is not None
    return settings, "warning" if quiet and not level_given else settings.log_level


def zone_of(ctx: click.Context) -> tzinfo:
    """Return the time zone in which a command shows times."""
    if ctx.find_root().obj["utc"]:
        return UTC
    return local_zone(quick_settings(ctx)[0])


def call(ctx: click.Context, request: Returns[Result]) -> Result:
    """Run one operation in this process, or at the server that --server names."""
    with phase("Working"):
        return with_operations(
            ctx, lambda operations: operations.call(request), embeds=isinstance(request, RecallRequest)
        )


def with_operations(
    ctx: click.Context, work: Callable[[Operations], Awaitable[Value]], *, embeds: bool = False
) -> Value:
    """Run several operations in this process, or at the server that --server names.

    With `embeds`, the embedding model loads while the database is opened; otherwise when it is needed.
    """
    settings = settings_of(ctx)

    async def at_server() -> Value:
        from folklore.cli.client import HttpClient  # imports httpx

        async with HttpClient(settings) as client:
            return await work(client)

    async def in_process() -> Value:
        async with running(settings, warm=embeds, brief=True) as app:
            return await work(app.service)

    return asyncio.run(in_process() if settings.server is None else at_server())


def local_settings(ctx: click.Context) -> Settings:
    """Load the settings of a command that works on a database or an engine; --server is refused."""
    settings = settings_of(ctx)
    if settings.server is not None:
        raise InvalidInput("server", "does not apply to this command.", hint="Run it where the server runs.")
    return settings


def token_for(settings: Settings) -> str | None:
    """Return the token for the server: that of the settings, else the saved one.

    Raises ConfigInvalid for a text that is no token, and as read_token does.
    """
    if settings.token is None:
        return None if settings.server is None else read_token(settings.server, home=settings.home)
    token = settings.token.get_secret_value()
    if not (token.isascii() and token.isprintable()):  # such as "fk_…", copied with the ellipsis
        raise ConfigInvalid("token", "is not a token.", hint="`folklore tokens create` shows one, once.")
    return token


def request_headers(settings: Settings) -> dict[str, str]:
    """Return the headers of every request to the server: the current namespace, the time zone.

    The namespace is that of the settings, else the project of the working directory.
    """
    namespace = settings.namespace or project_namespace(working_directory(os.environ))
    return {"folklore-namespace": quote(namespace, safe=""), "folklore-time-zone": str(local_zone(settings))}


def with_app(ctx: click.Context, work: Callable[[App, Runtime], Awaitable[Value]]) -> Value:
    """Run work on a ready application of this process, and close it."""
    settings = local_settings(ctx)

    async def whole() -> Value:
        async with running(settings) as app:
            return await work(app, await app.ready())

    return asyncio.run(whole())
