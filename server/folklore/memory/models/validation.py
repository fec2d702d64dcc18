"""Validation of a new embedding generation against the active one, over a sample of the memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from folklore.db.stores.embeddings import Embeddings
from folklore.embedding.protocol import Embedder
from folklore.errors import EmbedderUnavailable

_SAMPLE = 60
_MOST_SAMPLED = 120
_NEAREST = 10
_QUERY_WORDS = 12
# From a smaller sample nothing is concluded, and so many are taken of each namespace at least.
_SMALLEST = 5

# A namespace, a memory in it, and the memory's first words as a query.
Sampled = tuple[UUID, UUID, str]


@dataclass(frozen=True, slots=True)
class Validation:
    """Of `sample` memories, the number that each generation finds among the ten nearest to their own first words.

    `shared` is the mean share of the ten that both generations have in common. `old` and `shared` are None if the old
    model could not be reached.
    """

    sample: int
    new: int
    old: int | None
    shared: float | None

    @property
    def passed(self) -> bool:
        """True if new >= old - max(1, old / 10); without the old model, if 2 · new >= sample."""
        if self.sample < _SMALLEST:
            return True
        if self.old is None:
            return 2 * self.new >= self.sample
        return self.new >= self.old - max(1, self.old // 10)


@dataclass(frozen=True, slots=True)
class Generation:
    """The embeddings of one model, and the embedder of queries to them."""

    model: UUID
    embedder: Embedder


async def validate(embeddings: Embeddings, namespaces: Sequence[UUID], new: Generation, old: Generation) -> Validation:
    """Compare two generations over a sample of these namespaces. Raises EmbedderUnavailable if the new model fails."""
    each = max(_SMALLEST, _SAMPLE // max(len(namespaces), 1))
    sample: list[Sampled] = []
    for namespace in namespaces[:_SAMPLE]:
        taken = await embeddings.sample(namespace, new.model, old.model, most=each)
        sample += [(namespace, id_, " ".join(text.split()[:_QUERY_WORDS])) for id_, text in taken]
    del sample[_MOST_SAMPLED:]
    found_new = await _nearest(embeddings, sample, new)
    number_new = _hits(sample, found_new)
    try:
        found_old = await _nearest(embeddings, sample, old)
    except EmbedderUnavailable:
        return Validation(len(sample), number_new, None, None)
    shared = [len(one & other) / max(len(other), 1) for one, other in zip(found_new, found_old, strict=True)]
    return Validation(len(sample), number_new, _hits(sample, found_old), sum(shared) / max(len(shared), 1))


async def _nearest(embeddings: Embeddings, sample: Sequence[Sampled], generation: Generation) -> list[frozenset[UUID]]:
    """Return the nearest memories to each query of the sample."""
    found = []
    for namespace, _, query in sample:
        words = query.split()
        vector = await generation.embedder.embed_question(words, [1.0] * len(words))
        near = await embeddings.nearest(namespace, generation.model, vector, most=_NEAREST) if vector.any() else ()
        found.append(frozenset(near))
    return found


def _hits(sample: Sequence[Sampled], found: Sequence[frozenset[UUID]]) -> int:
    return sum(id_ in near for (_, id_, _), near in zip(sample, found, strict=True))
