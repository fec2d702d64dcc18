"""Which model recall and store go by: the one the store says, whatever the settings of this process name.

A vector is only ever compared with those of its own model, so a question must be embedded by the model of the vectors.
Which one that is stands in the database and may change while servers run (switch.py). They notice without asking
for it: the statement that begins a recall tells it, and a store looks when nothing told it for a moment.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from uuid import UUID

import numpy as np
import structlog
from numpy.typing import NDArray

from folklore.db.stores.models import KnownModel, Models
from folklore.embedding.protocol import SAME_MODEL, Embedder, Model, ModelChoice
from folklore.errors import DatabaseUnavailable, EmbedderUnavailable, FolkloreError

log = structlog.get_logger(__name__)

Build = Callable[[ModelChoice], Embedder]

# How long what was heard of the active model holds, in seconds.
NOTICED_WITHIN = 2.0


class Generations:
    """Holds an embedder for each model this process ever needed; one of them is the current one."""

    def __init__(
        self, models: Models | None, wanted: ModelChoice | None, configured: Embedder | None, build: Build
    ) -> None:
        self._models = models
        self._wanted = wanted
        self._configured = configured
        self._build = build
        self._current = configured
        self._active: UUID | None = None
        self._heard_at = float("-inf")
        self._held: dict[UUID, Embedder] = {}
        self._changing = asyncio.Lock()
        self.mismatch: str | None = None

    @classmethod
    def fixed(cls, embedder: Embedder | None) -> Generations:
        """One embedder, whatever the store says."""

        def none(choice: ModelChoice) -> Embedder:
            raise EmbedderUnavailable(f"There is no way to {choice.label} from here.")

        return cls(None, None, embedder, none)

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the model that counts, as far as is known; None when embedding is switched off."""
        return self._current

    async def look(self) -> None:
        """Ask which model counts, unless it was heard a moment ago; what is not there to be asked is told later."""
        if self._models is None or self._configured is None or monotonic() - self._heard_at < NOTICED_WITHIN:
            return
        try:
            await self.saw(await self._models.active())
        except DatabaseUnavailable as error:  # whoever wanted to know is about to find out himself
            log.info("active_model_unknown", reason=error.message)

    async def saw(self, active: UUID | None) -> None:
        """The store goes by this model. Costs nothing while it is the same; else one statement."""
        if self._models is None or self._configured is None:
            return
        if active != self._active:
            async with self._changing:
                if active != self._active:
                    await self._follow(await self._models.all())
        self._heard_at = monotonic()

    async def let_go(self) -> None:
        """Close the embedders that were made here, not the one that was brought."""
        for embedder in self._held.values():
            await embedder.close()

    async def close(self) -> None:
        """Close every embedder."""
        await self.let_go()
        if self._configured is not None:
            await self._configured.close()

    async def _follow(self, models: Sequence[KnownModel]) -> None:
        active = next((model for model in models if model.role == "active"), None)
        self._active = None if active is None else active.id
        self.mismatch = None
        if active is None or self._models is None:
            self._current = self._configured
            return
        if not self._names(active):
            self.mismatch = self._explained(active, models)
            named = None if self._wanted is None else self._wanted.label
            tell = log.info if self.mismatch is None else log.warning
            tell("settings_name_another_model", active=active.label, settings=named)
        self._current = Checked(self._embedder_of(active), active, self._models)

    def _names(self, model: KnownModel) -> bool:
        """Whether the settings mean this model."""
        wanted = self._wanted
        return wanted is not None and (
            (wanted.provider, wanted.name, wanted.query_prefix, wanted.document_prefix)
            == (model.provider, model.name, model.query_prefix, model.document_prefix)
            and wanted.dimensions in (None, model.dimensions)
        )

    def _explained(self, active: KnownModel, models: Sequence[KnownModel]) -> str | None:
        """What to tell with every answer; nothing while settings merely lag behind a switch, or run ahead of one."""
        if any(model.role in ("previous", "next") and self._names(model) for model in models):
            return None
        label = "another model" if self._wanted is None else self._wanted.label
        return (
            f"The settings name {label}, but the vectors here are of {active.label}, which recall and store go by. "
            "Run `folklore embeddings switch`, or set embedding back."
        )

    def _embedder_of(self, model: KnownModel) -> Embedder:
        if self._configured is not None and self._names(model) and not model.revision:
            return self._configured
        if model.id not in self._held:
            try:
                self._held[model.id] = self._build(choice_of(model))
            except FolkloreError as error:
                return Missing(model, error)
        return self._held[model.id]


class Checked:
    """An embedder that may speak for one model of the store only: the same id, the same fingerprint."""

    def __init__(self, inner: Embedder, model: KnownModel, models: Models) -> None:
        self._inner = inner
        self._known = model
        self._models = models
        self._compared: NDArray[np.float32] | None = None

    @property
    def weighs_words(self) -> bool:
        """Whether the words of a question can be weighed."""
        return self._inner.weighs_words

    async def model(self) -> Model:
        """The model. Raises EmbedderUnavailable for one that is not the store's."""
        model = await self._inner.model()
        if model.id != self._known.id:
            raise EmbedderUnavailable(
                f"The service answers with {model.dimensions} dimensions; the vectors of {self._known.label} here have "
                f"{self._known.dimensions}.",
                hint="Check embedding.model and embedding.dimensions, or run `folklore embeddings switch`.",
            )
        return model

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors, if the model is still the one the others were made with."""
        vectors = await self._inner.embed(texts)
        await self._compare()
        return vectors

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """A vector, likewise."""
        vector = await self._inner.embed_question(pieces, weights)
        await self._compare()
        return vector

    async def probe(self) -> NDArray[np.float32]:
        """The fingerprint measured last."""
        return await self._inner.probe()

    async def close(self) -> None:
        """Nothing: the inner one is let go by who holds it."""

    async def _compare(self) -> None:
        probe = await self._inner.probe()
        if probe is self._compared:
            return
        if self._known.probe is None:
            await self._models.learn_probe(self._known.id, probe)
        elif (likeness := alike(self._known.probe, probe)) < SAME_MODEL:
            raise EmbedderUnavailable(
                f"The model behind {self._known.label} is another than the one that made the vectors here: their "
                f"fingerprints have a cosine of {likeness:.3f}.",
                hint="Bring the former model back, or run `folklore embeddings switch` to make the vectors anew.",
            )
        self._compared = probe


class Missing:
    """In place of a model that cannot be used from here; says why whenever it is asked."""

    weighs_words = False

    def __init__(self, model: KnownModel, reason: FolkloreError) -> None:
        self._error = EmbedderUnavailable(
            f"The vectors here are of {model.label}, which cannot be used: {reason.message}", hint=reason.hint
        )

    async def model(self) -> Model:
        """Raises EmbedderUnavailable."""
        raise self._error

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises EmbedderUnavailable."""
        raise self._error

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """Raises EmbedderUnavailable."""
        raise self._error

    async def probe(self) -> NDArray[np.float32]:
        """Raises EmbedderUnavailable."""
        raise self._error

    async def close(self) -> None:
        """Nothing to let go of."""


def choice_of(model: KnownModel) -> ModelChoice:
    """The model as an embedder is built from it."""
    return ModelChoice(
        model.provider,
        model.name,
        model.url,
        model.asked_dimensions,
        model.query_prefix,
        model.document_prefix,
        model.revision,
    )


def alike(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """The cosine of two fingerprints; -1 where their dimensions differ, which no two of one model do."""
    return float(one @ other) if one.shape == other.shape else -1.0
