"""`folklore db`."""

import asyncio
from dataclasses import asdict
from itertools import chain

import click

from folklore.backup import upgrade_engine
from folklore.cli.context import local_settings, user_server
from folklore.cli.operate.config import masked
from folklore.cli.operate.doctor import check_token
from folklore.cli.options import context_and_json
from folklore.cli.output import print_either
from folklore.config import Settings
from folklore.db.distribute import distribute, placed, require_nodes, silent_nodes
from folklore.db.migrate import (
    migrate,
    missing_role_commands,
    pending,
    read_requirements,
    server_info,
)
from folklore.db.requirements import refuse
from folklore.disk import LEAST_FREE, free_space
from folklore.engine import MAJOR, Engine
from folklore.errors import InvalidInput, Unavailable
from folklore.runtime import database_address, start_engine

# For the requests that your server works on.
_SERVER_SECONDS = 15.0

db = click.Group(
    "db",
    help="Manage the database: the embedded engine, or the Postgres that database_url names.",
)


@db.command()
@click.option(
    "--new",
    is_flag=True,
    help="Begin anew where the data that was there is lost; it is an error otherwise.",
)
@context_and_json
def start(ctx: click.Context, /, new: bool) -> None:
    """Start the embedded engine; commands that need it start it too."""
    url = masked(start_engine(_engine(local_settings(ctx)), new=new))
    print_either({"running": True, "url": url}, f"The engine is running: {url}")


@db.command()
@context_and_json
def stop(ctx: click.Context) -> None:
    """Stop the embedded engine for all its clients, and your server, which would start it again.

    `folklore serve --http` is left: it may serve others.
    """
    settings = local_settings(ctx)
    engine = _engine(settings)
    server = user_server(ctx, settings)
    running = server.running()
    if running is None or not running.is_http:
        server.stop()
        server.wait(_SERVER_SECONDS)
    was_running = engine.stop()

    value: dict[str, object] = {"running": False, "was_running": was_running}
    lines = ["The engine is stopped." if was_running else "The engine was not running."]
    if running is not None and running.is_http:
        value["server"] = running.pid
        lines.append(
            f"`folklore serve --http` (process {running.pid}) runs on, and starts it at the next request."
        )
    elif running is not None:
        lines.append(f"Your server, process {running.pid}, has ended.")
    print_either(value, "\n".join(lines))


@db.command()
@context_and_json
def status(ctx: click.Context) -> None:
    """Show the state of the engine and the database, without starting anything."""
    settings = local_settings(ctx)
    value, address = _engine_status(settings)
    if address is not None:
        value |= asyncio.run(_server_status(address))
    lines = [f"{name:<21}{_text(entry)}" for name, entry in value.items()]
    print_either(value, "\n".join(lines))
    if "unreachable" in value:
        ctx.exit(Unavailable.exit_code)


def _text(entry: object) -> object:
    if isinstance(entry, list):
        return ", ".join(map(str, entry)) or "none"
    if isinstance(entry, bool):
        return "yes" if entry else "no"
    return entry


@db.command()
@click.option(
    "--drop-old", is_flag=True, help="Delete the old data that upgrades have kept."
)
@context_and_json
def upgrade(ctx: click.Context, /, drop_old: bool) -> None:
    """Upgrade the embedded engine's data to the major version of Postgres that this Folklore carries.

    Any start of the engine does so too. Every database is copied by the programs of both versions to a new data
    directory, each row compared, and the directory put in the place of the old one, which is kept next to it. On any
    failure, and when this command is killed, the old data stays in use or the next start completes the change. A
    running engine of the older version is stopped for all its clients.
    """
    engine = _engine(local_settings(ctx))
    old_data = upgrade_engine(engine)
    lines = [f"The data is of Postgres {MAJOR}."]
    if old_data is not None:
        lines.append(
            f"The old data is kept in {old_data}; `folklore db upgrade --drop-old` deletes it."
        )
    dropped = engine.drop_old() if drop_old else {}
    for path, size in dropped.items():
        lines.append(f"Deleted {path} ({size / 2**20:,.0f} MB).")
    value = {
        "postgres": MAJOR,
        "upgraded": old_data is not None,
        "kept": [str(path) for path in engine.old_data()],
        "dropped": [str(path) for path in dropped],
    }
    print_either(value, "\n".join(lines))


