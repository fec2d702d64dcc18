"""What every command starts with: the settings, and for most a running application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from folklore import log
from folklore.config import Settings, load_settings
from folklore.errors import InvalidInput

if TYPE_CHECKING:
    from folklore.app import App, Running
    from folklore.memory.service import Service

Result = TypeVar("Result")


def settings_of(ctx: click.Context, *, quiet: bool = True, **flags: object) -> Settings:
    """The settings of this call, logging set up. A command's logs begin at warnings unless --log-level says more."""
    settings, level = quick_settings(ctx, quiet=quiet, **flags)
    log.configure(level, settings.log_format)
    return settings


def quick_settings(ctx: click.Context, *, quiet: bool = True, **flags: object) -> tuple[Settings, str]:
    """The settings and the level to log from; the caller sets up logging."""
    given: dict[str, Any] = ctx.find_root().obj
    settings = load_settings(given["config"], **given["flags"], **flags)
    asked = given["flags"]["log_level"] is not None
    return settings, "warning" if quiet and not asked else settings.log_level


def with_desk(ctx: click.Context, work: Callable[[Service], Awaitable[Result]]) -> Result:
    """Run a command's work at a desk: of this machine, or of the server that --server names."""
    settings = settings_of(ctx)
    if settings.server is not None:
        from folklore.cli.remote import at_server

        return asyncio.run(at_server(settings, work))

    async def here() -> Result:
        from folklore.app import running
        from folklore.memory.service import Service

        async with running(settings) as app:
            await app.ready()
            return await work(Service(app.host))

    return asyncio.run(here())


def settings_here(ctx: click.Context) -> Settings:
    """The settings of a command that works on a database or an engine; one meant for a server elsewhere is refused."""
    settings = settings_of(ctx)
    if settings.server is not None:
        raise InvalidInput(
            "server", "is of no use to this command, which works on a database.", hint="Run it where the server runs."
        )
    return settings


def with_app(ctx: click.Context, work: Callable[[App, Running], Awaitable[Result]]) -> Result:
    """Run a command's work on a ready application of this machine, and end that afterwards."""
    settings = settings_here(ctx)

    async def whole() -> Result:
        from folklore.app import running

        async with running(settings) as app:
            return await work(app, await app.ready())

    return asyncio.run(whole())
