"""Embedding service over HTTP, replaced by a handler at httpx's transport."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

import httpx
import numpy as np
import pytest

from folklore.contract.recall import RecallRequest
from folklore.db.database import Database
from folklore.db.stores.models import Models
from folklore.embedding.http_client import Address, CircuitBreaker
from folklore.embedding.http_embedder import HttpEmbedder
from folklore.embedding.protocol import PROBE, ModelChoice
from folklore.embedding.request_formats import OllamaFormat, OpenAIFormat
from folklore.errors import EmbedderUnavailable
from folklore.memory.context import MemoryContext
from folklore.memory.context.active_model import ActiveModel, ModelSource
from tests.person import Person

Handler = (
    Callable[[httpx.Request], httpx.Response]
    | Callable[[httpx.Request], Coroutine[None, None, httpx.Response]]
)
CHOICE = ModelChoice("openai", "some-model", dimensions=3)
ADDRESS = Address("http://model.test/v1")


def embedder(
    handler: Handler,
    choice: ModelChoice = ModelChoice("openai", "some-model"),
    address: Address = ADDRESS,
    *,
    max_tokens: int | None = None,
    batch_size: int = 500,
) -> HttpEmbedder:
    return HttpEmbedder(
        OpenAIFormat(address.url),
        choice,
        address,
        max_tokens=max_tokens,
        batch_size=batch_size,
        transport=httpx.MockTransport(handler),
    )


def vectors(request: httpx.Request, size: int = 3) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    data = [
        {"index": place, "embedding": [float(len(text))] + [1.0] * (size - 1)}
        for place, text in enumerate(texts)
    ]
    return httpx.Response(200, json={"data": data[::-1]})


class Recorder:
    """A service that keeps its requests."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return vectors(request)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    @property
    def sizes(self) -> list[int]:
        return [len(body["input"]) for body in self.bodies]


@pytest.fixture
def service() -> Recorder:
    return Recorder()


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


async def test_a_batch_is_as_few_requests_as_its_size_allows(service: Recorder) -> None:
    await embedder(service, batch_size=4).embed([str(number) for number in range(10)])

    assert sorted(service.sizes) == [2, 4, 4]


async def test_a_question_is_one_request_of_its_whole_text(service: Recorder) -> None:
    await embedder(service, CHOICE).embed_question(
        ["where", "is", "it?"], [1.0, 0.1, 0.5]
    )

    assert service.bodies == [
        {"model": "some-model", "input": ["where is it?"], "dimensions": 3}
    ]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        (
            {
                "Date": "Mon, 04 May 2026 12:00:00 GMT",
                "Retry-After": "Mon, 04 May 2026 12:00:03 GMT",
            },
            3,
        ),
    ],
)
async def test_a_transient_failure_is_retried_after_the_time_or_the_date_in_retry_after(
    no_waiting: list[float], headers: dict[str, str], seconds: float
) -> None:
    answers = iter([httpx.Response(429, headers=headers), httpx.Response(503), None])

    found = await embedder(lambda request: next(answers) or vectors(request)).embed(
        ["a"]
    )

    assert found.shape == (1, 3)
    assert no_waiting[0] == seconds
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
        (
            lambda _: httpx.Response(200, json={"data": [{"index": 0}]}),
            "not a list of vectors",
        ),
        (lambda _: httpx.Response(200, json={"data": []}), "0 vectors for 1 texts"),
        (
            lambda _: httpx.Response(
                200, json={"data": [{"index": n, "embedding": [1.0]} for n in (0, 1)]}
            ),
            "2 vectors",
        ),
        (
            lambda _: httpx.Response(
                200, content=b'{"data":[{"index":0,"embedding":[NaN,1]}]}'
            ),
            "NaN",
        ),
        (lambda request: vectors(request, size=4), "4 dimensions, not 3"),
    ],
)
async def test_an_invalid_answer_raises_embedder_unavailable(
    handler: Handler, reason: str
) -> None:
    with pytest.raises(EmbedderUnavailable, match=reason):
        await embedder(handler, CHOICE, replace(ADDRESS, api_key="sk-secret")).embed(
            ["a"]
        )


@pytest.mark.parametrize(
    ("status", "headers"), [(401, {}), (429, {"Retry-After": "3600"})]
)
async def test_neither_a_permanent_failure_is_retried_nor_one_whose_retry_is_after_the_timeout(
    no_waiting: list[float], status: int, headers: dict[str, str]
) -> None:
    with pytest.raises(EmbedderUnavailable, match=f"answered {status}"):
        await embedder(lambda _: httpx.Response(status, headers=headers)).embed(["a"])

    assert no_waiting == []


