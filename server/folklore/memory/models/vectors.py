"""From texts to vectors that know which model made them."""

from __future__ import annotations

from collections.abc import Sequence

from folklore.db.stores.memories import Vectors
from folklore.db.stores.models import KnownModel
from folklore.embedding.protocol import Embedder


async def vectors_of(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """The vectors of a batch of texts. Raises EmbedderUnavailable."""
    vectors = await embedder.embed(texts)
    # A text without a single known token has no direction; a zero vector would be at no distance from anything.
    return Vectors(by=await known(embedder), vectors=[vector if vector.any() else None for vector in vectors])


async def known(embedder: Embedder) -> KnownModel:
    """The embedder's model as the store writes it down. Raises EmbedderUnavailable."""
    model = await embedder.model()
    return KnownModel(
        id=model.id,
        provider=model.provider,
        name=model.name,
        dimensions=model.dimensions,
        url=model.url,
        asked_dimensions=model.asked_dimensions,
        query_prefix=model.query_prefix,
        document_prefix=model.document_prefix,
        revision=model.revision,
        probe=await embedder.probe(),
    )
