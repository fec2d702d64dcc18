"""`folklore doctor`: each check in one line, with the next step where one failed."""

import asyncio
import os
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import partial
from time import monotonic
from typing import Any
from uuid import uuid4

import click

from folklore.app import App
from folklore.backup import latest_verified
from folklore.callers import Caller
from folklore.checks import Checks, Doubt
from folklore.cli.context import settings_of, zone_of
from folklore.cli.operate.config import masked
from folklore.cli.operate.server_checks import examine_server
from folklore.cli.options import context_and_json
from folklore.cli.output import print_checks, print_either
from folklore.client.project import fork_advice, project_namespace, working_directory
from folklore.config import Settings
from folklore.contract.filters import ALL
from folklore.contract.health import Check
from folklore.contract.memories import StoreRequest
from folklore.contract.namespaces import EraseNamespaceRequest
from folklore.contract.people import CreateTokenRequest
from folklore.contract.recall import RecallRequest
from folklore.contract.requests import without_nulls
from folklore.db.database import Database, DryRun, PoolLimits
from folklore.db.distribute import is_cluster, require_nodes, undistributed
from folklore.db.migrate import (
    migrate,
    missing_role_commands,
    pending,
    read_requirements,
    server_info,
)
from folklore.db.requirements import refuse
from folklore.db.stores.callers.principals import Principals
from folklore.db.stores.models import Models
from folklore.disk import LEAST_FREE, LITTLE_FREE, free_space, require_space
from folklore.embedding import (
    Embedder,
    Model,
    build_embedder,
    configured_choice,
    configured_embedder,
)
from folklore.engine import MAJOR, find_binaries
from folklore.errors import ConfigInvalid, FolkloreError, NotFound, Unavailable
from folklore.memory import (
    ActiveModel,
    MemoryContext,
    ModelSource,
    RequestContext,
    authenticate,
    kept_name,
    operation_of,
)
from folklore.model import Answer, Draft
from folklore.runtime import backup_folder, database_address

_TIMEOUT = 60.0  # seconds for storing and recalling one memory


@dataclass(slots=True)
class Examination(Checks):
    """The checks of this machine so far, and the findings that later checks need."""

    settings: Settings = field(kw_only=True)
    address: str | None = None
    fit: bool = False
    migrated: bool = False

    @property
    def can_recall(self) -> bool:
        """Return True if a recall tells more than the checks of the database and of its schema did."""
        return self.fit and self.migrated


@click.command()
@context_and_json
def doctor(ctx: click.Context) -> None:
    """Check that everything works, and show the next step for a failure.

    Checks settings, engine, database, schema, model, and a store with its recall; with --server the
    connection, its TLS, versions and clocks, your token, its grants, the project and the assistants. Exit code 0 if
    every check succeeds, 3 if something cannot be reached, 1 if anything else failed. Nothing is changed, except that
    the embedded engine is started and its schema brought up to date, and that on a cluster two memories of its own are
    stored, recalled with a token and erased.
    """
    try:
        settings = settings_of(ctx)
    except ConfigInvalid as error:
        checks = [Check("settings", "failed", error.message, error.hint)]
        code = 1
    else:
        exam = asyncio.run(_examine_any(settings, zone_of(ctx)))
        checks = exam.checks
        code = exam.exit_code
    value = {
        "ok": code == 0,
        "checks": [without_nulls(asdict(check)) for check in checks],
    }
    print_either(value, lambda: print_checks(checks))
    if code:
        ctx.exit(code)


async def _examine_any(settings: Settings, zone: tzinfo) -> Checks:
    if settings.server is None:
        return await _examine(settings)
    return await examine_server(settings, zone)


async def _examine(settings: Settings) -> Examination:
    exam = Examination(settings=settings)
    await exam.check("settings", lambda: _settings(exam))
    embedded = settings.database_url is None
    await exam.check("engine", lambda: _engine(exam))
    may_start = not embedded or not exam.failed
    await exam.check("database", lambda: _database(exam), needs=may_start)
    await exam.check("schema", lambda: _schema(exam), needs=exam.address is not None)
    if exam.address is not None and await is_cluster(exam.address):
        await exam.check("cluster", lambda: _cluster(exam), needs=exam.can_recall)
    await exam.check("project", lambda: _project(exam), needs=exam.migrated)
    await exam.check("model", lambda: _model(exam))
    await exam.check("memory", lambda: _memory(exam), needs=exam.can_recall)
    if embedded:
        await exam.check("disk", lambda: _disk(exam))
        await exam.check("backup", lambda: _backup(exam))
    return exam


async def _settings(exam: Examination) -> str:
    settings = exam.settings
    app = App(settings)  # raises ConfigInvalid for settings that are checked on use
    reading = ", read-only" if settings.read_only else ""
    return f"home {settings.home}, writing as {settings.author} to {app.namespace()}{reading}"


