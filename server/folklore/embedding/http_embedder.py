"""Embedder of a model behind an HTTP route: batches, long texts, checks of the answers, a cache of questions."""

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

import httpx
import numpy as np
from cachetools import LRUCache

from folklore.background import all_of
from folklore.embedding.http_client import (
    Address,
    HttpService,
    RequestTooLarge,
    without_user,
)
from folklore.embedding.protocol import PROBE, Model, ModelChoice
from folklore.embedding.request_formats import OpenAIFormat
from folklore.embedding.vectors import (
    Vectors,
    average_pieces,
    batches,
    character_limit,
    normalized,
    split_text,
)
from folklore.errors import EmbedderUnavailable, Unavailable

# Seconds after which a fingerprint is measured again: a service may change its model while it runs.
_FINGERPRINT_SECONDS = 3600.0
# Most texts in one request. Services that take fewer reject it, and then get less.
_BATCH_SIZE = 500
# Most characters in one request: four requests at a time then need 2,000 characters per second to end within 30 s. A
# slower service gets a quarter of a request that timed out, until the process ends.
_BATCH_CHARACTERS = 16_000
_FEWEST_CHARACTERS = 1_000
# A service that rejects even a text of this length for its size is misconfigured.
_SHORTEST_TEXT = 200
_CACHED_QUESTIONS = 1024
# Limit for the embedding of a question, in seconds. Recall can also answer by keywords.
_QUESTION_SECONDS = 10.0


class HttpEmbedder:
    """Client of one service for the life of the process.

    The first answer determines the dimensions; answers with others are rejected. The fingerprint is measured in a
    request of its own: at first, when the service answers again after a failure, and once an hour.
    """

    weighs_words = False

    def __init__(
        self,
        form: OpenAIFormat,
        choice: ModelChoice,
        address: Address,
        *,
        max_tokens: int | None = None,
        batch_size: int = _BATCH_SIZE,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._form = form
        self._choice = choice
        self._address = address
        self._service = HttpService(
            "embedding service",
            "embedding",
            address,
            EmbedderUnavailable,
            endings=form.endings,
            transport=transport,
        )
        self._dimensions = choice.dimensions
        self._limit = character_limit(max_tokens, choice.document_prefix)
        self._batch_size = batch_size
        self._batch_characters = _BATCH_CHARACTERS
        self._fingerprint: Vectors | None = None
        self._measured_at = 0.0
        self._failed = False
        self._questions: LRUCache[str, Vectors] = LRUCache(_CACHED_QUESTIONS)

    async def model(self) -> Model:
        """Return the model. Measures the fingerprint if the dimensions are unknown."""
        if self._dimensions is None:
            await self.probe()
        assert self._dimensions is not None
        url = without_user(self._address.url)
        return replace(
            self._choice.model(self._dimensions),
            url=url,
            asked_dimensions=self._choice.dimensions,
        )

    async def probe(self) -> Vectors:
        """Return the fingerprint. An old one is kept if the service does not answer now, unless it failed before."""
        failed = self._failed
        if (
            self._fingerprint is None
            or failed
            or monotonic() - self._measured_at > _FINGERPRINT_SECONDS
        ):
            try:
                [vector] = await self._batch([self._choice.document_prefix + PROBE])
            except Unavailable:
                if self._fingerprint is None or failed:
                    raise
            else:
                self._measured_at = monotonic()
                self._failed = False
                if (
                    self._fingerprint is None
                    or float(self._fingerprint @ vector) < 1 - 1e-6
                ):
                    self._questions.clear()
                    self._fingerprint = vector
        assert self._fingerprint is not None
        return self._fingerprint

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return unit vectors, in as few requests as the limits allow, several at a time."""
        pieces = [split_text(text, self._limit) for text in texts]
        flat = [
            self._choice.document_prefix + piece for parts in pieces for piece in parts
        ]
        groups = batches(flat, self._batch_characters, self._batch_size)
        return average_pieces(
            np.concatenate(await all_of(*map(self._batch, groups))), pieces
        )

    async def embed_question(
        self, pieces: Sequence[str], weights: Sequence[float]
    ) -> Vectors:
        """Return the vector of the whole question from one request, or from the cache."""
        text = " ".join(pieces)
        if text not in self._questions:
            self._questions[text] = (
                await self._batch([self._choice.query_prefix + text], question=True)
            )[0]
        return self._questions[text]

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    async def _batch(self, texts: list[str], *, question: bool = False) -> Vectors:
        """Return unit vectors of texts with prefixes. A request that is too large is divided, and the limit lowered."""
        try:
            return await self._post(texts, question)
        except RequestTooLarge:
            if len(texts) > 1:
                middle = len(texts) // 2
                self._batch_size = min(self._batch_size, middle)
                return np.concatenate(
                    [
                        await self._batch(texts[:middle]),
                        await self._batch(texts[middle:]),
                    ]
                )
            return await self._halved(texts[0], question)

    async def _halved(self, text: str, question: bool) -> Vectors:
        if len(text) <= _SHORTEST_TEXT:
            raise self._service.failure(
                "rejects even a short text for its size", hint="Check embedding.model."
            )
        first, *others = split_text(text, -(-len(text) // 2))
        self._limit = min(self._limit or len(text), len(first))
        if question:
            prefix = self._choice.query_prefix
        else:
            prefix = self._choice.document_prefix
        parts = [first, *(prefix + other for other in others)]
        halves = [await self._batch([part], question=question) for part in parts]
        return average_pieces(np.concatenate(halves), [[first, *others]])

    async def _post(self, texts: list[str], question: bool) -> Vectors:
        body = self._form.request(self._choice, texts, question=question)
        if question:
            timeout = min(self._address.timeout, _QUESTION_SECONDS)
        else:
            timeout = self._address.timeout
        try:
            answer = await self._service.post(
                self._form.route, body, timeout=timeout, interactive=question
            )
        except Unavailable as error:
            self._failed = True  # the service may come back with another model
            size = sum(map(len, texts))
            if isinstance(error.__cause__, TimeoutError) and size > _FEWEST_CHARACTERS:
                self._batch_characters = min(
                    self._batch_characters, max(size // 4, _FEWEST_CHARACTERS)
                )
            raise
        return self._checked(answer, len(texts))

    def _checked(self, answer: Any, count: int) -> Vectors:
        """Return unit vectors. Raises EmbedderUnavailable unless there are `count` finite ones of equal dimensions."""
        try:
            data = self._form.vectors(answer)
            vectors = np.array(data, dtype=np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise self._service.failure(
                "answered something that is not a list of vectors"
            ) from error
        if len(data) != count or vectors.ndim != 2:
            raise self._service.failure(
                f"answered {len(data)} vectors for {count} texts"
            )
        if not np.isfinite(vectors).all():
            raise self._service.failure("answered a vector with NaN or infinity")
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
        if vectors.shape[1] != self._dimensions:
            raise self._service.failure(
                f"answered {vectors.shape[1]} dimensions, not {self._dimensions}",
                hint="Check embedding.model and embedding.dimensions.",
            )
        return normalized(vectors)
