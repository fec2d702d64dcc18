"""An embedding service over HTTP, faked at httpx's transport seam."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from folklore.config import EmbeddingSettings
from folklore.embedding.choose import choose
from folklore.embedding.openai import openai_embedder
from folklore.embedding.remote import Endpoint, RemoteEmbedder
from folklore.errors import ConfigInvalid, EmbedderUnavailable

Handler = Callable[[httpx.Request], httpx.Response]


def embedder(handler: Handler, **settings: object) -> RemoteEmbedder:
    endpoint = Endpoint("http://model.test/v1", "some-model", **settings)  # type: ignore[arg-type]
    return openai_embedder(endpoint, httpx.MockTransport(handler))


def vectors(request: httpx.Request, size: int = 3) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    data = [{"index": place, "embedding": [float(len(text))] + [1.0] * (size - 1)} for place, text in enumerate(texts)]
    return httpx.Response(200, json={"data": data[::-1]})


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return waited


async def test_vectors_come_in_the_order_of_the_texts_and_have_length_one() -> None:
    service = embedder(vectors, batch_size=2)

    found = await service.embed(["a", "bbbb", "cc"])

    assert found.shape == (3, 3)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    assert found[1, 0] > found[2, 0] > found[0, 0]
    assert (await service.model()).dimensions == 3


async def test_a_batch_is_as_few_requests_as_its_size_allows() -> None:
    sizes: list[int] = []

    def count(request: httpx.Request) -> httpx.Response:
        sizes.append(len(json.loads(request.content)["input"]))
        return vectors(request)

    await embedder(count, batch_size=4).embed([str(number) for number in range(10)])

    assert sorted(sizes) == [2, 4, 4]


async def test_a_question_is_one_request_of_its_whole_text() -> None:
    asked: list[object] = []

    def note(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return vectors(request)

    await embedder(note, dimensions=3).embed_question(["where", "is", "it?"], [1.0, 0.1, 0.5])

    assert asked == [{"model": "some-model", "input": ["where is it?"], "dimensions": 3}]


async def test_a_passing_failure_is_tried_again_after_the_time_it_names(no_waiting: list[float]) -> None:
    answers = iter([httpx.Response(429, headers={"Retry-After": "7"}), httpx.Response(503), None])

    found = await embedder(lambda request: next(answers) or vectors(request)).embed(["a"])

    assert found.shape == (1, 3)
    assert no_waiting[0] == 7
    assert 0 < no_waiting[1] < 2


def unreachable(_request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (unreachable, "cannot be reached"),
        (lambda _: httpx.Response(500), "answered 500"),
        (lambda _: httpx.Response(401), "answered 401"),
        (lambda _: httpx.Response(200, content=b"not json"), "not JSON"),
        (lambda _: httpx.Response(200, json={"data": [{"index": 0}]}), "not a list of vectors"),
        (lambda _: httpx.Response(200, json={"data": []}), "for 1 texts"),
        (lambda _: httpx.Response(200, content=b'{"data":[{"index":0,"embedding":[NaN,1]}]}'), "NaN"),
        (lambda request: vectors(request, size=4), "4 dimensions, not 3"),
    ],
)
async def test_what_is_no_vector_is_an_unavailable_embedder(handler: Handler, reason: str) -> None:
    with pytest.raises(EmbedderUnavailable, match=reason):
        await embedder(handler, dimensions=3, api_key="sk-secret").embed(["a"])


async def test_a_refusal_is_not_repeated(no_waiting: list[float]) -> None:
    with pytest.raises(EmbedderUnavailable):
        await embedder(lambda _: httpx.Response(401)).embed(["a"])

    assert no_waiting == []


async def test_many_batches_run_a_few_at_a_time() -> None:
    running = most = 0

    async def slow(request: httpx.Request) -> httpx.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.tasks.sleep(0.001)
        running -= 1
        return vectors(request)

    service = openai_embedder(
        Endpoint("http://model.test/v1", "m", batch_size=1, concurrency=3), httpx.MockTransport(slow)
    )
    await service.embed([str(number) for number in range(12)])

    assert most == 3


def test_the_provider_needs_an_address_and_a_model() -> None:
    with pytest.raises(ConfigInvalid, match="url and model"):
        choose(EmbeddingSettings(provider="openai", url="http://x"))
