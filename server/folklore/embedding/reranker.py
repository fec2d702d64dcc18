"""A reranker over HTTP: `/rerank` as Text Embeddings Inference speaks it, and as Jina, Cohere, vLLM and others do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import httpx
import numpy as np
from numpy.typing import NDArray

from folklore.config import RerankerSettings
from folklore.embedding.http_client import Address, Service, TooMuch
from folklore.errors import RerankerUnavailable

# A reranker reads 512 tokens of question and text as a rule, some 8,192: what is beyond costs and is seldom read.
_CHARACTERS_OF_TEXT = 4_000
_CHARACTERS_OF_QUESTION = 1_000


class Reranker(Protocol):
    """Says how well each of a few texts answers a question."""

    pool: int

    async def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """One finite number a text (n,), in their order; more is better, the scale is the model's own.

        Raises RerankerUnavailable.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class HttpReranker:
    """`pool` is of how many candidates it is asked. Without a model's name the service is taken for TEI."""

    def __init__(
        self,
        address: Address,
        model: str | None = None,
        pool: int = 30,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.pool = pool
        self._model = model
        self._patience = address.timeout
        self._service = Service("reranker", "reranker", address, transport=transport, error=RerankerUnavailable)

    async def scores(self, question: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """One request."""
        question, cut = question[:_CHARACTERS_OF_QUESTION], [text[:_CHARACTERS_OF_TEXT] for text in texts]
        body: dict[str, Any]
        if self._model is None:
            body = {"query": question, "texts": cut, "truncate": True}
        else:
            body = {"model": self._model, "query": question, "documents": cut, "top_n": len(cut)}
        try:
            answer = await self._service.post("rerank", body, patience=self._patience, waited_for=True)
        except TooMuch as error:
            raise self._service.fail("refused the request for its size", hint="Lower reranker.pool.") from error
        return self._checked(answer, len(cut))

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    def _checked(self, answer: Any, count: int) -> NDArray[np.float64]:
        scores = np.full(count, np.nan)
        try:
            for entry in answer if isinstance(answer, list) else answer["results"]:
                score = entry["relevance_score"] if "relevance_score" in entry else entry["score"]
                scores[int(entry["index"])] = float(score)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise self._service.fail("answered something that is not a list of scores") from error
        if not np.isfinite(scores).all():
            raise self._service.fail(f"did not answer a number for each of {count} texts")
        return scores


def choose_reranker(settings: RerankerSettings) -> HttpReranker | None:
    """The reranker that settings name, if any. Its URL may end in /rerank or before."""
    if settings.url is None:
        return None
    key = None if settings.api_key is None else settings.api_key.get_secret_value()
    address = Address(settings.url, key, settings.timeout_seconds, concurrency=8)
    return HttpReranker(address, settings.model, settings.pool)
