"""A model behind an HTTP route: batches, long texts, checks on what comes back, questions remembered."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Protocol

import httpx
import numpy as np
from numpy.typing import NDArray

from folklore.embedding.chunks import joined, longest, pieces
from folklore.embedding.http_client import Address, Service, TooMuch, without_secrets
from folklore.embedding.protocol import PROBE, Model, unit
from folklore.errors import Unavailable

Vectors = NDArray[np.float32]

# How long a fingerprint holds, in seconds: a service may change its model while it runs.
_PROBED_FOR = 3600.0
# What is sent in one request follows from how fast the service was, so that it takes a part of its time even if all
# places are taken: (fewest, most) characters, and what is assumed before anything was measured, in characters a second.
_ROOM = (1_000, 200_000)
_ASSUMED = 4_000.0
# Shorter requests tell how far the service is, not how fast.
_TELLING = 2_000
_SHORTEST = 200
_QUESTIONS = 1024
# Somebody waits for the answer to a question, which can be found by its words as well; in seconds.
_PATIENCE_FOR_QUESTIONS = 10.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model and where it is. `max_tokens` is how much of a text it reads, None where nobody knows."""

    url: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    dimensions: int | None = None
    timeout: float = 30.0
    batch_size: int = 500
    concurrency: int = 4
    query_prefix: str = ""
    document_prefix: str = ""
    revision: str = ""
    max_tokens: int | None = None

    @property
    def address(self) -> Address:
        """The way there."""
        return Address(self.url, self.api_key, self.timeout, self.concurrency)


class Wire(Protocol):
    """How a kind of service wants to be asked and how it answers."""

    provider: str
    route: str

    def request(self, endpoint: Endpoint, texts: Sequence[str], *, question: bool) -> Mapping[str, Any]:
        """The body that asks for these texts' vectors."""
        ...

    def vectors(self, answer: Any) -> list[Any]:
        """The vectors of an answer, in the order asked. Raises ValueError, KeyError, TypeError for what is none."""
        ...


