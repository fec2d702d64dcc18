"""Does a new generation of vectors find what the old one finds? Asked of a sample before recall goes by it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.db.stores.models import Models
from folklore.embedding.protocol import Embedder
from folklore.errors import EmbedderUnavailable

SAMPLE = 60
_NEAREST = 10
_WORDS = 12
# Of a sample this small nothing follows.
_TOO_FEW = 5


@dataclass(frozen=True, slots=True)
class Agreement:
    """Of `sample` memories, asked for by their own first words, how many each generation finds among its ten nearest.

    `shared` is the mean share of the ten that both have in common. `old` and `shared` are None when the old model
    cannot be asked any more.
    """

    sample: int
    new: int
    old: int | None
    shared: float | None

    @property
    def holds(self) -> bool:
        """The new one finds at least as many but for a tenth; half of all where the old one cannot be asked."""
        if self.sample < _TOO_FEW:
            return True
        if self.old is None:
            return 2 * self.new >= self.sample
        return self.new >= self.old - max(1, self.old // 10)


@dataclass(frozen=True, slots=True)
class Side:
    """One generation: its model's id and who embeds questions for it."""

    model: UUID
    embedder: Embedder


async def agreement(
    models: Models,
    namespaces: Sequence[UUID],
    new: Side,
    old: Side,
) -> Agreement:
    """Compare two generations over a sample of these namespaces. Raises EmbedderUnavailable if the new one is down."""
    each = max(_TOO_FEW, SAMPLE // max(len(namespaces), 1))
    sample = []
    for namespace in namespaces[:SAMPLE]:
        taken = await models.sample(namespace, new.model, old.model, size=each, salt=str(new.model))
        sample += [(namespace, id_, " ".join(text.split()[:_WORDS])) for id_, text in taken]
    sample = sample[: 2 * SAMPLE]
    found_new = found_old = 0
    common: list[float] = []
    old_answers = True
    for namespace, id_, question in sample:
        nearest = await _nearest(models, namespace, new, question)
        found_new += id_ in nearest
        if old_answers:
            try:
                before = await _nearest(models, namespace, old, question)
            except EmbedderUnavailable:
                old_answers = False
            else:
                found_old += id_ in before
                common.append(len(nearest & before) / max(len(before), 1))
    if not old_answers or not sample:
        return Agreement(len(sample), found_new, None, None)
    return Agreement(len(sample), found_new, found_old, sum(common) / len(common))


async def _nearest(models: Models, namespace: UUID, side: Side, question: str) -> frozenset[UUID]:
    pieces = question.split()
    vector = await side.embedder.embed_question(pieces, [1.0] * len(pieces))
    if not vector.any():
        return frozenset()
    return await models.nearest(namespace, side.model, vector, size=_NEAREST)
