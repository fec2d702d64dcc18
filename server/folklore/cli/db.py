"""`folklore db`."""

from __future__ import annotations

import asyncio

import click

from folklore.app import App
from folklore.cli.config import masked
from folklore.cli.context import local_settings
from folklore.cli.options import json_option
from folklore.cli.output import print_json, print_line
from folklore.config import Settings
from folklore.db.migrate import migrate, missing_role_commands, pending, server_info
from folklore.engine import Engine
from folklore.errors import InvalidInput


@click.group()
def db() -> None:
    """Manage the database: the embedded engine, or the Postgres that database_url names."""


@db.command()
@json_option
@click.pass_context
def start(ctx: click.Context, as_json: bool) -> None:
    """Start the embedded engine; commands that need it start it too."""
    address = _engine(local_settings(ctx)).start()
    if as_json:
        print_json({"running": True, "url": masked(address)})
    else:
        print_line(f"The engine is running: {masked(address)}")


@db.command()
@json_option
@click.pass_context
def stop(ctx: click.Context, as_json: bool) -> None:
    """Stop the embedded engine for all its clients."""
    was_running = _engine(local_settings(ctx)).stop()
    if as_json:
        print_json({"running": False, "was_running": was_running})
    else:
        print_line("The engine is stopped." if was_running else "The engine was not running.")


@db.command()
@json_option
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show the state of the engine and the database, without starting anything."""
    settings = local_settings(ctx)
    value: dict[str, object]
    if settings.database_url is None:
        value, address = _engine_status(settings)
    else:
        address = settings.database_url.get_secret_value()
        value = {"engine": "server", "running": True, "url": masked(address)}
    if address is not None:
        value |= asyncio.run(_server_status(address))
    if as_json:
        print_json(value)
        return
    for name, entry in value.items():
        text = ", ".join(map(str, entry)) or "none" if isinstance(entry, list) else entry
        print_line(f"{name:<20}{'yes' if text is True else 'no' if text is False else text}")


@db.command("migrate")
@json_option
@click.pass_context
def migrate_(ctx: click.Context, as_json: bool) -> None:
    """Apply pending migrations; a server and every other command do so too."""

    async def work() -> list[str]:
        address = await App(settings).dsn()
        return await migrate(address)

    settings = local_settings(ctx)
    applied = asyncio.run(work())
    if as_json:
        print_json({"applied": applied})
    else:
        print_line("\n".join(f"applied {name}" for name in applied) or "The schema is up to date.")


@db.command()
@json_option
@click.pass_context
def role(ctx: click.Context, as_json: bool) -> None:
    """Show the statements that the database's administrator must run so that tokens can be used."""

    async def work() -> list[str]:
        address = await App(settings).dsn()
        await migrate(address)  # which does what it may
        return await missing_role_commands(address)

    settings = local_settings(ctx)
    commands = asyncio.run(work())
    if as_json:
        print_json({"lacks": commands})
    else:
        print_line("\n".join(f"{command};" for command in commands) or "The role folklore_app is complete.")


def _engine(settings: Settings) -> Engine:
    if settings.database_url is not None:
        raise InvalidInput(
            "database_url",
            "is set, and Folklore neither starts nor stops that Postgres.",
            hint="This command needs the embedded engine, which is used while database_url is not set.",
        )
    return Engine(settings.home, idle_minutes=settings.engine.idle_minutes)


def _engine_status(settings: Settings) -> tuple[dict[str, object], str | None]:
    found = _engine(settings).status()
    value = {
        "engine": "embedded",
        "running": found.running,
        "data_directory": str(found.data_directory),
        "log": str(found.log),
        "version": found.version,
        "pid": found.pid,
        "sessions": found.sessions if found.running else None,
        "url": None if found.dsn is None else masked(found.dsn),
    }
    return {name: entry for name, entry in value.items() if entry is not None}, found.dsn


async def _server_status(address: str) -> dict[str, object]:
    found = await server_info(address)
    return {
        "version": found.version,
        "pgvector": found.pgvector or "missing",
        "database": found.database,
        "role": found.role,
        "bytes": found.bytes,
        "pending_migrations": await pending(address),
    }
