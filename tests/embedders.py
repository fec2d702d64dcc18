"""Embedders for tests: deterministic, unavailable, waiting."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from folklore.embedding.protocol import PROBE, Model
from folklore.errors import EmbedderUnavailable

MODEL = Model("fake", "by-letter", 8)


@dataclass
class ByLetter:
    """Counts eight letters in each text: deterministic, without a model file."""

    weighs_words = False

    calls: list[list[str]] = field(default_factory=list)

    async def model(self) -> Model:
        return MODEL

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        vectors = np.zeros((len(texts), MODEL.dimensions), dtype=np.float32)
        for place, text in enumerate(texts):
            vectors[place] = [text.lower().count(letter) for letter in "aeinorst"]
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    async def embed_question(
        self, pieces: Sequence[str], weights: Sequence[float]
    ) -> NDArray[np.float32]:
        del weights
        vector: NDArray[np.float32] = (await self.embed([" ".join(pieces)]))[0]
        return vector

    async def probe(self) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = (await ByLetter().embed([PROBE]))[0]
        return vector

    async def close(self) -> None: ...


class Down(ByLetter):
    """Fails before the model is known, like a service that does not answer."""

    async def model(self) -> Model:
        raise EmbedderUnavailable("The embedding service does not answer.")


class DownForTexts(ByLetter):
    """Knows its model and fails for texts, like a service whose key has expired."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise EmbedderUnavailable("The embedding service refused the request.")


@dataclass
class Waiting(ByLetter):
    """Embeds after `go` is set."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.set()
        await self.go.wait()
        return await super().embed(texts)
