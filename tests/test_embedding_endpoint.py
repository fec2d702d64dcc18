"""An embedding service over HTTP, faked at httpx's transport seam."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import httpx
import numpy as np
import pytest

from folklore.config import EmbeddingSettings
from folklore.db.database import Database
from folklore.db.stores.models import Models
from folklore.embedding.circuit_breaker import Breaker
from folklore.embedding.factory import Choice, choose
from folklore.embedding.http_embedder import Endpoint, RemoteEmbedder
from folklore.embedding.ollama import ollama_embedder
from folklore.embedding.openai import openai_embedder
from folklore.embedding.protocol import PROBE
from folklore.errors import ConfigInvalid, EmbedderUnavailable
from folklore.memory.context import MemoryContext
from folklore.memory.models.active_model import ActiveModel, ModelSource
from tests.person import Person

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


async def test_a_date_in_retry_after_is_honoured(no_waiting: list[float]) -> None:
    headers = {"Date": "Mon, 04 May 2026 12:00:00 GMT", "Retry-After": "Mon, 04 May 2026 12:00:03 GMT"}
    answers = iter([httpx.Response(429, headers=headers), None])

    await embedder(lambda request: next(answers) or vectors(request)).embed(["a"])

    assert no_waiting == [3.0]


async def test_nobody_waits_longer_than_his_time_for_a_service_that_asks_for_more(no_waiting: list[float]) -> None:
    busy = embedder(lambda _: httpx.Response(429, headers={"Retry-After": "3600"}))

    with pytest.raises(EmbedderUnavailable, match="answered 429"):
        await busy.embed(["a"])

    assert no_waiting == []


async def test_a_slow_first_byte_ends_with_the_time_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        return vectors(request)

    service = openai_embedder(Endpoint("http://model.test", "m", timeout=0.05), httpx.MockTransport(slow))

    with pytest.raises(EmbedderUnavailable, match=r"took longer than 0\.05 s"):
        await service.embed(["a"])


async def test_a_truncated_body_is_tried_again() -> None:
    class Broken(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b'{"data": [{"index": 0, "embed'
            raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")

    answers = iter([httpx.Response(200, stream=Broken()), None])

    found = await embedder(lambda request: next(answers) or vectors(request)).embed(["a"])

    assert found.shape == (1, 3)


async def test_too_few_vectors_for_a_batch_are_none(no_waiting: list[float]) -> None:
    def one(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"data": json.loads(vectors(request).content)["data"][-1:]})

    with pytest.raises(EmbedderUnavailable, match="1 vectors for 2 texts"):
        await embedder(one).embed(["a", "b"])


async def test_a_batch_that_is_too_large_is_halved_and_the_size_remembered() -> None:
    sizes: list[int] = []

    def small(request: httpx.Request) -> httpx.Response:
        sizes.append(len(json.loads(request.content)["input"]))
        if sizes[-1] > 8:
            return httpx.Response(422, json={"error": "batch size 32 > maximum allowed batch size 8"})
        return vectors(request)

    service = embedder(small)
    found = await service.embed([str(number) * (number + 1) for number in range(32)])
    asked = len(sizes)
    await service.embed([str(number) for number in range(16)])

    assert found.shape == (32, 3)
    assert np.all(np.diff(found[:, 0]) >= 0)  # still in order
    assert sizes[asked:] == [8, 8]


async def test_a_text_over_the_token_limit_is_averaged_from_its_pieces() -> None:
    longest = 0

    def short(request: httpx.Request) -> httpx.Response:
        nonlocal longest
        texts = json.loads(request.content)["input"]
        if max(map(len, texts)) > 1000:
            return httpx.Response(400, json={"error": "This model's maximum context length is 256 tokens"})
        longest = max(longest, *map(len, texts))
        return vectors(request)

    found = await embedder(short).embed(["short", "word " * 2000])

    assert found.shape == (2, 3)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    assert longest <= 1000


async def test_a_known_limit_cuts_long_texts_before_they_are_sent() -> None:
    requests: list[list[str]] = []

    def note(request: httpx.Request) -> httpx.Response:
        requests.append(json.loads(request.content)["input"])
        return vectors(request)

    found = await embedder(note, max_tokens=100, document_prefix="passage: ").embed(["short", "word " * 200])

    [sent] = requests
    assert found.shape == (2, 3)
    assert all(text.startswith("passage: ") for text in sent)
    assert "".join(text.removeprefix("passage: ") for text in sent[1:]) == "word " * 200
    assert max(map(len, sent)) <= 320


async def test_a_question_asked_again_makes_no_request() -> None:
    asked: list[str] = []

    def note(request: httpx.Request) -> httpx.Response:
        asked.extend(json.loads(request.content)["input"])
        return vectors(request)

    service = embedder(note, query_prefix="query: ")
    first = await service.embed_question(["where", "is", "it"], [1.0] * 3)
    again = await service.embed_question(["where", "is", "it"], [0.1] * 3)

    assert asked == ["query: where is it"]
    assert np.array_equal(first, again)


async def test_a_service_that_keeps_failing_is_left_alone_for_a_while() -> None:
    count = 0

    def dead(request: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        raise httpx.ConnectError("refused")

    service = embedder(dead)
    for _ in range(3):
        with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
            await service.embed(["a"])
    tried = count

    with pytest.raises(EmbedderUnavailable, match="failed again and again"):
        await service.embed(["a"])

    assert count == tried


def test_the_breaker_lets_one_try_after_each_pause_and_closes_on_success() -> None:
    now = 0.0
    breaker = Breaker(failures=2, first=2.0, most=5.0, clock=lambda: now)
    assert breaker.wait() == 0
    breaker.failed()
    assert breaker.wait() == 0
    breaker.failed()
    assert breaker.wait() == 2.0
    now = 2.0
    assert breaker.wait() == 0  # one may try
    assert breaker.wait() > 0  # the others wait for him
    breaker.failed()
    assert breaker.wait() == 4.0
    now = 6.0
    assert breaker.wait() == 0
    breaker.failed()
    assert breaker.wait() == 5.0  # never longer than the most
    breaker.succeeded()
    assert breaker.wait() == 0


async def test_a_service_is_measured_again_when_it_comes_back() -> None:
    texts: list[str] = []
    failing = False

    def handler(request: httpx.Request) -> httpx.Response:
        if failing:
            return httpx.Response(401)
        texts.extend(json.loads(request.content)["input"])
        return vectors(request)

    service = embedder(handler)
    await service.probe()
    await service.probe()
    assert texts == [PROBE]
    failing = True
    with pytest.raises(EmbedderUnavailable):
        await service.embed(["a"])
    failing = False

    await service.probe()

    assert texts == [PROBE, PROBE]


@pytest.mark.parametrize(
    ("url", "asked", "header"),
    [
        ("http://here.test/v1", "http://here.test/v1/embeddings", "authorization"),
        ("http://here.test/v1/embeddings", "http://here.test/v1/embeddings", "authorization"),
        (
            "https://us.openai.azure.com/openai/deployments/small?api-version=2024-10-21",
            "https://us.openai.azure.com/openai/deployments/small/embeddings?api-version=2024-10-21",
            "api-key",
        ),
        ("https://us.openai.azure.com/openai/v1/", "https://us.openai.azure.com/openai/v1/embeddings", "api-key"),
    ],
)
async def test_addresses_are_taken_as_people_write_them(url: str, asked: str, header: str) -> None:
    seen: list[httpx.Request] = []

    def note(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return vectors(request)

    await openai_embedder(Endpoint(url, "m", "sk-1"), httpx.MockTransport(note)).embed(["a"])

    assert str(seen[0].url) == asked
    assert seen[0].headers[header] in ("sk-1", "Bearer sk-1")


async def test_a_service_that_tells_questions_from_texts_is_told() -> None:
    asked: list[dict[str, object]] = []

    def note(request: httpx.Request) -> httpx.Response:
        asked.append(json.loads(request.content))
        return vectors(request)

    service = openai_embedder(
        Endpoint("https://api.voyageai.com/v1", "voyage-3", dimensions=3), httpx.MockTransport(note)
    )
    await service.embed(["a"])
    await service.embed_question(["a"], [1.0])

    assert [body["input_type"] for body in asked] == ["document", "query"]
    assert asked[0]["output_dimension"] == 3


async def test_ollama_is_spoken_to_by_its_own_route() -> None:
    asked: list[httpx.Request] = []

    def note(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        texts = json.loads(request.content)["input"]
        if max(map(len, texts)) > 500:
            return httpx.Response(400, json={"error": "the input length exceeds the context length"})
        return httpx.Response(200, json={"embeddings": [[1.0, float(len(text))] for text in texts]})

    service = ollama_embedder(Endpoint("http://localhost:11434/v1", "nomic-embed-text"), httpx.MockTransport(note))
    found = await service.embed(["a", "b " * 400])

    assert found.shape == (2, 2)
    assert str(asked[0].url) == "http://localhost:11434/api/embed"
    assert json.loads(asked[0].content)["truncate"] is False
    assert (await service.model()).provider == "ollama"


async def test_a_store_makes_one_request_a_recall_one_and_the_same_question_none(database: Database) -> None:
    requests: list[int] = []

    def note(request: httpx.Request) -> httpx.Response:
        requests.append(len(json.loads(request.content)["input"]))
        return vectors(request)

    service = embedder(note)
    choice = Choice("openai", "some-model")
    person = Person(
        MemoryContext.of(database, ActiveModel(service, ModelSource(Models(database), choice, lambda _: service)))
    )
    await service.probe()  # as a server does when it starts
    requests.clear()

    await person.keep(*(f"The ship number {number} came in." for number in range(120)))
    assert requests == [120]
    answer = await person.recall("which ship came in")
    assert answer.degraded == ()
    assert requests == [120, 1]
    await person.recall("which ship came in")
    assert requests == [120, 1]
    await person.keep("One more.", "And another.")
    assert requests == [120, 1, 2]
