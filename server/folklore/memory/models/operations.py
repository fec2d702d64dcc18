"""Changes of the embedding model, for the owner; each reports its progress to the request."""

from __future__ import annotations

from folklore.db.stores.models import Models
from folklore.errors import InvalidInput, NotFound
from folklore.memory import requests, results
from folklore.memory.active_model import model_of
from folklore.memory.context import RequestContext
from folklore.memory.models.backfill import Backfill, Pace
from folklore.memory.models.switch import ModelSwitch, chosen_target, namespace_ids, pending_embeddings
from folklore.memory.permissions import require_owner


async def backfill(context: RequestContext, request: requests.BackfillRequest) -> results.BackfillResult:
    """Make the pending embeddings in the active model. Raises Refused, InvalidInput, EmbedderUnavailable."""
    require_owner(context.caller)
    memory, pace = context.memory, Pace(per_second=request.rate)
    await memory.active_model.refresh()
    if (embedder := memory.embedder) is None:
        raise InvalidInput("embedding.provider", "must not be none to make embeddings.", hint="Set it in the settings.")
    model = await model_of(embedder)
    pending = await pending_embeddings(memory, model)
    work = Backfill(memory.embeddings, embedder, model.id, now=context.clock, pace=pace)
    work.report = lambda done: context.report(done, pending)
    filled = await work.fill(await namespace_ids(memory))
    return results.BackfillResult(model.label, filled.embeddings, filled.wordless)


async def switch_model(context: RequestContext, request: requests.SwitchModelRequest) -> results.SwitchResult:
    """Switch to the model of the settings with these properties. Raises Refused, InvalidInput, and as ModelSwitch."""
    require_owner(context.caller)
    await context.memory.active_model.refresh()
    target = await chosen_target(context, {name: getattr(request, name) for name in ("provider", "model", "url")})
    try:
        return await ModelSwitch(context, Pace(per_second=request.rate)).to(target, force=request.force)
    finally:
        await target.embedder.close()


async def restore_model(context: RequestContext, request: requests.RestoreModelRequest) -> results.SwitchResult:
    """Switch back to the previous model. Raises Refused, and as ModelSwitch."""
    require_owner(context.caller)
    await context.memory.active_model.refresh()
    _, build = context.model_of({})
    return await ModelSwitch(context, Pace(per_second=request.rate)).back(build, at_once=request.at_once)


async def drop_model(context: RequestContext, request: requests.DropModelRequest) -> results.DropResult:
    """Delete the embeddings of a model, given by its name, its id or its role. Raises Refused, NotFound, Conflict."""
    require_owner(context.caller)
    models, role = await Models(context.memory.database).read(), request.role
    matches = [item for item in models if (item.role == role if role else request.model in (item.label, str(item.id)))]
    if len(matches) != 1:
        raise NotFound(
            "Several models have this name; give the id." if matches else "There is no such model.",
            hint="`folklore embeddings status --json` lists them.",
        )
    return results.DropResult(matches[0].label, await ModelSwitch(context).drop(matches[0]))