async def _project(exam: Examination) -> str:
    """Name the namespace of this directory, which an earlier version may have named."""
    assert exam.address is not None
    settings = exam.settings
    directory = working_directory(os.environ)
    if settings.namespace is not None:
        return f"{settings.namespace}, by the setting namespace"
    project = await asyncio.to_thread(project_namespace, directory, settings.remote)
    advice = await asyncio.to_thread(fork_advice, directory, settings.remote)
    async with Database(exam.address, PoolLimits(minimum=1, maximum=1)) as database:
        memory = MemoryContext.of(database, None)
        context = RequestContext(memory, Caller("doctor"), datetime.now(UTC))
        kept = await kept_name(context, project)
    if kept != project:
        advice += (
            f"; an earlier version named it so; a namespace {project} would separate it"
        )
    return f"{kept}{advice}"


async def _engine(exam: Examination) -> str:
    if exam.settings.database_url is not None:
        return "not needed: database_url names a Postgres"
    binaries = await asyncio.to_thread(find_binaries)
    return f"Postgres {MAJOR} programs in {binaries.folder}"


async def _database(exam: Examination) -> str:
    address, where = await database_address(exam.settings)
    server = await server_info(address)
    if server.pgvector is None and server.offered is None:
        hint = "Install pgvector 0.8 or newer (package postgresql-NN-pgvector)."
        raise FolkloreError(f"{server.version} has no pgvector.", hint=hint)
    exam.address = address
    refuse(await read_requirements(address))
    exam.fit = True
    vector = f"pgvector {server.pgvector}"
    if not server.pgvector:
        vector = f"pgvector {server.offered} to be created"
    size = f"{server.bytes / 2**20:,.0f} MB"
    return f"{where}: {server.version}, {vector}, {size} at {masked(address)}"


async def _schema(exam: Examination) -> str:
    assert exam.address is not None
    missing = ", ".join(await pending(exam.address))
    # a check does not change a server
    if missing and exam.settings.database_url is not None:
        return f"{missing} not applied yet: any other command applies it, or `folklore db migrate`"
    if missing:
        await migrate(exam.address)
    exam.migrated = True
    tables = await undistributed(exam.address)
    if tables:
        raise FolkloreError(
            f"Not distributed: {', '.join(tables)}.",
            hint="Run `folklore db distribute`.",
        )
    if await missing_role_commands(exam.address):
        hint = "Run what `folklore db role` prints, as a superuser."
        raise Doubt(
            "Calls with a token fail: the role folklore_app is missing or not complete.",
            hint=hint,
        )
    if missing:
        return f"up to date, {missing} just applied"
    return "up to date"


async def _cluster(exam: Examination) -> str:
    """Reach every node in both roles, and recall as a token two memories, which are erased afterwards."""
    assert exam.address is not None
    nodes = await require_nodes(exam.address)
    await check_token(exam.address)
    return f"all {nodes} nodes answer in both roles, and a token sees its own"


async def _model(exam: Examination) -> str:
    embedder = configured_embedder(exam.settings.embedding, exam.settings.home)
    if embedder is None:
        return "none: memories are found by keyword only"
    began = monotonic()
    try:
        await embedder.embed(["Folklore"])
        model = await embedder.model()
        waited = monotonic() - began
        active = await _active_model(exam, embedder)
    finally:
        await embedder.close()
    configured = f"{model.provider}/{model.name}, {model.dimensions} dimensions, ready in {waited:.1f} s"
    if active is None or active == model:
        return configured
    description = f"{active.provider}/{active.name}, {active.dimensions} dimensions, is the active model"
    if exam.settings.embedding.provider == "auto":
        return (
            f"{description}; `folklore embeddings switch` would switch to {configured}"
        )
    return f"{description}; the settings name {configured}"


async def _active_model(exam: Examination, embedder: Embedder) -> Model | None:
    """Return the active model; None if it is unknown. Raises FolkloreError if its vectors have changed."""
    if not exam.migrated or exam.address is None:
        return None
    settings = exam.settings
    async with Database(exam.address, PoolLimits(minimum=0, maximum=2)) as database:
        to_build = partial(
            build_embedder, settings=settings.embedding, home=settings.home
        )
        choice = configured_choice(settings.embedding, settings.home)
        source = ModelSource(
            Models(database), choice, to_build, settings.embedding.provider == "auto"
        )
        active_model = ActiveModel(embedder, source)
        await active_model.refresh()
        if active_model.mismatch is not None:
            message, _, hint = active_model.mismatch.partition(". ")
            raise FolkloreError(f"{message}.", hint=hint or None)
        active = None
        if active_model.embedder is not None:
            await active_model.embedder.embed(["Folklore"])
            active = await active_model.embedder.model()
        await active_model.close_built()
        return active


