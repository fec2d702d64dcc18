"""Protocols of embedding models and rerankers, and the values that identify a model. Imports no numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import NAMESPACE_URL, UUID, uuid5

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# The vector of this text is a model's fingerprint. It holds prose, a name and code, so that models differ in it.
PROBE = "The lighthouse keeper Ada mended the lamp before the fog came in: lamp.repair(by='Ada') # 1815"
# Two fingerprints with a smaller cosine are of different models. The same weights differ by 0.0001 from call to call,
# quantised ones by up to 0.02, models with similar training by much more.
SAME_MODEL = 0.98


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Model to build an embedder for, without a key. `dimensions` is the requested size, None for the model's own."""

    provider: str
    name: str
    url: str | None = None
    dimensions: int | None = None
    query_prefix: str = ""
    document_prefix: str = ""
    revision: str = ""

    @property
    def label(self) -> str:
        """Name for people."""
        return f"{self.provider}/{self.name}"

    def model(self, dimensions: int) -> Model:
        """Return the model with the dimensions of its vectors."""
        query = self.query_prefix
        document = self.document_prefix
        return Model(
            self.provider,
            self.name,
            dimensions,
            query_prefix=query,
            document_prefix=document,
            revision=self.revision,
        )


@dataclass(frozen=True, slots=True)
class Model:
    """Identity and properties of the model that made a vector."""

    provider: str
    name: str
    dimensions: int
    # False for a model that averages tokens: the ranking has other weights for it.
    contextual: bool = True
    # Text before each question and before each memory, as the model was trained.
    query_prefix: str = ""
    document_prefix: str = ""
    # Distinguishes models of the same name.
    revision: str = ""
    # Address without a key, and the size named in requests, for services.
    url: str | None = None
    asked_dimensions: int | None = None

    @property
    def id(self) -> UUID:
        """Key of the model's vectors, the same in every process. Only vectors with equal ids are compared."""
        parts = [f"{self.provider}/{self.name}/{self.dimensions}"]
        if self.query_prefix or self.document_prefix or self.revision:
            parts += [
                repr(self.query_prefix),
                repr(self.document_prefix),
                self.revision,
            ]
        return uuid5(NAMESPACE_URL, "folklore:embedding:" + "|".join(parts))

    @property
    def label(self) -> str:
        """Name for people."""
        return f"{self.provider}/{self.name}{f' ({self.revision})' if self.revision else ''}"


class Embedder(Protocol):
    """Turns text into unit vectors of one model, the same during its whole life. Methods raise EmbedderUnavailable."""

    @property
    def weighs_words(self) -> bool:
        """True if `embed_question` uses its weights, which a model that reads in context ignores."""
        ...

    async def model(self) -> Model:
        """Return the model. Loads it, or calls its service, if necessary."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of shape (len(texts), dimensions) and length 1, or 0 for a text without a known token."""
        ...

    async def embed_question(
        self, pieces: Sequence[str], weights: Sequence[float]
    ) -> NDArray[np.float32]:
        """Return the vector (dimensions,) of a question that was split at white space, with a weight for each piece."""
        ...

    async def probe(self) -> NDArray[np.float32]:
        """Return the vector (dimensions,) of PROBE, the model's fingerprint, as measured last."""
        ...

    async def close(self) -> None:
        """Close connections and threads."""
        ...


class Reranker(Protocol):
    """Scores how well each of at most `pool` texts answers a question."""

    pool: int

    async def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return a finite score for each text (n,), in their order; more is better. Raises RerankerUnavailable."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...
