"""Embedder of local ONNX models by the optional package fastembed. A command downloads a model once."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from folklore.embedding.protocol import PROBE, Model, ModelChoice
from folklore.embedding.vectors import Vectors, average_pieces, character_limit, normalized, split_text
from folklore.errors import EmbedderUnavailable

_BATCH = 64


class FastembedEmbedder:
    """Loads the model from `cache` on first use, in a thread of its own that also embeds. Never uses the network."""

    weighs_words = False

    def __init__(self, choice: ModelChoice, cache: Path, max_tokens: int | None = None) -> None:
        self._choice = choice
        self._cache = cache
        self._limit = character_limit(max_tokens, choice.document_prefix)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        self._loaded: Any = None
        self._fingerprint: Vectors | None = None

    async def model(self) -> Model:
        """Return the model, with the dimensions of its fingerprint."""
        return self._choice.model(len(await self.probe()))

    async def probe(self) -> Vectors:
        """Return the fingerprint, measured once: the loaded files cannot change."""
        if self._fingerprint is None:
            self._fingerprint = (await self.embed([PROBE]))[0]
        return self._fingerprint

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors."""
        pieces = [split_text(text, self._limit) for text in texts]
        flat = [self._choice.document_prefix + piece for parts in pieces for piece in parts]
        return average_pieces(await self._in_thread("passage_embed", flat), pieces)

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> Vectors:
        """Return the vector of the whole question; the model weighs its words itself."""
        question = self._choice.query_prefix + " ".join(pieces)
        vector: Vectors = (await self._in_thread("query_embed", [question]))[0]
        return vector

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, method: str, texts: list[str]) -> Vectors:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, method, texts)

    def _embed(self, method: str, texts: list[str]) -> Vectors:
        if self._loaded is None:
            self._loaded = load(self._choice.name, self._cache)
        try:
            vectors = np.array(list(getattr(self._loaded, method)(texts, batch_size=_BATCH)), dtype=np.float32)
        except (RuntimeError, ValueError, OSError) as error:
            raise EmbedderUnavailable(f"The model {self._choice.name} failed ({type(error).__name__}).") from error
        return normalized(vectors)


def load(name: str, cache: Path, *, fetch: bool = False) -> Any:
    """Return fastembed's model of this name. `fetch` downloads missing files, with a progress bar on stderr.

    Raises EmbedderUnavailable if the package, the model or its files are missing.
    """
    try:
        from fastembed import TextEmbedding  # optional, and its import takes a second
    except ImportError as error:
        raise EmbedderUnavailable(
            "The package fastembed is not installed.", hint="Run: pip install 'folklore-mcp[fastembed]'"
        ) from error
    if name.lower() not in {entry["model"].lower() for entry in TextEmbedding.list_supported_models()}:
        raise EmbedderUnavailable(
            f"fastembed knows no model {name!r}.", hint="Its list: https://qdrant.github.io/fastembed/examples/"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TextEmbedding(name, cache_dir=str(cache), local_files_only=not fetch)
    except (RuntimeError, ValueError, OSError) as error:
        if fetch:
            raise EmbedderUnavailable(
                f"The model {name} could not be downloaded ({type(error).__name__}).",
                hint=f"Try again with a network connection, or copy the folder {cache} from a machine that has it.",
            ) from error
        raise EmbedderUnavailable(
            f"The model {name} is not on this machine ({cache}).",
            hint="Download it once with `folklore embeddings fetch`.",
        ) from error
