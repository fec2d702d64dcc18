"""Any endpoint that speaks OpenAI's embeddings route: OpenAI, Ollama, LM Studio, vLLM, llama.cpp, TEI and others."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from folklore.embedding.embedder import Model
from folklore.errors import EmbedderUnavailable

_ATTEMPTS = 4
_LONGEST_WAIT = 20.0
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is. `url` ends before /embeddings; times are in seconds."""

    url: str
    model: str
    api_key: str | None = None
    dimensions: int | None = None
    timeout: float = 30.0
    batch_size: int = 64
    concurrency: int = 4


class OpenAIEmbedder:
    """One client for the life of the process; the dimension is learnt from the first answer and then insisted on."""

    def __init__(self, endpoint: Endpoint, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._endpoint = endpoint
        headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        self._client = httpx.AsyncClient(
            base_url=endpoint.url.rstrip("/") + "/", headers=headers, timeout=endpoint.timeout, transport=transport
        )
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._dimensions = endpoint.dimensions

    async def model(self) -> Model:
        """The model; unless its dimension is configured, one text is embedded to learn it."""
        if self._dimensions is None:
            await self._batch(["dimension"])
        assert self._dimensions is not None
        return Model("openai", self._endpoint.model, self._dimensions)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors, in as few requests as the batch size allows, several at a time."""
        size = self._endpoint.batch_size
        batches = [list(texts[start : start + size]) for start in range(0, len(texts), size)]
        parts = await asyncio.gather(*(self._batch(batch) for batch in batches))
        return np.concatenate(parts)

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> NDArray[np.float32]:
        """The whole question in one request; the model weighs its words itself."""
        vectors = await self._batch([" ".join(pieces)])
        vector: NDArray[np.float32] = vectors[0]
        return vector

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _batch(self, texts: list[str]) -> NDArray[np.float32]:
        body: dict[str, Any] = {"model": self._endpoint.model, "input": texts}
        if self._endpoint.dimensions is not None:
            body["dimensions"] = self._endpoint.dimensions
        async with self._slots:
            response = await self._post(body)
        vectors = _vectors(response, len(texts))
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
        if vectors.shape[1] != self._dimensions:
            raise EmbedderUnavailable(
                f"The embedding service answered {vectors.shape[1]} dimensions, not {self._dimensions}.",
                hint="Check embedding.model and embedding.dimensions.",
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, lengths, out=vectors, where=lengths > 0)
        return vectors

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        reason = ""
        for attempt in range(_ATTEMPTS):
            wait: float | None = None
            try:
                response = await self._client.post("embeddings", json=body)
            except httpx.HTTPError as error:
                reason = f"cannot be reached ({type(error).__name__})"
            else:
                if response.is_success:
                    return response
                reason = f"answered {response.status_code}"
                if response.status_code not in _PASSING:
                    raise EmbedderUnavailable(
                        f"The embedding service {reason}.", hint="Check embedding.url, embedding.model and the key."
                    )
                wait = _retry_after(response)
            if attempt + 1 < _ATTEMPTS:
                backoff = 0.25 * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311 - spreads retries, guards nothing
                await asyncio.sleep(min(backoff if wait is None else wait, _LONGEST_WAIT))
        raise EmbedderUnavailable(f"The embedding service {reason}, {_ATTEMPTS} times.", hint="Check embedding.url.")


def _retry_after(response: httpx.Response) -> float | None:
    given = response.headers.get("Retry-After", "")
    if given.isdigit():
        return float(given)
    try:
        at = parsedate_to_datetime(given).timestamp()
    except (TypeError, ValueError):
        return None
    sent = response.headers.get("Date")
    return None if sent is None else max(0.0, at - parsedate_to_datetime(sent).timestamp())


def _vectors(response: httpx.Response, count: int) -> NDArray[np.float32]:
    """The vectors of an answer, in the order asked. Raises EmbedderUnavailable for anything but `count` finite ones."""
    try:
        data = sorted(response.json()["data"], key=lambda entry: int(entry["index"]))
        vectors = np.array([entry["embedding"] for entry in data], dtype=np.float32)
    except (ValueError, KeyError, TypeError) as error:
        raise EmbedderUnavailable("The embedding service answered something that is not a list of vectors.") from error
    if vectors.ndim != 2 or vectors.shape[0] != count:
        raise EmbedderUnavailable(f"The embedding service answered {len(data)} vectors for {count} texts.")
    if not math.isfinite(float(vectors.sum())):
        raise EmbedderUnavailable("The embedding service answered a vector with NaN or infinity.")
    return vectors
