"""A store of its own for a measurement: never the user's memories."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from folklore.app import App
from folklore.config import Settings
from folklore.db.scratch import scratch_database
from folklore.engine import Engine


@dataclass(frozen=True, slots=True)
class Scratch:
    """A running application over an empty store; `flags` reach it from the command line as long as it is kept."""

    app: App
    engine: str
    flags: str


@asynccontextmanager
async def scratch(settings: Settings, *, keep: bool = False) -> AsyncIterator[Scratch]:
    """An empty store with the user's settings otherwise: a database beside a configured one, else an engine in a
    temporary home. Removed at the end, unless it is to be kept.
    """
    # A set's texts are nobody's secrets, and one left out would be a question without an answer.
    settings = settings.model_copy(update={"read_only": False, "secrets": "off"})
    async with _database(settings, keep) if settings.database_url is not None else _engine(settings, keep) as found:
        app = App(found[0])
        try:
            running = await app.ready()
            yield Scratch(app, running.where, found[1])
        finally:
            await app.close()


@asynccontextmanager
async def _database(settings: Settings, keep: bool) -> AsyncIterator[tuple[Settings, str]]:
    assert settings.database_url is not None
    async with scratch_database(settings.database_url.get_secret_value(), prefix="folklore_bench_", keep=keep) as dsn:
        # The address may hold a password; the name of the database is enough to go back to it.
        yield settings.model_copy(update={"database_url": SecretStr(dsn.address)}), f"database {dsn.name}"


@asynccontextmanager
async def _engine(settings: Settings, keep: bool) -> AsyncIterator[tuple[Settings, str]]:
    home = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="folklore-bench-"))
    engine = Engine(home, idle_minutes=10)
    try:
        yield settings.model_copy(update={"home": home}), f"--home {home}"
    finally:
        await asyncio.to_thread(engine.stop)
        if not keep:
            await asyncio.to_thread(_remove, home)


def _remove(home: Path) -> None:
    for _ in range(20):  # the engine's watcher ends a moment after the engine, and may leave a file meanwhile
        shutil.rmtree(home, ignore_errors=True)
        if not home.exists():
            return
        time.sleep(0.1)
