"""Embedder of models that run in this process: MiniLM, and those of fastembed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Protocol

from folklore.embedding import vectors
from folklore.embedding.protocol import PROBE, Model, ModelChoice
from folklore.embedding.vectors import Vectors
from folklore.lazy import numpy as np

# About 0.4 s of one processor with MiniLM: the end of the process waits for one batch. Smaller ones take longer in all.
_BATCH_CHARACTERS = 4_000
# Elsewhere than on Linux a thread cannot have a priority of its own.
_OWN_PRIORITY = sys.platform == "linux"
# What a container may use, by cgroup 2: microseconds of processor and of the period, the first of them perhaps "max".
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class LocalModel(Protocol):
    """A loaded model. Raises EmbedderUnavailable."""

    def __call__(self, texts: Sequence[str], *, question: bool = False) -> Vectors:
        """Return a vector for each text, or for each question."""
        ...


class LocalEmbedder:
    """Loads a model on first use. One thread embeds a few texts, another one questions, which never wait for texts.

    Several batches are embedded on the processors that are free, each by a thread of a low priority.
    """

    weighs_words = False

    def __init__(
        self,
        choice: ModelChoice,
        load: Callable[[], LocalModel],
        max_tokens: int | None,
    ) -> None:
        self._choice = choice
        self._load = load
        self._max_tokens = max_tokens
        self._texts = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        workers = 1  # fastembed has threads of its own
        if choice.provider == "minilm":
            workers = free_processors(
                _processors(), _quota(_QUOTA), yielding=_OWN_PRIORITY
            )
        yielding = None
        if _OWN_PRIORITY:
            # With 19, the lowest priority, a compiler at work would stop them.
            yielding = partial(os.setpriority, os.PRIO_PROCESS, 0, 10)
        self._batches = ThreadPoolExecutor(
            workers, thread_name_prefix="embed-batch", initializer=yielding
        )
        self._questions = ThreadPoolExecutor(
            max_workers=1, thread_name_prefix="embed-question"
        )
        self._loading: asyncio.Future[LocalModel] | None = None
        self._fingerprint: Vectors | None = None

    async def model(self) -> Model:
        """Return the model, with the dimensions of its fingerprint."""
        return self._choice.model(len(await self.probe()))

    async def probe(self) -> Vectors:
        """Return the fingerprint, measured once: the loaded files cannot change."""
        if self._fingerprint is None:
            self._fingerprint = await self._embed_soon(
                self._choice.document_prefix + PROBE, question=False
            )
        return self._fingerprint

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors; that of a long text is the mean of its pieces."""
        limit = vectors.character_limit(self._max_tokens, self._choice.document_prefix)
        pieces = [vectors.split_text(text, limit) for text in texts]
        flat = [
            self._choice.document_prefix + piece for parts in pieces for piece in parts
        ]
        model = await self._loaded()
        loop = asyncio.get_running_loop()
        batches = vectors.batches(flat, _BATCH_CHARACTERS)
        if len(batches) > 1:
            threads = self._batches
        else:
            threads = self._texts
        results = await asyncio.gather(
            *(loop.run_in_executor(threads, model, batch) for batch in batches)
        )
        return vectors.average_pieces(
            vectors.normalized(np.concatenate(results)), pieces
        )

    async def embed_question(
        self, pieces: Sequence[str], weights: Sequence[float]
    ) -> Vectors:
        """Return the vector of the whole question; the model weighs its words itself."""
        return await self._embed_soon(
            self._choice.query_prefix + " ".join(pieces), question=True
        )

    async def close(self) -> None:
        """End the threads."""
        for threads in (self._texts, self._batches, self._questions):
            threads.shutdown(wait=False, cancel_futures=True)

    async def _embed_soon(self, text: str, *, question: bool) -> Vectors:
        embed = partial(await self._loaded(), [text], question=question)
        vector: Vectors = await asyncio.get_running_loop().run_in_executor(
            self._questions, embed
        )
        unit: Vectors = vectors.normalized(vector)[0]
        return unit

    async def _loaded(self) -> LocalModel:
        if self._loading is None or (
            self._loading.done() and self._loading.exception()
        ):
            self._loading = asyncio.get_running_loop().run_in_executor(
                self._questions, self._load
            )
        return await asyncio.shield(self._loading)


def free_processors(processors: int, quota: float | None, *, yielding: bool) -> int:
    """Return how many processors may embed batches while questions are answered.

    Threads that are `yielding`, of a low priority, may use all: a question takes one from them. Others leave one. So do
    those of a container with a `quota`, the processors that it may use of those of its machine: once it is used up,
    questions stop too.
    """
    if quota is not None and quota < processors:
        return max(1, int(quota) - 1)
    if yielding:
        return processors
    return max(1, processors - 1)


def _processors() -> int:
    """Return the number of processors that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quota(file: Path) -> float | None:
    """Return how many processors this container may use, None without a limit."""
    try:
        used, period = file.read_text("ascii").split()
        return int(used) / int(period)
    except (OSError, ValueError):
        return None