class RemoteEmbedder:
    """One client for the life of the process.

    The dimension is learnt from the first answer and then insisted on. The model's fingerprint (embedder.PROBE) is
    asked for in a request of its own: at first, when the service answers again after it failed, and once an hour.
    """

    weighs_words = False

    def __init__(self, wire: Wire, endpoint: Endpoint, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._wire = wire
        self._endpoint = endpoint
        self._service = Service("embedding service", "embedding", endpoint.address, transport=transport)
        self._dimensions = endpoint.dimensions
        self._longest = longest(endpoint.max_tokens, endpoint.document_prefix)
        self._batch_size = endpoint.batch_size
        self._rate: float | None = None
        self._probe: Vectors | None = None
        self._probed_at = 0.0
        self._failed = False
        self._questions: OrderedDict[str, Vectors] = OrderedDict()

    async def model(self) -> Model:
        """The model; unless its dimension is known already, its fingerprint is asked for to learn it."""
        if self._dimensions is None:
            await self.probe()
        assert self._dimensions is not None
        at = self._endpoint
        return Model(
            self._wire.provider,
            at.model,
            self._dimensions,
            query_prefix=at.query_prefix,
            document_prefix=at.document_prefix,
            revision=at.revision,
            max_tokens=at.max_tokens,
            batch_size=self._batch_size,
            url=without_secrets(at.url),
            asked_dimensions=at.dimensions,
        )

    async def probe(self) -> Vectors:
        """The fingerprint. One that is merely old is kept if it cannot be measured again just now."""
        suspect = self._failed
        if self._probe is None or suspect or monotonic() - self._probed_at > _PROBED_FOR:
            try:
                [probe] = await self._batch([self._endpoint.document_prefix + PROBE])
            except Unavailable:
                if self._probe is None or suspect:
                    raise
            else:
                self._note(probe)
        assert self._probe is not None
        return self._probe

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors, in as few requests as the batch size allows, several at a time."""
        cut = [pieces(text, self._longest) for text in texts]
        flat = [self._endpoint.document_prefix + piece for parts in cut for piece in parts]
        parts: list[Vectors] = []
        while flat:
            batches = self._batches(flat)
            if self._rate is None and not parts and len(batches[0]) < min(self._batch_size, len(flat)):
                batches = batches[:1]  # cut by characters; the first tells how large the others may be
            flat = flat[sum(map(len, batches)) :]
            for outcome in await asyncio.gather(*map(self._batch, batches), return_exceptions=True):
                if isinstance(outcome, BaseException):
                    raise outcome
                parts.append(outcome)
        return joined(np.concatenate(parts), cut)

    async def embed_question(self, pieces: Sequence[str], weights: Sequence[float]) -> Vectors:
        """The whole question in one request; the model weighs its words itself. None when it was asked before."""
        text = " ".join(pieces)
        if (known := self._questions.get(text)) is not None:
            self._questions.move_to_end(text)
            return known
        vector: Vectors = (await self._batch([self._endpoint.query_prefix + text], question=True))[0]
        self._questions[text] = vector
        if len(self._questions) > _QUESTIONS:
            self._questions.popitem(last=False)
        return vector

    async def close(self) -> None:
        """Close the connections."""
        await self._service.close()

    def _batches(self, texts: Sequence[str]) -> list[list[str]]:
        """In order, none with more texts or characters than a request may hold."""
        batches: list[list[str]] = []
        at, rate = self._endpoint, self._rate or _ASSUMED
        whole = min(max(int(rate * at.timeout / (2 * at.concurrency)), _ROOM[0]), _ROOM[1])
        room = 0
        for text in texts:
            if not batches or len(batches[-1]) >= self._batch_size or room < len(text):
                batches.append([])
                room = whole
            batches[-1].append(text)
            room -= len(text)
        return batches

    async def _batch(self, texts: list[str], *, question: bool = False) -> Vectors:
        """Unit vectors of these texts, prefixes included; a request that is too large is cut in two, and remembered."""
        try:
            return await self._ask(texts, question)
        except TooMuch:
            return await self._smaller(texts, question)

    async def _smaller(self, texts: list[str], question: bool) -> Vectors:
        if len(texts) > 1:
            middle = len(texts) // 2
            self._batch_size = min(self._batch_size, middle)
            return np.concatenate([await self._batch(texts[:middle]), await self._batch(texts[middle:])])
        if not texts or len(texts[0]) <= _SHORTEST:
            raise self._service.fail("refuses even a short text for its size", hint="Check embedding.model.")
        half = pieces(texts[0], -(-len(texts[0]) // 2))
        self._longest = min(self._longest or len(texts[0]), len(half[0]))
        prefix = self._endpoint.query_prefix if question else self._endpoint.document_prefix
        found = [await self._batch([part], question=question) for part in (half[0], *(prefix + p for p in half[1:]))]
        return joined(np.concatenate(found), [half])

    async def _ask(self, texts: list[str], question: bool) -> Vectors:
        body = self._wire.request(self._endpoint, texts, question=question)
        patience = self._endpoint.timeout
        if question:
            patience = min(patience, _PATIENCE_FOR_QUESTIONS)
        size, began = sum(map(len, texts)), monotonic()
        try:
            answer = await self._service.post(self._wire.route, body, patience=patience, waited_for=question)
        except Unavailable as error:
            self._failed = True  # whoever comes back may be another
            if isinstance(error.__cause__, TimeoutError) and not question:
                self._rate = (self._rate or _ASSUMED) / 4  # the next attempt asks for less
            raise
        if size >= _TELLING:
            seen = size / max(monotonic() - began, 1e-3)
            self._rate = seen if self._rate is None else (self._rate + seen) / 2
        return self._checked(answer, len(texts))

    def _checked(self, answer: Any, count: int) -> Vectors:
        """Unit vectors. Raises EmbedderUnavailable for anything but `count` finite ones of the dimension expected."""
        try:
            data = self._wire.vectors(answer)
            vectors = np.array(data, dtype=np.float32)
        except (ValueError, KeyError, TypeError) as error:
            raise self._service.fail("answered something that is not a list of vectors") from error
        if len(data) != count or vectors.ndim != 2:
            raise self._service.fail(f"answered {len(data)} vectors for {count} texts")
        if not np.isfinite(vectors).all():
            raise self._service.fail("answered a vector with NaN or infinity")
        if self._dimensions is None:
            self._dimensions = vectors.shape[1]
        if vectors.shape[1] != self._dimensions:
            raise self._service.fail(
                f"answered {vectors.shape[1]} dimensions, not {self._dimensions}",
                hint="Check embedding.model and embedding.dimensions.",
            )
        return unit(vectors)

    def _note(self, probe: Vectors) -> None:
        self._probed_at, self._failed = monotonic(), False
        if self._probe is None or float(self._probe @ probe) < 1 - 1e-6:
            self._questions.clear()
            self._probe = probe