async def _memory(exam: Examination) -> str:
    """Store and recall in a transaction that is rolled back."""
    assert exam.address is not None
    embedder = configured_embedder(exam.settings.embedding, exam.settings.home)
    database = DryRun(exam.address)
    began = monotonic()
    try:
        async with asyncio.timeout(_TIMEOUT), database.running():
            await _round_trip(MemoryContext.of(database, embedder))
    except TimeoutError as error:
        hint = "See the log of the database."
        raise Unavailable(
            f"A store and its recall did not end in {_TIMEOUT:.0f} s.", hint=hint
        ) from error
    finally:
        if embedder is not None:
            await embedder.close()
    return f"stored and recalled in {monotonic() - began:.2f} s, and rolled back"


async def _round_trip(memory: MemoryContext) -> None:
    namespace = f"doctor-{uuid4().hex[:12]}"
    context = RequestContext(memory, Caller("doctor"), datetime.now(UTC))
    text = "The doctor's thermometer is kept in the second drawer."
    await _call(context, StoreRequest(memories=(Draft(text),), namespace=namespace))
    request = RecallRequest(query="Where is the thermometer?", namespaces=(namespace,))
    answer: Answer = await _call(context, request)
    if [result.memory.content for result in answer.memories] != [text]:
        raise FolkloreError(
            "A memory was stored and not recalled.",
            hint="Please report this with the log.",
        )
    if answer.degraded:
        degraded = answer.degraded[0]
        raise Unavailable(
            f"Recall works without its {degraded.branch} branch: {degraded.reason}"
        )


async def check_token(dsn: str) -> None:
    """Recall as the owner and with a token, of memories that are erased afterwards. Raises FolkloreError."""
    check = f"folklore-check-{uuid4().hex}"  # random: the namespaces that are erased have no memory of a user
    readable = f"{check}/granted"
    foreign = f"{check}/foreign"
    async with Database(dsn, PoolLimits(minimum=0, maximum=4)) as database:
        context = RequestContext(
            MemoryContext.of(database, None), Caller(check), datetime.now(UTC)
        )
        try:
            await _check(context, readable, foreign)
        finally:
            for name in (readable, foreign):
                with suppress(NotFound):
                    await _call(context, EraseNamespaceRequest(name=name))
            await database.rows("principals/delete", name=check)


async def _check(owner: RequestContext, readable: str, foreign: str) -> None:
    word = uuid4().hex
    texts = {
        readable: f"The harbour crane {word} is red.",
        foreign: f"We deploy {word} on Tuesdays.",
    }
    for name, text in texts.items():
        await _call(owner, StoreRequest(memories=(Draft(text),), namespace=name))
    request = CreateTokenRequest(
        name=owner.caller.author, grants=(f"{readable}:reader",), expires="1h"
    )
    created = await _call(owner, request)
    principals = Principals(owner.memory.database)
    caller, _ = await authenticate(principals, created.secret, now=owner.now)
    token = RequestContext(owner.memory.view_of(caller.access), caller, owner.now)

    recall = RecallRequest(query=word, namespaces=(ALL,))
    of_owner = (await _call(owner, recall)).memories
    of_token = (await _call(token, recall)).memories
    spaces = await owner.memory.namespaces.find([readable, foreign])
    visible = await token.memory.changes.namespaces_of(
        [space.id for space in spaces], [result.memory.id for result in of_owner]
    )
    counts = len(of_owner), len(of_token), len(visible)
    if counts != (2, 1, 1):
        raise FolkloreError(
            "Of two memories the owner recalled {}, and of the one that a token may read it recalled {}; row-level "
            "security showed it {}.".format(*counts),
            hint="docs/how-to/citus.md has what the nodes and both roles need.",
        )


async def _call(context: RequestContext, request: Any) -> Any:
    return await operation_of(request).use_case(context, request)


async def _disk(exam: Examination) -> str:
    """Report the free space. Raises DiskFull if nothing can be written."""
    home = exam.settings.home
    require_space(home)
    free = free_space(home)
    little = "only " if free < LITTLE_FREE else ""
    return f"{little}{free / 2**20:,.0f} MB free; below {LEAST_FREE >> 20} MB nothing is written"


async def _backup(exam: Examination) -> str:
    """Report the newest verified backup. An old one is no failure: a server that is not used makes none."""
    settings = exam.settings
    folder = backup_folder(settings)
    newest = await asyncio.to_thread(latest_verified, folder)
    if newest is None:
        text = f"none in {folder} yet"
        if settings.backup.keep:
            text += "; a server that is used makes one a day"
        return text
    age = datetime.now(UTC) - newest.manifest.created_at
    return f"verified, {age.days} days old: {newest.path}"
