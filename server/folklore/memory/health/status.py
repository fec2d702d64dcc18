"""State of the memory: what it holds, which embeddings are pending, what is degraded."""

import asyncio
from dataclasses import replace

from folklore import __version__
from folklore.contract.health import (
    BackupInfo,
    BackupsRequest,
    ModelInfo,
    Sizes,
    SizesRequest,
    Stats,
    StatsRequest,
    Status,
    StatusRequest,
    TableSize,
)
from folklore.contract.jobs import JobsInfo, JobsRequest, RunJobsRequest, RunReport
from folklore.contract.models import EmbeddingsInfo, EmbeddingsRequest
from folklore.db.stores.events.injections import Injections
from folklore.db.stores.models import KnownModel
from folklore.db.stores.upkeep.jobs import Jobs
from folklore.db.stores.upkeep.maintenance import Maintenance
from folklore.embedding import PROBE, Model
from folklore.errors import EmbedderUnavailable, Unavailable
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.context.active_model import SWITCHED_OFF
from folklore.memory.models.switch import model_coverage
from folklore.model import Degraded
from folklore.permissions import require_owner, role_in

# Seconds for the model to answer; a recall waits longer for it.
_MODEL_SECONDS = 3.0


async def read_status(context: RequestContext, request: StatusRequest) -> Status:
    """Return counts and the state of the embedding model, which is asked for a vector unless the request says not to.

    A server with pending embeddings begins to make them. One statement.

    If the table of embeddings is locked or damaged, another one without it.
    """
    model, reason = await _model(context.memory, check=request.check_model)
    try:
        holdings = await context.memory.namespaces.status(
            None if model is None else model.id
        )
    except Unavailable as error:
        holdings = await context.memory.namespaces.status(None)
        reason = error.message
    if any(item.pending_embeddings for item in holdings):
        context.note_pending()
    return Status(
        version=__version__,
        engine=context.engine,
        namespaces=tuple(
            replace(item, role=role_in(context.caller, item.name) or "reader")
            for item in holdings
        ),
        model=None
        if model is None
        else ModelInfo(model.provider, model.name, model.dimensions),
        degraded=() if reason is None else (Degraded("dense", reason),),
    )


async def read_stats(context: RequestContext, request: StatsRequest) -> Stats:
    """Count exactly what namespaces hold, and what was injected from them. Three statements."""
    model, _ = await _active_model(context.memory)
    namespaces = await context.memory.find_namespaces(request.namespaces)
    ids = [namespace.id for namespace in namespaces]
    statistics = await context.memory.namespaces.stats(
        namespaces=ids, model=None if model is None else model.id
    )
    # As the owner: the ledger has no policies. It is asked for namespaces that the caller may read.
    injected = await Injections(context.memory.root.database).stats(ids)
    statistics = [replace(item, **injected.get(item.name, {})) for item in statistics]
    if model is None:
        label = None
    else:
        label = f"{model.provider}/{model.name}/{model.dimensions}"
    return Stats(tuple(statistics), label, context.engine)


async def read_jobs(context: RequestContext, _request: JobsRequest) -> JobsInfo:
    """Return the rows of the background jobs, to the owner. One statement. Raises Refused."""
    require_owner(context.caller, dry_run=True)
    states = await Jobs(context.memory.database).all()
    return JobsInfo(tuple(states.values()), tuple(context.scheduled()), context.now)


async def run_jobs(
    context: RequestContext, request: RunJobsRequest
) -> tuple[RunReport, ...]:
    """Run background jobs, for the owner. Raises Refused, InvalidInput for an unknown job."""
    require_owner(context.caller, dry_run=request.dry_run)
    await context.memory.active_model.refresh()
    return await context.run_jobs(request.jobs, request.dry_run)


async def read_backups(
    context: RequestContext, _request: BackupsRequest
) -> tuple[BackupInfo, ...]:
    """Return the backups that the server can see, newest first, to the owner. Raises Refused."""
    require_owner(context.caller, dry_run=True)
    return await context.backups()


async def read_sizes(context: RequestContext, _request: SizesRequest) -> Sizes:
    """Return the sizes of the database and its tables, to the owner. One statement. Raises Refused."""
    require_owner(context.caller, dry_run=True)
    size, tables = await Maintenance(context.memory.database).sizes(TableSize)
    return Sizes(size, tuple(tables))


async def read_embeddings(
    context: RequestContext, _request: EmbeddingsRequest
) -> EmbeddingsInfo:
    """Return the models, and what they embedded of the namespaces that the caller may read.

    Addresses of models are for the owner.
    """
    memory = context.memory
    await memory.active_model.refresh()
    models, namespaces = await model_coverage(memory)
    active = next((model for model in models if model.role == "active"), None)
    note = memory.active_model.mismatch
    if memory.embedder is None:
        note = "Embedding is switched off (embedding.provider: none): memories are found by keyword only."
    elif active is None:
        note = "Nothing is embedded yet; the first store makes the configured model the active one."
    return EmbeddingsInfo(
        configured=memory.active_model.configured,
        active=None if active is None else active.model,
        note=note,
        models=tuple(
            model if context.caller.access is None else replace(model, url=None)
            for model in models
        ),
        namespaces=tuple(namespaces),
    )


async def _model(
    memory: MemoryContext, *, check: bool
) -> tuple[KnownModel | Model | None, str | None]:
    """Return the active model, and the reason why it embeds nothing now; unless `check`, a known model is not asked."""
    if not check and (known := await memory.active_model.known()) is not None:
        return known, None
    model, reason = await _active_model(memory)
    return model, reason or await _failure(memory)


async def _failure(memory: MemoryContext) -> str | None:
    """Return the reason why the model embeds nothing now, None if it does."""
    if memory.embedder is None:
        return None
    try:
        async with asyncio.timeout(_MODEL_SECONDS):
            await memory.embedder.embed([PROBE])
    except EmbedderUnavailable as error:
        return error.message
    except TimeoutError:
        return f"The embedding model does not answer within {_MODEL_SECONDS:g} s."
    return None


async def _active_model(memory: MemoryContext) -> tuple[Model | None, str | None]:
    if memory.embedder is None:
        return None, SWITCHED_OFF
    try:
        return await memory.embedder.model(), None
    except EmbedderUnavailable as error:
        return None, error.message
