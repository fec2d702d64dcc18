"""Change the embedding model of a store while everybody goes on using it.

A second generation of vectors is filled beside the first, by which recall goes on. When nothing is owed and a sample
agrees, one transaction lets the new one count. Running servers notice (active_model.py); what they stored by the
old model in the moment between owes its new vector like any other debt, and is swept up at the end. Nothing is kept but
in the database, so a switch that was broken off goes on where it was when it is asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from folklore.db.stores.embeddings import Coverage, Debts
from folklore.db.stores.models import KnownModel, Models
from folklore.embedding.protocol import SAME_MODEL, Embedder, ModelChoice
from folklore.errors import Conflict, EmbedderUnavailable, FolkloreError, NotFound
from folklore.memory.context import MemoryContext
from folklore.memory.models.active_model import NOTICED_WITHIN, alike, choice_of
from folklore.memory.models.backfill import Backfill, Clock, Pace, Tell
from folklore.memory.models.validation import Agreement, Side, agreement
from folklore.memory.models.vectors import known

log = structlog.get_logger(__name__)

# Stores that go on leave a few to be made whenever one looks; what is left at the switch is swept up after it.
_ROUNDS = 10
# How long after the switch to look for what servers stored that had not noticed yet, in seconds.
_SWEEP = 2 * NOTICED_WITHIN + 1.0
_DROPPED_AT_ONCE = 5_000

Build = Callable[[ModelChoice], Embedder]


@dataclass(frozen=True, slots=True)
class Target:
    """A model to go to and its embedder."""

    model: KnownModel
    embedder: Embedder


@dataclass(frozen=True, slots=True)
class Switched:
    """What a switch did: from which model (None: from nothing) to which, vectors made, how far the two agree."""

    old: KnownModel | None
    new: KnownModel
    made: int
    agreement: Agreement | None


class Switch:
    """The steps of a change of model over one store."""

    def __init__(
        self, library: MemoryContext, models: Models, debts: Debts, *, now: Clock, pace: Pace = Pace(), tell: Tell
    ) -> None:
        self._library = library
        self._models = models
        self._debts = debts
        self._now = now
        self._pace = pace
        self._tell = tell

    async def to(self, target: Target, *, force: bool = False) -> Switched:
        """Fill the target's generation, compare a sample, let it count; what is broken off goes on when called again.

        Raises Conflict while another switch is under way, FolkloreError if the sample does not agree (`force` goes on),
        EmbedderUnavailable if the new model's service fails for too long. Recall goes by the old model until the end.
        """
        role = await self._models.begin(target.model, now=self._now())
        made = await self._fill(target)
        if role == "active":
            return Switched(None, target.model, made, None)
        old = next((model for model in await self._models.all() if model.role == "active"), None)
        compared = None
        if old is not None and (asked := self._library.embedder) is not None:
            compared = await agreement(
                self._models,
                await self._namespaces(),
                Side(target.model.id, target.embedder),
                Side(old.id, asked),
            )
            if not compared.holds and not force:
                raise FolkloreError(
                    f"The new model finds {compared.new} of {compared.sample} memories by their own first words, the "
                    f"present one {compared.old if compared.old is not None else 'is not there to be asked'}. "
                    "Recall goes on by the present one.",
                    hint="Check the model and its prefixes, or switch all the same with --force.",
                )
        await self._models.switch(target.model.id, now=self._now())
        log.info("model_switched", to=target.model.label)
        return Switched(old, target.model, made + await self._sweep(target), compared)

    async def back(self, build: Build, *, at_once: bool = False) -> Switched:
        """Go back to the model that counted before; the vectors it lacks are made first, or afterwards (`at_once`).

        Raises NotFound if there is none, because its vectors were dropped or nothing was ever switched.
        """
        models = await self._models.all()
        old = next((model for model in models if model.role == "active"), None)
        before = next((model for model in models if model.role == "previous"), None)
        if before is None:
            raise NotFound("There is no previous model to go back to.", hint="`folklore embeddings status` shows all.")
        target = Target(before, build(choice_of(before)))
        try:
            if not at_once:
                await self._check(target)
            made = 0 if at_once else await self._fill(target)
            await self._models.switch(before.id, now=self._now())
            return Switched(old, before, made + await self._sweep(target), None)
        finally:
            await target.embedder.close()

    async def drop(self, model: KnownModel) -> int:
        """Delete a generation that does not count; how many vectors it had. Raises Conflict for the one that does."""
        if model.since is not None and (self._now() - model.since).total_seconds() < 5 * NOTICED_WITHIN:
            raise Conflict("This model counted a moment ago; somebody may still ask by it.", hint="Wait a little.")
        await self._models.retire(model.id, now=self._now())
        dropped = 0
        for namespace in await self._namespaces():
            while gone := await self._models.drop_vectors(namespace, model.id, size=_DROPPED_AT_ONCE):
                dropped += gone
                self._tell(dropped, f"{dropped:,} vectors dropped")
        await self._models.forget(model.id)
        return dropped

    async def _check(self, target: Target) -> None:
        found = await known(target.embedder)
        if found.id != target.model.id or not _same(target.model, found):
            raise FolkloreError(
                f"The model behind {target.model.label} is not the one its vectors were made with.",
                hint="Switch to it anew: `folklore embeddings switch`.",
            )

    async def _fill(self, target: Target) -> int:
        backfill = Backfill(self._debts, target.embedder, target.model.id, now=self._now, pace=self._pace)
        made = 0
        for _ in range(_ROUNDS):
            filled = await backfill.fill(await self._namespaces(), self._tell)
            made += filled.paid
            if filled.paid <= self._pace.batch:
                break
        return made

    async def _sweep(self, target: Target) -> int:
        """Make what was stored by the old model until every server noticed, and look once more after that."""
        backfill = Backfill(self._debts, target.embedder, target.model.id, now=self._now, pace=self._pace)
        made, waited = 0, 0.0
        try:
            while True:
                made += (await backfill.fill(await self._namespaces())).paid
                if waited >= _SWEEP:
                    break
                await asyncio.sleep(1.0)
                waited += 1.0
        except EmbedderUnavailable as error:  # the switch is done; what is owed now is debt as any other
            log.warning("not_swept", reason=error.message)
        return made

    async def _namespaces(self) -> list[UUID]:
        return [notebook.id for notebook in await self._library.namespaces.find(None)]


async def target_of(choice: ModelChoice, models: Models, build: Build) -> Target:
    """The model that a choice leads to, reached and measured.

    One whose vectors are here but that answers another way now is another model of the same name, and gets a revision
    of its own. Raises EmbedderUnavailable, ConfigInvalid.
    """
    rows = {model.id: model for model in await models.all()}
    for number in range(1, 100):
        embedder = build(choice if number == 1 else replace(choice, revision=str(number)))
        try:
            model = await known(embedder)
        except BaseException:
            await embedder.close()
            raise
        row = rows.get(model.id)
        if row is None or _same(row, model):
            return Target(model if row is None else row, embedder)
        await embedder.close()
    raise Conflict("There are too many models of this name.", hint="Drop some: `folklore embeddings drop`.")


def _same(one: KnownModel, other: KnownModel) -> bool:
    return one.probe is None or other.probe is None or alike(one.probe, other.probe) >= SAME_MODEL


@dataclass(frozen=True, slots=True)
class Held:
    """What a namespace holds in one model, and which way a search goes through it."""

    namespace: str
    model: KnownModel
    coverage: Coverage
    path: str


async def holdings(library: MemoryContext, models: Models, debts: Debts) -> tuple[Sequence[KnownModel], Sequence[Held]]:
    """Every model, and what each namespace has of those with a role or a vector."""
    rows = await models.all()
    notebooks = await library.namespaces.find(None)
    indexed = await models.paths()
    held = []
    for model in rows:
        coverage = await debts.coverage([notebook.id for notebook in notebooks], model.id)
        for notebook in notebooks:
            found = coverage.get(notebook.id, Coverage(0, 0))
            if model.role is None and not found.embedded:
                continue
            by_index = any(str(notebook.id) in path and str(model.id) in path for path in indexed)
            held.append(Held(notebook.name, model, found, "hnsw" if by_index else "exact"))
    return rows, held
