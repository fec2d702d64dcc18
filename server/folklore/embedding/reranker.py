"""Reranker over HTTP: the route `/rerank` of Text Embeddings Inference, Jina, Cohere, vLLM and others."""

from collections.abc import Sequence
from typing import Any

import httpx
import numpy as np
from numpy.typing import NDArray

from folklore.embedding.http_client import Address, HttpService, RequestTooLarge
from folklore.errors import RerankerUnavailable

# Most rerankers read 512 tokens of question and text, some 8,192. More text costs time and is not read.
_CHARACTERS_OF_TEXT = 4_000
_CHARACTERS_OF_QUESTION = 1_000
# Number of the best candidates that recall sends, and limit for one call, in seconds.
POOL = 30
TIMEOUT = 5.0


class HttpReranker:
    """Client of one service. Without a model's name the service must be Text Embeddings Inference."""

    def __init__(
        self,
        address: Address,
        model: str | None = None,
        pool: int = POOL,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.pool = pool
        self._model = model
        self._timeout = address.timeout
        self._service = HttpService(
            "reranker",
            "reranker",
            address,
            RerankerUnavailable,
            endings=("/rerank",),
            transport=transport,
        )

    async def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the scores of the texts, from one request."""
        question = question[:_CHARACTERS_OF_QUESTION]
        cut = [text[:_CHARACTERS_OF_TEXT] for text in texts]
        body: dict[str, Any] = {"query": question, "texts": cut, "truncate": True}
        if self._model is not None:
            body = {
                "model": self._model,
                "query": question,
                "documents": cut,
                "top_n": len(cut),
            }
        try:
            answer = await self._service.post(
                "rerank", body, timeout=self._timeout, interactive=True
            )
        except RequestTooLarge as error:
            raise self._service.failure(
                f"rejected a request with {len(cut)} texts for its size",
                hint="Raise the service's limit for a batch.",
            ) from error
        return self._checked(answer, len(cut))

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    def _checked(self, answer: Any, count: int) -> NDArray[np.float64]:
        scores = np.full(count, np.nan)
        try:
            for entry in answer if isinstance(answer, list) else answer["results"]:
                if "relevance_score" in entry:
                    score = entry["relevance_score"]
                else:
                    score = entry["score"]
                scores[int(entry["index"])] = float(score)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise self._service.failure(
                "answered something that is not a list of scores"
            ) from error
        if not np.isfinite(scores).all():
            raise self._service.failure(
                f"did not answer a number for each of {count} texts"
            )
        return scores
