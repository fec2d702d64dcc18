"""The active embedding model: the one that made the embeddings of the database, whatever model the settings name.

Vectors of different models cannot be compared, so queries and new memories are embedded by the active model. A switch
(switch.py) changes it while servers run. A server learns of that at no cost: the statement that begins a recall returns
the id of the active model, and a store reads it if nothing has within REFRESH_SECONDS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import mul
from time import monotonic
from uuid import UUID

from folklore.db.stores.memories import Embedded, Vectors
from folklore.db.stores.models import KnownModel, Models
from folklore.embedding import SAME_MODEL, Embedder, Model, ModelChoice, passage_rule
from folklore.errors import DatabaseUnavailable, EmbedderUnavailable, FolkloreError
from folklore.lazy import NDArray, numpy as np
from folklore.log import get_logger
from folklore.text.cues import as_text
from folklore.text.passages import passages

log = get_logger(__name__)

Build = Callable[[ModelChoice], Embedder]

# The reason in answers and in the status where there is no embedder.
SWITCHED_OFF = "Embedding is switched off (embedding.provider: none)."
# A store reads the active model again after so many seconds.
REFRESH_SECONDS = 2.0


async def embed_texts(
    embedder: Embedder, texts: Sequence[str], cues: Sequence[Sequence[str]] = ()
) -> Vectors:
    """Embed a batch of texts, long ones in passages too, with the cues of each, if any. Raises EmbedderUnavailable.

    A text without a word that the model knows has None; such a passage is left out, and so are such cues.
    """
    model = await model_of(embedder)
    ranges = [passages(text, *passage_rule(model.name, len(text))) for text in texts]
    parts = [
        text[begin:end]
        for text, spans in zip(texts, ranges, strict=True)
        for begin, end in spans
    ]
    phrases = {index: as_text(item) for index, item in enumerate(cues) if item}
    vectors = await embedder.embed([*texts, *phrases.values(), *parts])
    of_cues = dict(zip(phrases, vectors[len(texts) :], strict=False))
    following = iter(vectors[len(texts) + len(phrases) :])
    items = [
        _embedded(vector, spans, following)
        for vector, spans in zip(vectors, ranges, strict=False)
    ]
    return Vectors(
        by=model,
        vectors=[
            item and replace(item, cues=vector)
            if (vector := of_cues.get(index)) is not None and vector.any()
            else item
            for index, item in enumerate(items)
        ],
    )


def _embedded(
    vector: NDArray[np.float32],
    ranges: Sequence[tuple[int, int]],
    following: Iterator[NDArray[np.float32]],
) -> Embedded | None:
    """Return a text's vector with those of its passages, the next ones."""
    # A zero vector has no direction and so no cosine with any other.
    passages = [
        (range_, passage) for range_ in ranges if (passage := next(following)).any()
    ]
    if not vector.any():
        return None
    return Embedded(
        vector, [range_ for range_, _ in passages], [passage for _, passage in passages]
    )


async def model_of(embedder: Embedder) -> KnownModel:
    """Return an embedder's model with its fingerprint, as the database records it. Raises EmbedderUnavailable."""
    model = await embedder.model()
    shared = {field.name for field in fields(Model)} & {
        field.name for field in fields(KnownModel)
    }
    probe: Sequence[float] = (await embedder.probe()).tolist()
    return KnownModel(
        model.id, **{name: getattr(model, name) for name in shared}, probe=probe
    )


def choice_of(model: KnownModel) -> ModelChoice:
    """Return the choice that builds an embedder of this model."""
    prefixes = model.query_prefix, model.document_prefix
    return ModelChoice(
        model.provider,
        model.name,
        model.url,
        model.asked_dimensions,
        *prefixes,
        model.revision,
    )


def fingerprint_cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of two fingerprints; -1 if their dimensions differ."""
    return sum(map(mul, one, other)) if len(one) == len(other) else -1.0


@dataclass(frozen=True, slots=True)
class ModelSource:
    """The models of a database, the one that the settings name, and the function that builds an embedder."""

    models: Models
    configured: ModelChoice | None
    build: Build
    # The settings leave the choice: `configured` is for a new database, and any active model is the right one.
    auto: bool = False


class ActiveModel:
    """Embedder of the active model, replaced when another model becomes active.

    Without a source, `embedder` is used whatever model is active; without an embedder, embedding is switched off.
    """

    def __init__(
        self, embedder: Embedder | None, source: ModelSource | None = None
    ) -> None:
        self._configured = embedder
        self._source = None if embedder is None else source
        self._current = embedder
        self._id: UUID | None = None
        self._known: KnownModel | None = None
        self._read_at = float("-inf")
        self._built: dict[UUID, Embedder] = {}
        self._changing = asyncio.Lock()
        # A sentence for every answer, while the settings name a model that has no part in this database.
        self.mismatch: str | None = None

    @property
    def embedder(self) -> Embedder | None:
        """The embedder of the active model as known now; None if embedding is switched off."""
        return self._current

    @property
    def configured(self) -> str | None:
        """The name of the model in the settings; None if embedding is switched off."""
        if self._source is None or (choice := self._source.configured) is None:
            return None
        return f"auto ({choice.label})" if self._source.auto else choice.label

    async def refresh(self) -> None:
        """Read the active model, unless it was read within REFRESH_SECONDS; an unreachable database is logged."""
        if self._source is None or monotonic() - self._read_at < REFRESH_SECONDS:
            return
        try:
            await self.observe(await self._source.models.active())
        except (
            DatabaseUnavailable
        ) as error:  # the caller's own statement is about to fail the same way
            log.info("active_model_unknown", reason=error.message)

    async def observe(self, active: UUID | None) -> None:
        """Take note of the active model's id; one statement if it has changed, none otherwise."""
        if self._source is None:
            return
        if active != self._id:
            async with self._changing:
                if active != self._id:
                    self._follow(self._source, await self._source.models.read())
        self._read_at = monotonic()

    async def known(self) -> KnownModel | None:
        """Return the active model as the database records it, without its embedder; None before the first embedding."""
        await self.refresh()
        return self._known

    async def close_built(self) -> None:
        """Close the embedders that were built here, but not the configured one."""
        for embedder in self._built.values():
            await embedder.close()

    async def close(self) -> None:
        """Close every embedder."""
        await self.close_built()
        if self._configured is not None:
            await self._configured.close()

    def _follow(self, source: ModelSource, models: Sequence[KnownModel]) -> None:
        active = next((model for model in models if model.role == "active"), None)
        self._known = active
        self._id = None if active is None else active.id
        self.mismatch = None
        if active is None:
            self._current = self._configured
            return
        if not source.auto and not _names(source.configured, active):
            self.mismatch = _mismatch(source.configured, active, models)
            configured = None if source.configured is None else source.configured.label
            if self.mismatch is None:
                write = log.info
            else:
                write = log.warning
            write(
                "settings_name_another_model", active=active.label, settings=configured
            )
        self._current = VerifiedEmbedder(
            self._embedder_of(source, active), active, source.models
        )

    def _embedder_of(
        self, source: ModelSource, model: KnownModel
    ) -> Embedder | FolkloreError:
        if (
            self._configured is not None
            and _names(source.configured, model)
            and not model.revision
        ):
            return self._configured
        if model.id not in self._built:
            try:
                self._built[model.id] = source.build(choice_of(model))
            except FolkloreError as error:
                return error
        return self._built[model.id]


