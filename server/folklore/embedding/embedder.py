"""What every embedding model looks like to the rest of Folklore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol
from uuid import NAMESPACE_URL, UUID, uuid5

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Model:
    """Which model made a vector. Its id follows from provider, name and dimension: every process derives the same."""

    provider: str
    name: str
    dimensions: int
    # How much its evidence counts against that of words: 1 for a model that reads in context.
    weight: float = 1.0
    # Whether the words of a question can be weighed: where tokens are averaged, not where they are read in context.
    weighs_words: bool = False

    @property
    def id(self) -> UUID:
        """The key of this model's vectors; vectors of different ids never meet in one comparison."""
        return _id(self.provider, self.name, self.dimensions)


@cache
def _id(provider: str, name: str, dimensions: int) -> UUID:
    return uuid5(NAMESPACE_URL, f"folklore:embedding:{provider}/{name}/{dimensions}")


class Embedder(Protocol):
    """Turns text into unit vectors."""

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

    async def close(self) -> None:
        """Let go of connections."""
        ...