@db.command("migrate")
@context_and_json
def migrate_(ctx: click.Context) -> None:
    """Apply pending migrations; a server and every other command do so too."""
    settings = local_settings(ctx)
    address, applied = asyncio.run(_migrated(settings))
    text = "\n".join(f"applied {name}" for name in applied)
    print_either({"applied": applied}, text or "The schema is up to date.")
    refuse(asyncio.run(read_requirements(address)))


@db.command()
@context_and_json
def role(ctx: click.Context) -> None:
    """Show the statements that the database's administrator must run so that tokens can be used."""
    address, _ = asyncio.run(_migrated(local_settings(ctx)))
    commands = asyncio.run(missing_role_commands(address))
    text = "\n".join(f"{command};" for command in commands)
    print_either({"lacks": commands}, text or "The role folklore_app is complete.")


@db.command("distribute")
@click.option(
    "--dry-run", is_flag=True, help="Print the SQL that is still to do; change nothing."
)
@context_and_json
def distribute_(ctx: click.Context, /, dry_run: bool) -> None:
    """Distribute the tables over the nodes of a Citus cluster.

    No server runs meanwhile. The command can be stopped at any time and run again. At the end it recalls two memories
    of its own, as the owner and with a token that may read one of them, and erases them.
    """
    secret = local_settings(ctx).database_url
    if secret is None:
        raise InvalidInput(
            "database_url", "is not set, and the embedded Postgres is on one machine."
        )
    address = secret.get_secret_value()
    done = asyncio.run(distribute(address, dry_run=dry_run))
    if dry_run:
        lines = [f"{command};" for command in chain(*done.values())]
        text = "\n".join(lines) or "Every table is distributed."
    else:
        asyncio.run(require_nodes(address))
        asyncio.run(check_token(address))
        text = "Every table is distributed; a token sees its own."
    print_either({"commands": done}, text)


async def _migrated(settings: Settings) -> tuple[str, list[str]]:
    """Apply what this role may of the pending migrations; return the address of the database, and what was applied."""
    address, _ = await database_address(settings)
    return address, await migrate(address)


def _engine(settings: Settings) -> Engine:
    if settings.database_url is not None:
        hint = "This command needs the embedded engine, which is used while database_url is not set."
        raise InvalidInput(
            "database_url",
            "is set, and Folklore neither starts nor stops that Postgres.",
            hint=hint,
        )
    return Engine(settings.home, idle_minutes=settings.engine.idle_minutes)


def _engine_status(settings: Settings) -> tuple[dict[str, object], str | None]:
    """Return the state of the engine, and the address of its Postgres or of the one that the settings name."""
    if settings.database_url is not None:
        address = settings.database_url.get_secret_value()
        return {"engine": "server", "running": True, "url": masked(address)}, address
    engine = _engine(settings)
    status = engine.status()
    free = free_space(settings.home)
    disk = None
    if free < LEAST_FREE:
        disk = f"full: {free / 2**20:,.0f} MB free"
    values = {
        "engine": "embedded",
        "running": status.running,
        "data_directory": str(status.data_directory),
        "disk": disk,
        "log": str(status.log),
        "version": status.version,
        "pid": status.pid,
        "old_data": [str(path) for path in engine.old_data()] or None,
        "sessions": status.sessions if status.running else None,
        "url": status.dsn and masked(status.dsn),
    }
    known = {name: value for name, value in values.items() if value is not None}
    return known, status.dsn


async def _server_status(address: str) -> dict[str, object]:
    info = await server_info(address)
    values: dict[str, object] = asdict(info)
    del values["major"]
    del values["offered"]
    values["pgvector"] = info.pgvector or "missing"
    values["pending_migrations"] = await pending(address)
    silent = await silent_nodes(address)
    if silent:
        values["unreachable"] = [str(node) for node in silent]
        return values
    for table, distribution in (await placed(address)).items():
        values[f"  {table}"] = distribution
    return values