def _names(configured: ModelChoice | None, model: KnownModel) -> bool:
    return configured is not None and (
        (
            configured.provider,
            configured.name,
            configured.query_prefix,
            configured.document_prefix,
        )
        == (model.provider, model.name, model.query_prefix, model.document_prefix)
        and configured.dimensions in (None, model.dimensions)
    )


def _mismatch(
    configured: ModelChoice | None, active: KnownModel, models: Sequence[KnownModel]
) -> str | None:
    """Explain that the settings name another model; None while they are merely behind or ahead of a switch."""
    if any(
        model.role in ("previous", "next") and _names(configured, model)
        for model in models
    ):
        return None
    label = "another model" if configured is None else configured.label
    return (
        f"The settings name {label}, but the embeddings here are of {active.label}, which recall and store use. "
        "Run `folklore embeddings switch`, or change embedding in the settings back."
    )


class VerifiedEmbedder:
    """An embedder that raises EmbedderUnavailable unless it has the id and the fingerprint of one known model.

    If the model could not be built, `inner` is the error, and every method raises EmbedderUnavailable with its reason.
    """

    def __init__(
        self, inner: Embedder | FolkloreError, model: KnownModel, models: Models
    ) -> None:
        self._inner = inner
        self._known = model
        self._models = models
        self._verified: NDArray[np.float32] | None = (
            None  # the fingerprint compared last
        )
        self._asked: dict[
            str, asyncio.Future[NDArray[np.float32]]
        ] = {}  # questions that are being embedded

    @property
    def weighs_words(self) -> bool:
        """The inner embedder's."""
        return not isinstance(self._inner, FolkloreError) and self._inner.weighs_words

    async def model(self) -> Model:
        """Return the model."""
        model = await self._embedder().model()
        if model.id != self._known.id:
            raise EmbedderUnavailable(
                f"The service answers with {model.dimensions} dimensions; the embeddings of {self._known.label} here "
                f"have {self._known.dimensions}.",
                hint="Check embedding.model and embedding.dimensions, or run `folklore embeddings switch`.",
            )
        return model

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed texts."""
        vectors = await self._embedder().embed(texts)
        await self._verify()
        return vectors

    async def embed_question(
        self, pieces: Sequence[str], weights: Sequence[float]
    ) -> NDArray[np.float32]:
        """Embed a query. A model that does not weigh words is asked once for searches at the same time."""
        question = " ".join(pieces)
        embedder = self._embedder()
        if embedder.weighs_words:
            vector = await embedder.embed_question(pieces, weights)
        else:
            if question not in self._asked:
                task = self._asked[question] = asyncio.ensure_future(
                    embedder.embed_question(pieces, weights)
                )
                task.add_done_callback(lambda _done: self._asked.pop(question, None))
            # A search that is cancelled leaves the request to the other.
            vector = await asyncio.shield(self._asked[question])
        await self._verify()
        return vector

    async def probe(self) -> NDArray[np.float32]:
        """Return the fingerprint measured last."""
        return await self._embedder().probe()

    async def close(self) -> None:
        """Do nothing: ActiveModel closes the inner embedder."""

    def _embedder(self) -> Embedder:
        if isinstance(self._inner, FolkloreError):
            raise EmbedderUnavailable(
                f"The embeddings here are of {self._known.label}, which cannot be used: {self._inner.message}",
                hint=self._inner.hint,
            )
        return self._inner

    async def _verify(self) -> None:
        probe = await self._embedder().probe()
        if probe is self._verified:
            return
        if self._known.probe is None:
            await self._models.set_probe(id=self._known.id, probe=probe.tolist())
        elif (
            cosine := fingerprint_cosine(self._known.probe, probe.tolist())
        ) < SAME_MODEL:
            raise EmbedderUnavailable(
                f"The model behind {self._known.label} is not the one that made the embeddings here: the cosine of "
                f"their fingerprints is {cosine:.3f}.",
                hint="Bring the former model back, or run `folklore embeddings switch` to make the embeddings again.",
            )
        self._verified = probe
