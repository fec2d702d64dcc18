"""Embedder of the model that comes with the package: wordllama l2_supercat, 256 dimensions, no network, no key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from folklore.embedding.model_profiles import BUNDLED
from folklore.embedding.protocol import PROBE, Model
from folklore.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from folklore.embedding.static_model import StaticModel
    from folklore.embedding.vectors import Vectors

# The name includes the pooling: vectors with another pooling are not comparable with these.
MODEL = Model("bundled", BUNDLED, 256, contextual=False)
# Shorter batches are embedded on the event loop, which takes less time than passing them to a thread.
_INLINE_CHARACTERS = 2_000


class BundledEmbedder:
    """Loads the model on first use, in a thread of its own that also embeds larger batches."""

    weighs_words = True

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        self._loading: asyncio.Future[StaticModel] | None = None
        self._fingerprint: Vectors | None = None

    async def model(self) -> Model:
        """Return the model, loaded."""
        await self._loaded()
        return MODEL

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors: the sum of the token vectors, weighted by the square root of the token's frequency."""
        static = await self._loaded()
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return static.embed(texts)
        return await asyncio.get_running_loop().run_in_executor(
            self._thread, static.embed, list(texts)
        )

    async def embed_question(
        self, pieces: Sequence[str], weights: Sequence[float]
    ) -> Vectors:
        """Return a unit vector: the sum of the token vectors, weighted by their piece."""
        return (await self._loaded()).embed_question(pieces, weights)

    async def probe(self) -> Vectors:
        """Return the fingerprint."""
        if self._fingerprint is None:
            self._fingerprint = (await self._loaded()).embed([PROBE])[0]
        return self._fingerprint

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _loaded(self) -> StaticModel:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(
                self._thread, load_model
            )
        return await asyncio.shield(self._loading)


def load_model() -> StaticModel:
    """Load the model. Raises EmbedderUnavailable."""
    try:
        # Here and not above: numpy, tokenizers and safetensors take 0.2 s, which only a process that embeds should pay.
        from folklore.embedding.static_model import StaticModel

        return StaticModel.load()
    except (ImportError, OSError, ValueError) as error:
        raise EmbedderUnavailable(
            f"The bundled embedding model cannot be loaded ({type(error).__name__}).",
            hint="Reinstall folklore-mcp, or set embedding.provider.",
        ) from error
