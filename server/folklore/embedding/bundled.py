"""The model that comes with the package: wordllama l2_supercat, 256 dimensions, no network, no key.

A static model: the vector of a text is made of those of its tokens. wordllama itself takes their plain mean and pads
a batch to its longest text (64 texts of 32,000 characters would take half a gigabyte). Here a token counts by the
square root of how often it occurs, in lower case, and texts are summed one by one; in a question a token also counts by
how rare its word is where the question is asked. Both were measured to find more (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from folklore.embedding.protocol import PROBE, Model, unit
from folklore.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The name says how tokens are pooled: another way is another model, whose vectors do not compare with these.
MODEL = Model("bundled", "wordllama-l2_supercat-lower-sqrt", 256, weight=0.65, blurs_beyond=60)
# A text whose tokens are few is embedded at once on the event loop: it takes less time than handing it to a thread.
_INLINE_CHARACTERS = 2_000


class BundledEmbedder:
    """Loads on first use, in a thread of its own that also does the larger batches."""

    weighs_words = True

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        self._loading: asyncio.Future[_Static] | None = None
        self._fingerprint: NDArray[np.float32] | None = None

    async def _loaded(self) -> _Static:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(self._thread, _load)
        return await asyncio.shield(self._loading)

    async def model(self) -> Model:
        """The one model there is; loads it."""
        await self._loaded()
        return MODEL

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Token vectors by the square root of their frequency, scaled to length 1."""
        static = await self._loaded()
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return static.embed(texts)
        return await asyncio.get_running_loop().run_in_executor(self._thread, static.embed, list(texts))

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """Token vectors by the weight of their piece, scaled to length 1."""
        static = await self._loaded()
        return static.embed_question(pieces, weights)

    async def probe(self) -> NDArray[np.float32]:
        """The fingerprint."""
        if self._fingerprint is None:
            self._fingerprint = (await self._loaded()).embed([PROBE])[0]
        return self._fingerprint

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)


class _Static:
    """A token table (tokens x dimensions, float32) and the tokenizer that names its rows."""

    def __init__(self, table: NDArray[np.float32], tokenizer: Tokenizer) -> None:
        self._table = table
        self._tokenizer = tokenizer

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = np.zeros((len(texts), self._table.shape[1]), dtype=np.float32)
        encodings = self._tokenizer.encode_batch_fast([text.lower() for text in texts], add_special_tokens=False)
        for place, encoding in enumerate(encodings):
            if encoding.ids:
                tokens, counts = np.unique(np.asarray(encoding.ids, dtype=np.int32), return_counts=True)
                vectors[place] = np.sqrt(counts, dtype=np.float32) @ self._table[tokens]
        return unit(vectors)

    def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        lower = [piece.lower() for piece in pieces]
        encoding = self._tokenizer.encode(" ".join(lower), add_special_tokens=False)
        if not encoding.ids:
            return np.zeros(self._table.shape[1], dtype=np.float32)
        ends = np.cumsum([len(piece) + 1 for piece in lower])
        # A token begins in the space before its word, so its last character tells its piece.
        last = np.asarray([max(end - 1, 0) for _, end in encoding.offsets])
        of_piece = np.searchsorted(ends, last, side="right")
        weight = np.asarray(weights, dtype=np.float32)[np.minimum(of_piece, len(pieces) - 1)]
        vector: NDArray[np.float32] = weight @ self._table[np.asarray(encoding.ids, dtype=np.int32)]
        length = float(np.linalg.norm(vector))
        return vector / length if length else vector


def _load() -> _Static:
    """From the files in wordllama's package, without importing it: that asks for the account's home, which services
    may run without, and would look for what it misses on the network."""
    try:
        from safetensors import SafetensorError, safe_open
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _unloadable(error) from error
    try:
        spec = find_spec("wordllama")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("wordllama")
        folder = Path(spec.origin).parent
        tokenizer = Tokenizer.from_buffer((folder / "tokenizers" / "l2_supercat_tokenizer_config.json").read_bytes())
        with safe_open(folder / "weights" / "l2_supercat_256.safetensors", framework="np") as weights:
            table = weights.get_tensor("embedding.weight")
    except (ImportError, OSError, ValueError, SafetensorError) as error:
        raise _unloadable(error) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return _Static(np.ascontiguousarray(table, dtype=np.float32), tokenizer)


def _unloadable(error: Exception) -> EmbedderUnavailable:
    return EmbedderUnavailable(
        f"The bundled embedding model cannot be loaded ({type(error).__name__}).",
        hint="Reinstall folklore-mcp, or set embedding.provider.",
    )