async def test_the_number_of_simultaneous_requests_is_limited() -> None:
    running = most = 0

    async def slow(request: httpx.Request) -> httpx.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.tasks.sleep(0.001)
        running -= 1
        return vectors(request)

    service = embedder(slow, address=replace(ADDRESS, concurrency=3), batch_size=1)
    await service.embed([str(number) for number in range(12)])

    assert most == 3


async def test_an_answer_after_the_timeout_is_not_awaited() -> None:
    async def slow(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        return vectors(request)

    service = embedder(slow, address=replace(ADDRESS, timeout=0.05))

    with pytest.raises(EmbedderUnavailable, match=r"took longer than 0\.05 s"):
        await service.embed(["a"])


async def test_requests_are_smaller_after_a_timeout() -> None:
    sizes: list[int] = []

    async def slow(request: httpx.Request) -> httpx.Response:
        sizes.append(sum(map(len, json.loads(request.content)["input"])))
        if sizes[-1] > 4_000:
            await asyncio.Event().wait()
        return vectors(request)

    service = embedder(slow, address=replace(ADDRESS, timeout=2.0))
    texts = ["word " * 100] * 16
    with pytest.raises(EmbedderUnavailable, match="took longer"):
        await service.embed(texts)
    found = await service.embed(texts)

    assert found.shape == (16, 3)
    assert sizes == [8_000, 2_000, 2_000, 2_000, 2_000]


async def test_a_truncated_answer_is_retried() -> None:
    class Broken(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b'{"data": [{"index": 0, "embed'
            raise httpx.RemoteProtocolError(
                "peer closed connection without sending complete message body"
            )

    answers = iter([httpx.Response(200, stream=Broken()), None])

    found = await embedder(lambda request: next(answers) or vectors(request)).embed(
        ["a"]
    )

    assert found.shape == (1, 3)


async def test_a_rejected_batch_is_halved_and_later_batches_are_smaller() -> None:
    sizes: list[int] = []

    def small(request: httpx.Request) -> httpx.Response:
        sizes.append(len(json.loads(request.content)["input"]))
        if sizes[-1] > 8:
            return httpx.Response(
                422, json={"error": "batch size 32 > maximum allowed batch size 8"}
            )
        return vectors(request)

    service = embedder(small)
    found = await service.embed([str(number) * (number + 1) for number in range(32)])
    sent = len(sizes)
    await service.embed([str(number) for number in range(16)])

    assert found.shape == (32, 3)
    assert np.all(np.diff(found[:, 0]) >= 0)  # still in order
    assert sizes[sent:] == [8, 8]


async def test_a_text_over_the_token_limit_is_averaged_from_its_pieces() -> None:
    longest = 0

    def short(request: httpx.Request) -> httpx.Response:
        nonlocal longest
        texts = json.loads(request.content)["input"]
        if max(map(len, texts)) > 1000:
            return httpx.Response(
                400, json={"error": "This model's maximum context length is 256 tokens"}
            )
        longest = max(longest, *map(len, texts))
        return vectors(request)

    found = await embedder(short).embed(["short", "word " * 2000])

    assert found.shape == (2, 3)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0)
    assert longest <= 1000


async def test_long_texts_for_a_model_with_a_known_limit_are_sent_in_pieces(
    service: Recorder,
) -> None:
    choice = ModelChoice("openai", "m", document_prefix="passage: ")

    found = await embedder(service, choice, max_tokens=100).embed(
        ["short", "word " * 200]
    )

    [sent] = [body["input"] for body in service.bodies]
    assert found.shape == (2, 3)
    assert all(text.startswith("passage: ") for text in sent)
    assert "".join(text.removeprefix("passage: ") for text in sent[1:]) == "word " * 200
    assert max(map(len, sent)) <= 320


async def test_a_repeated_question_needs_no_request(service: Recorder) -> None:
    model = embedder(service, ModelChoice("openai", "m", query_prefix="query: "))
    first = await model.embed_question(["where", "is", "it"], [1.0] * 3)
    again = await model.embed_question(["where", "is", "it"], [0.1] * 3)

    assert [body["input"] for body in service.bodies] == [["query: where is it"]]
    assert np.array_equal(first, again)


async def test_a_service_that_keeps_failing_gets_no_requests_for_some_time() -> None:
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

    with pytest.raises(EmbedderUnavailable, match="failed several times in a row"):
        await service.embed(["a"])

    assert count == tried


def test_the_breaker_allows_one_call_after_each_pause_and_closes_on_success() -> None:
    now = 0.0
    breaker = CircuitBreaker(failures=2, first=2.0, longest=5.0, clock=lambda: now)
    assert breaker.seconds_to_wait() == 0
    breaker.record_failure()
    assert breaker.seconds_to_wait() == 0
    breaker.record_failure()
    assert breaker.seconds_to_wait() == 2.0
    now = 2.0
    assert breaker.seconds_to_wait() == 0  # the one call
    assert breaker.seconds_to_wait() > 0
    breaker.record_failure()
    assert breaker.seconds_to_wait() == 4.0
    now = 6.0
    assert breaker.seconds_to_wait() == 0
    breaker.record_failure()
    assert breaker.seconds_to_wait() == 5.0  # the longest pause
    breaker.record_success()
    assert breaker.seconds_to_wait() == 0


async def test_the_fingerprint_is_measured_again_after_a_failure() -> None:
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
    ("url", "expected", "header"),
    [
        ("http://here.test/v1", "http://here.test/v1/embeddings", "authorization"),
        (
            "http://here.test/v1/embeddings",
            "http://here.test/v1/embeddings",
            "authorization",
        ),
        (
            "https://us.openai.azure.com/openai/deployments/small?api-version=2024-10-21",
            "https://us.openai.azure.com/openai/deployments/small/embeddings?api-version=2024-10-21",
            "api-key",
        ),
        (
            "https://us.openai.azure.com/openai/v1/",
            "https://us.openai.azure.com/openai/v1/embeddings",
            "api-key",
        ),
    ],
)
async def test_the_usual_forms_of_an_address_are_accepted(
    service: Recorder, url: str, expected: str, header: str
) -> None:
    await embedder(service, address=Address(url, "sk-1")).embed(["a"])

    [request] = service.requests
    assert str(request.url) == expected
    assert request.headers[header] in ("sk-1", "Bearer sk-1")


