"""Models that run here, by ONNX: the optional package fastembed. A model is fetched once, by a command that says so."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from folklore.embedding.chunks import joined, longest, pieces
from folklore.embedding.protocol import PROBE, Model, unit
from folklore.errors import EmbedderUnavailable

_BATCH = 64


class FastembedEmbedder:
    """Loads on first use from `cache`, in a thread of its own that also embeds; never touches the network."""

    weighs_words = False

    def __init__(
        self,
        name: str,
        cache: Path,
        *,
        query_prefix: str = "",
        document_prefix: str = "",
        revision: str = "",
        max_tokens: int | None = None,
    ) -> None:
        self._name = name
        self._cache = cache
        self._prefixes = (query_prefix, document_prefix)
        self._revision = revision
        self._max_tokens = max_tokens
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embed")
        self._loaded: Any = None
        self._fingerprint: NDArray[np.float32] | None = None

    async def model(self) -> Model:
        """The model; its dimension is that of its fingerprint."""
        dimensions = len(await self.probe())
        query, document = self._prefixes
        return Model(
            "fastembed",
            self._name,
            dimensions,
            query_prefix=query,
            document_prefix=document,
            revision=self._revision,
            max_tokens=self._max_tokens,
            batch_size=_BATCH,
        )

    async def probe(self) -> NDArray[np.float32]:
        """The fingerprint, measured once: the files do not change while they are loaded."""
        if self._fingerprint is None:
            self._fingerprint = (await self.embed([PROBE]))[0]
        return self._fingerprint

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors; longer texts than the model reads are averaged from their pieces."""
        prefix = self._prefixes[1]
        cut = [pieces(text, longest(self._max_tokens, prefix)) for text in texts]
        flat = [prefix + piece for parts in cut for piece in parts]
        return joined(await self._in_thread("passage_embed", flat), cut)

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """The whole question; the model weighs its words itself."""
        vector: NDArray[np.float32] = (await self._in_thread("query_embed", [self._prefixes[0] + " ".join(pieces)]))[0]
        return vector

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, method: str, texts: list[str]) -> NDArray[np.float32]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, method, texts)

    def _embed(self, method: str, texts: list[str]) -> NDArray[np.float32]:
        if self._loaded is None:
            self._loaded = load(self._name, self._cache)
        try:
            vectors = np.array(list(getattr(self._loaded, method)(texts, batch_size=_BATCH)), dtype=np.float32)
        except (RuntimeError, ValueError, OSError) as error:
            raise EmbedderUnavailable(f"The model {self._name} failed ({type(error).__name__}).") from error
        return unit(vectors)


def load(name: str, cache: Path, *, fetch: bool = False) -> Any:
    """fastembed's model of this name; from the network only if `fetch`, which draws its own progress bar on stderr.

    Raises EmbedderUnavailable when the package, the model or its files are not there.
    """
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise EmbedderUnavailable(
            "The package fastembed is not installed.", hint="pip install 'folklore-mcp[fastembed]'"
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
                f"The model {name} could not be fetched ({type(error).__name__}).",
                hint="It comes from the network, once: try again with a connection, or copy the folder "
                f"{cache} from a machine that has it.",
            ) from error
        raise EmbedderUnavailable(
            f"The model {name} is not on this machine ({cache}).",
            hint="Fetch it once with `folklore embeddings fetch`.",
        ) from error
