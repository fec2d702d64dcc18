"""The model that comes with the package: wordllama l2_supercat, 256 dimensions, no network, no key.

A static model: a text's vector is the mean of its tokens' vectors. wordllama's own `embed` pads a batch to its longest
text (64 texts of 32,000 characters would take half a gigabyte), so the mean is taken here, over the tokens laid end to
end, in bounded slices.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from folklore.embedding.embedder import Model, Purpose
from folklore.errors import EmbedderUnavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL = Model("bundled", "wordllama-l2_supercat", 256)
# Tokens whose vectors are gathered at once: 32,768 x 256 x 4 bytes = 32 MiB.
_SLICE = 32_768
# A text whose tokens are few is embedded at once on the event loop: it takes less time than handing it to a thread.
_INLINE_CHARACTERS = 2_000


class BundledEmbedder:
    """Loads on first use, in a thread of its own that also does the larger batches."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        self._loading: asyncio.Future[_Static] | None = None

    async def _loaded(self) -> _Static:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().run_in_executor(self._thread, _load)
        return await asyncio.shield(self._loading)

    async def model(self) -> Model:
        """The one model there is; loads it."""
        await self._loaded()
        return MODEL

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float32]:
        """Mean token vectors, scaled to length 1."""
        static = await self._loaded()
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            return static.embed(texts)
        return await asyncio.get_running_loop().run_in_executor(self._thread, static.embed, list(texts))

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
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        row, pending, size = 0, [], 0
        for encoding in encodings:
            pending.append(encoding.ids)
            size += len(encoding.ids)
            if size >= _SLICE:
                self._sum(pending, vectors[row : row + len(pending)])
                row, pending, size = row + len(pending), [], 0
        self._sum(pending, vectors[row:])
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    def _sum(self, tokens: Sequence[Sequence[int]], into: NDArray[np.float32]) -> None:
        # The sum points where the mean does; length is taken out afterwards anyway.
        for place, ids in enumerate(tokens):
            if len(ids):
                self._table[np.asarray(ids, dtype=np.int32)].sum(axis=0, out=into[place])


def _load() -> _Static:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from importlib.util import find_spec
            from pathlib import Path

            from wordllama import WordLlama

            spec = find_spec("wordllama")
            assert spec is not None
            assert spec.origin is not None
            # Its loader looks for the tokenizer in a folder of another name and would then try the network: the
            # package's own folder as cache, and downloads off, keep it at home.
            loaded = WordLlama.load(
                config="l2_supercat", dim=256, cache_dir=Path(spec.origin).parent, disable_download=True
            )
    except (ImportError, OSError, ValueError) as error:
        raise EmbedderUnavailable(
            f"The bundled embedding model cannot be loaded ({type(error).__name__}).",
            hint="Reinstall folklore-mcp, or set embedding.provider.",
        ) from error
    tokenizer = loaded.tokenizer
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return _Static(np.ascontiguousarray(loaded.embedding, dtype=np.float32), tokenizer)
