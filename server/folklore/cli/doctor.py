"""`folklore doctor`: each check in one line, with the next step where one failed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import click

from folklore.cli.config import masked
from folklore.cli.context import settings_here
from folklore.cli.options import json_option
from folklore.cli.output import paint, print_json, say
from folklore.config import Settings
from folklore.errors import ConfigInvalid, FolkloreError, Unavailable

if TYPE_CHECKING:
    from folklore.embedding.protocol import Embedder, Model
    from folklore.memory.context import MemoryContext

_PATIENCE = 60.0  # seconds for storing and recalling one memory


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found. `hint` is the next step."""

    name: str
    status: Literal["ok", "failed", "skipped"]
    detail: str
    hint: str | None = None


@dataclass(slots=True)
class Examination:
    """The checks so far, and what later ones need of earlier ones."""

    settings: Settings
    checks: list[Check] = field(default_factory=list)
    address: str | None = None
    migrated: bool = False
    unreachable: bool = False

    async def check(self, name: str, look: Callable[[], Awaitable[str]], *, needs: bool = True) -> None:
        """Run one check; its detail is what `look` returns, or why it failed."""
        if not needs:
            self.checks.append(Check(name, "skipped", "needs an earlier check to be ok"))
            return
        try:
            self.checks.append(Check(name, "ok", await look()))
        except FolkloreError as error:
            self.unreachable |= isinstance(error, Unavailable)
            self.checks.append(Check(name, "failed", error.message, error.hint))

    @property
    def failed(self) -> bool:
        """True if any check failed."""
        return any(check.status == "failed" for check in self.checks)


