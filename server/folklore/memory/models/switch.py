"""Switch of the active embedding model while servers go on storing and recalling.

The state of a model is its role in the models table, changed in one transaction each:

    role        next step
    none        begin            -> next       (the first model of a database is active at once)
    next        activate         -> active     drop -> deleted
    active      activate another -> previous
    previous    rollback         -> active     drop -> deleted     activate another -> none

At most one model is next, one active, one previous. Recall and store use the active one. A switch begins, fills the new
model's pending embeddings, validates them against the active ones over a sample of the memories, activates the new
model, and sweeps: it fills what servers stored by the former model before they noticed. All state is in the database,
so a switch that was cut off continues where it was when it is run again.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from folklore.contract.models import (
    SMALLEST_SAMPLE,
    BackfillRequest,
    BackfillResult,
    DropModelRequest,
    DropResult,
    ModelCoverage,
    NamespaceCoverage,
    RestoreModelRequest,
    SwitchModelRequest,
    SwitchResult,
    Validation,
)
from folklore.db.stores.embeddings import Coverage, Embeddings
from folklore.db.stores.models import KnownModel, Models
from folklore.db.stores.recall import visits
from folklore.embedding import SAME_MODEL, Embedder, ModelChoice
from folklore.errors import (
    Conflict,
    EmbedderUnavailable,
    FolkloreError,
    InvalidInput,
    NotFound,
)
from folklore.log import get_logger
from folklore.memory.context import MemoryContext, RequestContext
from folklore.memory.context.active_model import (
    REFRESH_SECONDS,
    Build,
    choice_of,
    fingerprint_cosine,
    model_of,
)
from folklore.memory.models.backfill import Backfill, Pace, Report
from folklore.permissions import require_owner
from folklore.ranking.numbers import LEAST_FETCHED

log = get_logger(__name__)

# Concurrent stores leave a few memories pending in every round; the sweep makes the rest.
_ROUNDS = 10
# Servers have noticed the switch after this many seconds.
_SWEEP_SECONDS = 2 * REFRESH_SECONDS + 1.0
_DELETED_AT_ONCE = 5_000

# The sample of a validation.
_SAMPLE = 60
_MOST_SAMPLED = 120
_NEAREST = 10
_QUERY_WORDS = 12
# A namespace, a memory in it, and the memory's first words as a query.
Sampled = tuple[UUID, UUID, str]


@dataclass(frozen=True, slots=True)
class Target:
    """The model to switch to, or to compare with, and its embedder."""

    model: KnownModel
    embedder: Embedder


class ModelSwitch:
    """Switch, rollback and drop of embedding models in one database; each reports its progress to the request."""

    def __init__(self, request: RequestContext, pace: Pace = Pace()) -> None:
        self._context = request.memory
        self._now = request.clock
        self._report = request.report
        self._models = Models(self._context.database)
        self._pace = pace

    async def to(self, target: Target, *, force: bool = False) -> SwitchResult:
        """Switch to a model; `force` switches even if the validation fails.

        Raises Conflict while another switch is under way, FolkloreError if the validation fails, EmbedderUnavailable
        if the new model's service fails for too long. Then recall goes on with the active model.
        """
        role = await self._models.begin(target.model, now=self._now())
        count = await self._fill(target)
        if role == "active":
            return SwitchResult(None, target.model.label, count, None)
        old = await self._with_role("active")
        validation = None
        if old is not None and (embedder := self._context.embedder) is not None:
            namespaces = await namespace_ids(self._context)
            validation = await validate(
                self._context.embeddings, namespaces, target, Target(old, embedder)
            )
            if not validation.passed and not force:
                if validation.old is None:
                    verdict = "cannot be reached"
                else:
                    verdict = f"finds {validation.old}"
                raise FolkloreError(
                    f"The new model finds {validation.new} of {validation.sample} memories by their own first words; "
                    f"the active model {verdict}. The active model stays.",
                    hint="Check the new model and its prefixes, or switch anyway with --force.",
                )
        return await self._activate(old, target, count, validation)

    async def back(self, build: Build, *, at_once: bool = False) -> SwitchResult:
        """Switch back to the previous model; make the embeddings it lacks first, or afterwards (`at_once`).

        Raises NotFound if no model is previous, because none was switched from or its embeddings were dropped.
        """
        old = await self._with_role("active")
        previous = await self._with_role("previous")
        if previous is None:
            raise NotFound(
                "There is no previous model.",
                hint="`folklore embeddings status` lists the models.",
            )
        target = Target(previous, build(choice_of(previous)))
        try:
            count = 0
            if not at_once:
                actual = await model_of(target.embedder)
                if actual.id != target.model.id or not _same(target.model, actual):
                    raise FolkloreError(
                        f"The model behind {target.model.label} is not the one that made its embeddings.",
                        hint="Make them again with `folklore embeddings switch`.",
                    )
                count = await self._fill(target)
            return await self._activate(old, target, count, None)
        finally:
            await target.embedder.close()

    async def drop(self, model: KnownModel) -> int:
        """Delete a model and its embeddings and return their number. Raises Conflict for the active model."""
        if (
            model.since is not None
            and (self._now() - model.since).total_seconds() < 5 * REFRESH_SECONDS
        ):
            raise Conflict(
                "This model was active seconds ago and may still be in use.",
                hint="Try again in ten seconds.",
            )
        await self._models.retire(model.id, now=self._now())
        dropped = 0
        for namespace in await namespace_ids(self._context):
            while deleted := await self._context.embeddings.delete(
                namespace, model.id, most=_DELETED_AT_ONCE
            ):
                dropped += deleted
                self._report(dropped, 0)
        await self._models.delete(id=model.id)
        return dropped

    async def _activate(
        self,
        old: KnownModel | None,
        target: Target,
        count: int,
        validation: Validation | None,
    ) -> SwitchResult:
        await self._models.activate(target.model.id, now=self._now())
        log.info("model_switched", to=target.model.label)
        label = None if old is None else old.label
        return SwitchResult(
            label, target.model.label, count + await self._sweep(target), validation
        )

    async def _with_role(self, role: str) -> KnownModel | None:
        return next(
            (model for model in await self._models.read() if model.role == role), None
        )

    async def _fill(self, target: Target) -> int:
        pending = await pending_embeddings(self._context, target.model)
        backfill = self._backfill(target, lambda done: self._report(done, pending))
        count = 0
        for _ in range(_ROUNDS):
            filled = await backfill.fill(await namespace_ids(self._context))
            count += filled.embeddings
            if filled.embeddings <= self._pace.batch:
                break
        return count

    async def _sweep(self, target: Target) -> int:
        """Fill what is stored by the former model until every server has noticed the switch."""
        backfill = self._backfill(target, lambda _done: None)
        count = 0
        waited = 0.0
        try:
            while True:
                count += (
                    await backfill.fill(await namespace_ids(self._context))
                ).embeddings
                if waited >= _SWEEP_SECONDS:
                    break
                await asyncio.sleep(1.0)
                waited += 1.0
        except (
            EmbedderUnavailable
        ) as error:  # the switch is done; the rest is left to the job `embeddings`
            log.warning("sweep_stopped", reason=error.message)
        return count

    def _backfill(self, target: Target, report: Report) -> Backfill:
        embeddings = self._context.embeddings
        model = target.model.id
        return Backfill(
            embeddings,
            target.embedder,
            model,
            now=self._now,
            pace=self._pace,
            report=report,
        )


async def backfill(context: RequestContext, request: BackfillRequest) -> BackfillResult:
    """Make the pending embeddings in the active model. Raises Refused, InvalidInput, EmbedderUnavailable."""
    require_owner(context.caller)
    memory = context.memory
    pace = Pace(per_second=request.rate)
    await memory.active_model.refresh()
    if (embedder := memory.embedder) is None:
        raise InvalidInput(
            "embedding.provider",
            "must not be none to make embeddings.",
            hint="Set it in the settings.",
        )
    model = await model_of(embedder)
    pending = await pending_embeddings(memory, model)
    work = Backfill(memory.embeddings, embedder, model.id, now=context.clock, pace=pace)
    work.report = lambda done: context.report(done, pending)
    filled = await work.fill(await namespace_ids(memory))
    return BackfillResult(model.label, filled.embeddings, filled.wordless)


async def switch_model(
    context: RequestContext, request: SwitchModelRequest
) -> SwitchResult:
    """Switch to the model of the settings with these properties. Raises Refused, InvalidInput, and as ModelSwitch."""
    require_owner(context.caller)
    await context.memory.active_model.refresh()
    target = await chosen_target(
        context, {name: getattr(request, name) for name in ("provider", "model", "url")}
    )
    try:
        return await ModelSwitch(context, Pace(per_second=request.rate)).to(
            target, force=request.force
        )
    finally:
        await target.embedder.close()


async def restore_model(
    context: RequestContext, request: RestoreModelRequest
) -> SwitchResult:
    """Switch back to the previous model. Raises Refused, and as ModelSwitch."""
    require_owner(context.caller)
    await context.memory.active_model.refresh()
    _, build = context.model_of({})
    return await ModelSwitch(context, Pace(per_second=request.rate)).back(
        build, at_once=request.at_once
    )


async def drop_model(context: RequestContext, request: DropModelRequest) -> DropResult:
    """Delete the embeddings of a model, given by its name, its id or its role. Raises Refused, NotFound, Conflict."""
    require_owner(context.caller)
    models = await Models(context.memory.database).read()
    role = request.role
    found = [
        item
        for item in models
        if (item.role == role if role else request.model in (item.label, str(item.id)))
    ]
    if len(found) != 1:
        raise NotFound(
            "Several models have this name; give the id."
            if found
            else "There is no such model.",
            hint="`folklore embeddings status --json` lists them.",
        )
    return DropResult(found[0].label, await ModelSwitch(context).drop(found[0]))


async def namespace_ids(context: MemoryContext) -> list[UUID]:
    """Return the ids of all namespaces."""
    return [namespace.id for namespace in await context.namespaces.find(None)]


async def pending_embeddings(context: MemoryContext, model: KnownModel) -> int:
    """Count the memories without an embedding of a model."""
    coverage = await context.embeddings.coverage(await namespace_ids(context), model.id)
    return sum(item.pending for item in coverage.values())


async def validate(
    embeddings: Embeddings, namespaces: Sequence[UUID], new: Target, old: Target
) -> Validation:
    """Compare two generations over a sample of these namespaces. Raises EmbedderUnavailable if the new model fails."""
    each = max(SMALLEST_SAMPLE, _SAMPLE // max(len(namespaces), 1))
    sample: list[Sampled] = []
    for namespace in namespaces[:_SAMPLE]:
        rows = await embeddings.sample(
            namespace=namespace, one=new.model.id, other=old.model.id, most=each
        )
        sample += [
            (namespace, id_, " ".join(text.split()[:_QUERY_WORDS]))
            for id_, text in rows
        ]
    del sample[_MOST_SAMPLED:]
    found_new = await _nearest(embeddings, sample, new)
    number_new = _hits(sample, found_new)
    try:
        found_old = await _nearest(embeddings, sample, old)
    except EmbedderUnavailable:
        return Validation(len(sample), number_new, None, None)
    shared = [
        len(one & other) / max(len(other), 1)
        for one, other in zip(found_new, found_old, strict=True)
    ]
    return Validation(
        len(sample),
        number_new,
        _hits(sample, found_old),
        sum(shared) / max(len(shared), 1),
    )


async def _nearest(
    embeddings: Embeddings, sample: Sequence[Sampled], target: Target
) -> list[frozenset[UUID]]:
    neighbours = []
    for namespace, _, query in sample:
        words = query.split()
        vector = await target.embedder.embed_question(words, [1.0] * len(words))
        near = (
            await embeddings.nearest(namespace, target.model.id, vector, _NEAREST)
            if vector.any()
            else ()
        )
        neighbours.append(frozenset(near))
    return neighbours


def _hits(sample: Sequence[Sampled], neighbours: Sequence[frozenset[UUID]]) -> int:
    return sum(
        id_ in near for (_, id_, _), near in zip(sample, neighbours, strict=True)
    )


async def target_of(choice: ModelChoice, models: Models, build: Build) -> Target:
    """Reach the model of a choice and return it.

    If another model was registered under the same name and dimensions, as its fingerprint shows, the new one gets a
    revision of its own. Raises EmbedderUnavailable, ConfigInvalid.
    """
    by_id = {model.id: model for model in await models.read()}
    for number in range(1, 100):
        embedder = build(
            choice if number == 1 else replace(choice, revision=str(number))
        )
        try:
            model = await model_of(embedder)
        except BaseException:
            await embedder.close()
            raise
        registered = by_id.get(model.id)
        if registered is None or _same(registered, model):
            return Target(registered or model, embedder)
        await embedder.close()
    raise Conflict(
        "99 models have this name already.",
        hint="Drop some with `folklore embeddings drop`.",
    )


async def chosen_target(
    context: RequestContext, properties: Mapping[str, str | None]
) -> Target:
    """Reach the model of the settings with these properties. Raises as target_of, and InvalidInput for none."""
    choice, build = context.model_of(
        {name: value for name, value in properties.items() if value is not None}
    )
    if choice is None:
        raise InvalidInput(
            "provider",
            "must not be none.",
            hint="Set embedding.provider: none in the settings.",
        )
    return await target_of(choice, Models(context.memory.database), build)


def _same(one: KnownModel, other: KnownModel) -> bool:
    return (
        one.probe is None
        or other.probe is None
        or fingerprint_cosine(one.probe, other.probe) >= SAME_MODEL
    )


async def model_coverage(
    context: MemoryContext,
) -> tuple[list[ModelCoverage], list[NamespaceCoverage]]:
    """Return every model, and the coverage of each namespace in those that have a role or embeddings there."""
    namespaces = await context.namespaces.find(None)
    models = []
    spaces = []
    for model in await Models(context.database).read():
        properties = model.label, model.role, model.dimensions
        indexed = await context.statements.indexed(model.id)
        coverage = await context.embeddings.coverage(
            [namespace.id for namespace in namespaces], model.id
        )
        embedded = pending = 0
        for namespace in namespaces:
            covered = coverage.get(namespace.id, Coverage(0, 0))
            if model.role is None and not covered.embedded:
                continue
            if visits(indexed.vectors, covered.embedded, LEAST_FETCHED):
                path = "hnsw"
            else:
                path = "exact"
            counts = covered.memories, covered.embedded, covered.pending
            spaces.append(NamespaceCoverage(namespace.name, *properties, *counts, path))
            embedded = embedded + covered.embedded
            pending = pending + covered.pending
        role = model.role
        size = model.dimensions
        models.append(
            ModelCoverage(
                model.label,
                model.id,
                role,
                size,
                embedded,
                pending,
                model.url,
                model.since,
            )
        )
    return models, spaces
