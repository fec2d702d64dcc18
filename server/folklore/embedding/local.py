"""Embedder of models that run in this process: MiniLM, and those of fastembed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

from folklore.embedding.protocol import PROBE, Model, ModelChoice
from folklore.lazy import Lazy
from folklore.lazy import numpy as np

if TYPE_CHECKING:
    from folklore.embedding import vectors
    from folklore.embedding.vectors import Vectors
else:  # which import numpy: a process that embeds nothing should not
    vectors = Lazy("folklore.embedding.vectors")

# About 0.2 s of one processor with MiniLM: the end of the process waits for one batch.
_BATCH_CHARACTERS = 2_000


class LocalModel(Protocol):
    """A loaded model. Raises EmbedderUnavailable."""

    def __call__(self, texts: Sequence[str], *, question: bool = False) -> Vectors:
        """Return a vector for each text, or for each question."""
        ...


class LocalEmbedder:
    """Loads a model on first use. Texts are embedded in one thread, questions in another, which never waits for them.

    Batches of several callers take turns.
    """

    weighs_words = False

    def __init__(self, choice: ModelChoice, load: Callable[[], LocalModel], max_tokens: int | None) -> None:
        self._choice = choice
        self._load = load
        self._max_tokens = max_tokens
        self._texts = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        self._questions = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed-question")
        self._loading: asyncio.Future[LocalModel] | None = None
        self._fingerprint: Vectors | None = None

    async def model(self) -> Model:
        """Return the model, with the dimensions of its fingerprint."""
        return self._choice.model(len(await self.probe()))

    async def probe(self) -> Vectors:
        """Return the fingerprint, measured once: the loaded files cannot change."""
        if self._fingerprint is None:
            self._fingerprint = await self._embed_soon(self._choice.document_prefix + PROBE, question=False)
        return self._fingerprint

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors; that of a long text is the mean of its pieces."""
        limit = vectors.character_limit(self._max_tokens, self._choice.document_prefix)
        pieces = [vectors.split_text(text, limit) for text in texts]
        flat = [self._choice.document_prefix + piece for parts in pieces for piece in parts]
        model, loop = await self._loaded(), asyncio.get_running_loop()
        made = [await loop.run_in_executor(self._texts, model, batch) for batch in _batches(flat)]
        return vectors.average_pieces(vectors.normalized(np.concatenate(made)), pieces)

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> Vectors:
        """Return the vector of the whole question; the model weighs its words itself."""
        return await self._embed_soon(self._choice.query_prefix + " ".join(pieces), question=True)

    async def close(self) -> None:
        """End the threads."""
        for threads in (self._texts, self._questions):
            threads.shutdown(wait=False, cancel_futures=True)

    async def _embed_soon(self, text: str, *, question: bool) -> Vectors:
        embed = partial(await self._loaded(), [text], question=question)
        vector: Vectors = await asyncio.get_running_loop().run_in_executor(self._questions, embed)
        unit: Vectors = vectors.normalized(vector)[0]
        return unit

    async def _loaded(self) -> LocalModel:
        if self._loading is None or (self._loading.done() and self._loading.exception()):
            self._loading = asyncio.get_running_loop().run_in_executor(self._questions, self._load)
        return await asyncio.shield(self._loading)


def _batches(texts: Sequence[str]) -> list[list[str]]:
    """Return the texts in batches of a few thousand characters."""
    batches: list[list[str]] = [[]]
    size = 0
    for text in texts:
        if batches[-1] and size + len(text) > _BATCH_CHARACTERS:
            batches.append([])
            size = 0
        batches[-1].append(text)
        size += len(text)
    return batches