@click.command()
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check settings, engine, database, schema, model, and storing and recalling; say what to do where one failed.

    Exit code 0 if all is well, 3 if something cannot be reached, 1 if anything else failed. Nothing is changed, except
    that the embedded engine is started and its schema brought up to date.
    """
    try:
        settings = settings_here(ctx)
    except ConfigInvalid as error:
        checks, code = [Check("settings", "failed", error.message, error.hint)], 1
    else:
        examination = asyncio.run(_examine(settings))
        checks = examination.checks
        code = (3 if examination.unreachable else 1) if examination.failed else 0
    if as_json:
        shown = [
            {"name": check.name, "status": check.status, "detail": check.detail}
            | ({"hint": check.hint} if check.hint else {})
            for check in checks
        ]
        print_json({"ok": code == 0, "checks": shown})
    else:
        for check in checks:
            _tell(check)
    if code:
        ctx.exit(code)


def _tell(check: Check) -> None:
    colour = {"ok": "green", "failed": "red", "skipped": "yellow"}[check.status]
    say(f"{paint(f'{check.status:<8}', fg=colour)}{check.name:<10} {check.detail}")
    if check.hint:
        say(f"{'':<19}→ {check.hint}")


async def _examine(settings: Settings) -> Examination:
    found = Examination(settings)
    await found.check("settings", lambda: _settings(found))
    embedded = settings.database_url is None
    await found.check("engine", lambda: _engine(found))
    await found.check("database", lambda: _database(found), needs=not embedded or not found.failed)
    await found.check("schema", lambda: _schema(found), needs=found.address is not None)
    await found.check("model", lambda: _model(found))
    await found.check("memory", lambda: _memory(found), needs=found.migrated)
    return found


async def _settings(found: Examination) -> str:
    from folklore.app import App

    settings = found.settings
    app = App(settings)  # raises ConfigInvalid for what only shows when it is used
    reading = ", read-only" if settings.read_only else ""
    return f"home {settings.home}, writing as {settings.author} to {app.namespace()}{reading}"


async def _engine(found: Examination) -> str:
    if found.settings.database_url is not None:
        return "not needed: database_url names a Postgres"
    from folklore.engine.binaries import MAJOR, find_binaries

    binaries = await asyncio.to_thread(find_binaries)
    return f"Postgres {MAJOR} programs in {binaries.folder}"


async def _database(found: Examination) -> str:
    from folklore.db.migrate import server_info
    from folklore.runtime import database_address

    address, where = await database_address(found.settings)
    server = await server_info(address)
    if server.pgvector is None and server.offered is None:
        raise FolkloreError(
            f"{server.version} has no pgvector.", hint="Install pgvector 0.8 or newer (package postgresql-NN-pgvector)."
        )
    found.address = address
    vector = f"pgvector {server.pgvector}" if server.pgvector else f"pgvector {server.offered} to be created"
    return f"{where}: {server.version}, {vector}, {server.bytes / 2**20:,.0f} MB at {masked(address)}"


async def _schema(found: Examination) -> str:
    from folklore.db.migrate import migrate, pending

    assert found.address is not None
    lacking = ", ".join(await pending(found.address))
    if lacking and found.settings.database_url is not None:  # somebody else's server is not changed by looking at it
        return f"{lacking} not applied yet: any other command does, or `folklore db migrate`"
    if lacking:
        await migrate(found.address)
    found.migrated = True
    return f"up to date, {lacking} just applied" if lacking else "up to date"


async def _model(found: Examination) -> str:
    from folklore.embedding.factory import configured_embedder

    embedder = configured_embedder(found.settings.embedding, found.settings.home)
    if embedder is None:
        return "none: memories are found by word only"
    began = monotonic()
    try:
        await embedder.embed(["Folklore"])
        model = await embedder.model()
        waited = monotonic() - began
        active = await _generation(found, embedder)
    finally:
        await embedder.close()
    of_the_settings = f"{model.provider}/{model.name}, {model.dimensions} dimensions, ready in {waited:.1f} s"
    if active is None or active == model:
        return of_the_settings
    return (
        f"{active.provider}/{active.name}, {active.dimensions} dimensions, by which recall and store go;"
        f" the settings name {of_the_settings}"
    )


async def _generation(found: Examination, embedder: Embedder) -> Model | None:
    """The model that the store goes by, which still is what it was; None if nobody can tell. Raises FolkloreError."""
    if not found.migrated or found.address is None:
        return None
    from functools import partial

    from folklore.db.database import Database, PoolLimits
    from folklore.db.stores.models import Models
    from folklore.embedding.factory import build_embedder, configured_choice
    from folklore.memory.models.active_model import ActiveModel, ModelSource

    settings = found.settings
    database = Database(found.address, PoolLimits(minimum=0, maximum=2))
    await database.open()
    try:
        to_build = partial(build_embedder, settings=settings.embedding, home=settings.home)
        active_model = ActiveModel(
            embedder, ModelSource(Models(database), configured_choice(settings.embedding), to_build)
        )
        await active_model.refresh()
        if active_model.mismatch is not None:
            told, _, hint = active_model.mismatch.partition(". ")
            raise FolkloreError(f"{told}.", hint=hint)
        active = None
        if active_model.embedder is not None:
            await active_model.embedder.embed(["Folklore"])
            active = await active_model.embedder.model()
        await active_model.close_built()
        return active
    finally:
        await database.close()


async def _memory(found: Examination) -> str:
    """Store and recall in a transaction that is rolled back."""
    from folklore.db.database import DryRun
    from folklore.embedding.factory import configured_embedder
    from folklore.memory.context import MemoryContext

    assert found.address is not None
    embedder = configured_embedder(found.settings.embedding, found.settings.home)
    database = DryRun(found.address)
    began = monotonic()
    try:
        async with asyncio.timeout(_PATIENCE), database.running():
            await _round_trip(MemoryContext.of(database, embedder))
    except TimeoutError as error:
        raise Unavailable("Storing and recalling did not end.", hint="Look at the database's log.") from error
    finally:
        if embedder is not None:
            await embedder.close()
    return f"stored and recalled in {monotonic() - began:.2f} s, and taken back"


async def _round_trip(memory: MemoryContext) -> None:
    from folklore.memory.context import RequestContext
    from folklore.memory.operations import USE_CASES
    from folklore.memory.requests import RecallRequest, StoreRequest
    from folklore.model import Caller, Draft

    namespace = f"doctor-{uuid4().hex[:12]}"
    context = RequestContext(memory, Caller("doctor"), datetime.now(UTC))
    text = "The doctor's thermometer is kept in the second drawer."
    await USE_CASES["store"](context, StoreRequest(memories=(Draft(text),), namespace=namespace))
    request = RecallRequest(query="Where is the thermometer?", namespaces=(namespace,))
    answer = await USE_CASES["recall"](context, request)
    if [result.memory.content for result in answer.memories] != [text]:
        raise FolkloreError("A memory was stored and not recalled.", hint="Please report this with the log.")
    if answer.degraded:
        raise Unavailable(f"Recall works without {answer.degraded[0].branch} only: {answer.degraded[0].reason}")
