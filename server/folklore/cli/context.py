"""What every command starts with: the settings, and for most a running application."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from folklore import log
from folklore.config import Settings, load_settings

if TYPE_CHECKING:
    from folklore.app import App, Running

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


def with_app(ctx: click.Context, work: Callable[[App, Running], Awaitable[Result]]) -> Result:
    """Run a command's work on a ready application, and end that afterwards."""
    settings = settings_of(ctx)

    async def whole() -> Result:
        from folklore.app import running

        async with running(settings) as app:
            return await work(app, await app.ready())

    return asyncio.run(whole())
