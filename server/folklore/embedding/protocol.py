"""What every embedding model looks like to the rest of Folklore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol
from uuid import NAMESPACE_URL, UUID, uuid5

import numpy as np
from numpy.typing import NDArray

# What a model makes of this text is its fingerprint: prose, a name and code, so that any other model turns elsewhere.
PROBE = "The lighthouse keeper Ada mended the lamp before the fog came in: lamp.repair(by='Ada') # 1815"
# Below this cosine two fingerprints are of two models. The same weights differ by 0.0001 from call to call, quantised
# ones by up to 0.02; models that were merely trained alike by far more.
SAME_MODEL = 0.98


@dataclass(frozen=True, slots=True)
class Model:
    """Which model made a vector, and what it takes.

    Its id follows from provider, name, dimension, prefixes and revision: every process derives the same.
    """

    provider: str
    name: str
    dimensions: int
    # How much its evidence counts against that of words: 1 for a model that reads in context.
    weight: float = 1.0
    # Texts of more lexemes than this it blurs, in proportion: what averages tokens says little about any of many.
    blurs_beyond: float | None = None
    # Put before a question and before a text, for models that were trained so.
    query_prefix: str = ""
    document_prefix: str = ""
    # Tells models apart that bear one name.
    revision: str = ""
    # The longest text it reads whole, in tokens, where that is known; how many texts go in one call.
    max_tokens: int | None = None
    batch_size: int = 256
    # Where it is reached, without a key, and the size it is asked for, if it is.
    url: str | None = None
    asked_dimensions: int | None = None

    @property
    def id(self) -> UUID:
        """The key of this model's vectors; vectors of different ids never meet in one comparison."""
        return _id(self.provider, self.name, self.dimensions, self.query_prefix, self.document_prefix, self.revision)

    @property
    def label(self) -> str:
        """Its name for people."""
        return f"{self.provider}/{self.name}{f' ({self.revision})' if self.revision else ''}"


@cache
def _id(provider: str, name: str, dimensions: int, query_prefix: str, document_prefix: str, revision: str) -> UUID:
    parts = [f"{provider}/{name}/{dimensions}"]
    if query_prefix or document_prefix or revision:
        parts += [repr(query_prefix), repr(document_prefix), revision]
    return uuid5(NAMESPACE_URL, "folklore:embedding:" + "|".join(parts))


class Embedder(Protocol):
    """Turns text into unit vectors of one model, the same for as long as it lives."""

    @property
    def weighs_words(self) -> bool:
        """Whether the words of a question can be weighed: where tokens are averaged, not read in context."""
        ...

    async def model(self) -> Model:
        """The model, loaded or reached if need be. Raises EmbedderUnavailable."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimensions), float32, length 1 (0 for a text with no known token).

        Raises EmbedderUnavailable.
        """
        ...

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """The vector (dimensions,) of a question given in pieces between white space.

        A model that averages its tokens lets each piece count by its weight; one that reads in context ignores them.
        Raises EmbedderUnavailable.
        """
        ...

    async def probe(self) -> NDArray[np.float32]:
        """The vector (dimensions,) of PROBE, the model's fingerprint: the one measured last, measured if there is none.

        Raises EmbedderUnavailable.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows (n, dimensions) scaled to length 1, in place; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return vectors
