"""What every command starts with: the settings, and for most a running application."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from folklore import log
from folklore.config import Settings, load_settings

Result = TypeVar("Result")


def settings_of(ctx: click.Context, *, quiet: bool = True, **flags: object) -> Settings:
    """The settings of this call, logging set up. A command's logs begin at warnings unless --log-level says more."""
    given: dict[str, Any] = ctx.find_root().obj
    settings = load_settings(given["config"], **given["flags"], **flags)
    asked = given["flags"]["log_level"] is not None
    log.configure("warning" if quiet and not asked else settings.log_level, settings.log_format)
    return settings


@asynccontextmanager
async def application(settings: Settings) -> AsyncIterator[Any]:
    """A running application for the length of a block."""
    from folklore.app import running

    async with running(settings) as app:
        yield app


def run(work: Callable[[], Awaitable[Result]]) -> Result:
    """Run a command's asynchronous part."""

    async def whole() -> Result:
        return await work()

    return asyncio.run(whole())
