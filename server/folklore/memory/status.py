"""State of the memory: what it holds, which embeddings are pending, what is degraded."""

from __future__ import annotations

from folklore import __version__
from folklore.embedding.protocol import Model
from folklore.errors import EmbedderUnavailable
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.permissions import role_in
from folklore.memory.requests import StatsRequest, StatusRequest
from folklore.memory.results import ModelInfo, NamespaceStatus, Stats, Status
from folklore.model import Degraded


async def read_status(context: RequestContext, _request: StatusRequest) -> Status:
    """Return counts and the state of the embedding model. One statement."""
    model, reason = await _active_model(context.memory)
    holdings = await context.memory.namespaces.status(None if model is None else model.id)
    return Status(
        version=__version__,
        engine=context.engine,
        namespaces=tuple(
            NamespaceStatus(
                item.name,
                item.memories,
                role_in(context.caller, item.name) or "reader",
                item.without_vector,
                item.shared,
            )
            for item in holdings
        ),
        model=None if model is None else ModelInfo(model.provider, model.name, model.dimensions),
        degraded=() if reason is None else (Degraded("dense", reason),),
    )


async def read_stats(context: RequestContext, request: StatsRequest) -> Stats:
    """Count exactly what namespaces hold. Two statements."""
    model, _ = await _active_model(context.memory)
    namespaces = await context.memory.find_namespaces(request.namespaces)
    counted = await context.memory.namespaces.stats(
        [namespace.id for namespace in namespaces], None if model is None else model.id
    )
    label = None if model is None else f"{model.provider}/{model.name}/{model.dimensions}"
    return Stats(tuple(counted), label, context.engine)


async def _active_model(memory: MemoryContext) -> tuple[Model | None, str | None]:
    """Return the active model, or the reason why it is missing."""
    if memory.embedder is None:
        return None, "Embedding is switched off (embedding.provider: none)."
    try:
        return await memory.embedder.model(), None
    except EmbedderUnavailable as error:
        return None, error.message
