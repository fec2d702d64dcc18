"""What long work on vectors shares: how fast it goes, that it may be broken off, that it writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from folklore.config import Settings
from folklore.errors import Refused

if TYPE_CHECKING:
    from folklore.app import App, Running
    from folklore.memory.models.backfill import Pace

Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])


def pace_options(command: Command) -> Command:
    """`--batch`, `--rate` and `--patience`."""
    for option in (
        click.option(
            "--patience",
            type=click.FloatRange(0),
            default=120.0,
            show_default=True,
            help="Wait so many seconds for a service that fails.",
        ),
        click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="At most so many memories a second."),
        click.option(
            "--batch", type=click.IntRange(1, 2048), default=256, show_default=True, help="Memories at a time."
        ),
    ):
        command = option(command)
    return command


def pace_of(batch: int, rate: float | None, patience: float) -> Pace:
    """These options as one value."""
    from folklore.memory.models.backfill import Pace

    return Pace(batch, rate, patience)


def run(settings: Settings, work: Callable[[App, Running], Awaitable[Result]]) -> Result:
    """Run work on a ready application with these settings."""
    import asyncio

    async def whole() -> Result:
        from folklore.app import running

        async with running(settings) as app:
            return await work(app, await app.ready())

    return asyncio.run(whole())


@contextmanager
def pausing() -> Iterator[None]:
    """Ctrl-C within the block is a pause."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo("Paused. What is done is kept: run the same command again to go on.", err=True)
        raise click.exceptions.Abort from None


def writing(settings: Settings) -> Settings:
    """The settings, if they allow to write. Raises Refused."""
    if settings.read_only:
        raise Refused("The settings are read-only; nothing was changed.")
    return settings