async def test_voyage_gets_the_type_of_the_input(service: Recorder) -> None:
    model = embedder(service, CHOICE, Address("https://api.voyageai.com/v1"))
    await model.embed(["a"])
    await model.embed_question(["a"], [1.0])

    assert [body["input_type"] for body in service.bodies] == ["document", "query"]
    assert service.bodies[0]["output_dimension"] == 3


async def test_ollama_gets_requests_at_its_own_route() -> None:
    sent: list[httpx.Request] = []

    def record(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        texts = json.loads(request.content)["input"]
        if max(map(len, texts)) > 500:
            return httpx.Response(
                400, json={"error": "the input length exceeds the context length"}
            )
        return httpx.Response(
            200, json={"embeddings": [[1.0, float(len(text))] for text in texts]}
        )

    choice = ModelChoice("ollama", "nomic-embed-text")
    address = Address("http://localhost:11434/v1")
    service = HttpEmbedder(
        OllamaFormat(address.url),
        choice,
        address,
        transport=httpx.MockTransport(record),
    )
    found = await service.embed(["a", "b " * 400])

    assert found.shape == (2, 2)
    assert str(sent[0].url) == "http://localhost:11434/api/embed"
    assert json.loads(sent[0].content)["truncate"] is False
    assert (await service.model()).provider == "ollama"


async def test_a_store_needs_one_request_a_recall_one_and_a_repeated_question_none(
    service: Recorder, database: Database
) -> None:
    model = embedder(service)
    choice = ModelChoice("openai", "some-model")
    person = Person(
        MemoryContext.of(
            database,
            ActiveModel(model, ModelSource(Models(database), choice, lambda _: model)),
        )
    )
    await model.probe()  # as a server does when it starts
    service.requests.clear()

    await person.keep(*(f"The ship number {number} came in." for number in range(120)))
    assert service.sizes == [120]
    answer = await person.recall("which ship came in")
    assert answer.degraded == ()
    assert service.sizes == [120, 1]
    await person.recall("which ship came in")
    assert service.sizes == [120, 1]
    await person.keep("One more.", "And another.")
    assert service.sizes == [120, 1, 2]


async def test_a_question_that_is_asked_in_its_project_and_elsewhere_is_embedded_once(
    database: Database,
) -> None:
    questions: list[str] = []

    async def record(request: httpx.Request) -> httpx.Response:
        [text, *more] = json.loads(request.content)["input"]
        if not more:
            questions.append(text)
        # both searches have begun
        await asyncio.wait([asyncio.ensure_future(asyncio.Event().wait())], timeout=0.3)
        return vectors(request)

    service = embedder(record)
    choice = ModelChoice("openai", "some-model")
    person = Person(
        MemoryContext.of(
            database,
            ActiveModel(
                service, ModelSource(Models(database), choice, lambda _: service)
            ),
        ),
        project="harbour",
    )
    for namespace in ("harbour", "airport"):
        await person.keep("The ship came in.", "The ferry left.", namespace=namespace)
    await person.call(RecallRequest(query="which ferry left"))  # opens the connections
    questions.clear()

    answer = await person.call(RecallRequest(query="which ship came in"))

    assert set(answer.searched) == {"harbour", "airport"}
    assert len(questions) == 1
