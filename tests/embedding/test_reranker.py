"""Reranker: sorts the best candidates by its scores; a failure leaves the order unchanged."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from folklore.config import RerankerSettings
from folklore.db.database import Database
from folklore.embedding.factory import configured_reranker
from folklore.embedding.http_client import Address
from folklore.embedding.protocol import Embedder
from folklore.embedding.reranker import POOL, HttpReranker
from folklore.errors import RerankerUnavailable
from folklore.memory.context import MemoryContext
from tests.person import Person, contents

Handler = Callable[[httpx.Request], httpx.Response]
FACTS = [
    "The harbour is closed on Sundays.", "The harbour master is called Ines.", "Ships pay for the harbour by length.",
    "The harbour was built in 1871.",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(_seconds: float) -> None: ...

    monkeypatch.setattr(asyncio, "sleep", sleep)


def reranker(
    handler: Handler, *, model: str | None = None, pool: int = 30
) -> HttpReranker:
    return HttpReranker(
        Address("http://rerank.test"), model, pool, httpx.MockTransport(handler)
    )


def longest_first(request: httpx.Request) -> httpx.Response:
    body = json.loads(request.content)
    texts = body.get("texts") or body["documents"]
    scored = [
        {"index": place, "score": float(len(text))} for place, text in enumerate(texts)
    ]
    return httpx.Response(200, json=scored[::-1])


async def test_a_request_without_a_model_has_the_form_of_text_embeddings_inference() -> (
    None
):
    bodies: list[Any] = []

    def record(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/rerank"
        bodies.append(json.loads(request.content))
        return longest_first(request)

    scores = await reranker(record).scores("where?", ["a", "bbb", "cc"])

    assert scores.tolist() == [1.0, 3.0, 2.0]
    assert bodies == [
        {"query": "where?", "texts": ["a", "bbb", "cc"], "truncate": True}
    ]


async def test_a_request_with_a_model_has_the_form_of_jina_and_cohere() -> None:
    bodies: list[Any] = []

    def record(request: httpx.Request) -> httpx.Response:
        bodies.append(json.loads(request.content))
        results = [
            {"index": 1, "relevance_score": 0.9},
            {"index": 0, "relevance_score": 0.1},
        ]
        return httpx.Response(200, json={"model": "m", "results": results})

    scores = await reranker(record, model="jina-reranker-v2").scores(
        "where?", ["a", "b"]
    )

    assert scores.tolist() == [0.1, 0.9]
    assert bodies == [
        {
            "model": "jina-reranker-v2",
            "query": "where?",
            "documents": ["a", "b"],
            "top_n": 2,
        }
    ]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (httpx.Response(500), "answered 500"),
        (httpx.Response(401), "answered 401"),
        (httpx.Response(200, content=b"nothing"), "not JSON"),
        (
            httpx.Response(200, json={"results": [{"index": 7, "relevance_score": 1}]}),
            "not a list of scores",
        ),
        (
            httpx.Response(200, json=[{"index": 0, "score": 1.0}]),
            "a number for each of 2",
        ),
        (
            httpx.Response(
                200, content=b'[{"index":0,"score":NaN},{"index":1,"score":1}]'
            ),
            "a number for each",
        ),
        (httpx.Response(413), "for its size"),
    ],
)
async def test_an_invalid_answer_raises_reranker_unavailable(
    answer: httpx.Response, reason: str
) -> None:
    with pytest.raises(RerankerUnavailable, match=reason):
        await reranker(lambda _: answer).scores("where?", ["a", "b"])


async def test_only_the_pool_is_sent_and_the_others_stay_after_it(
    database: Database, embedder: Embedder
) -> None:
    plain = Person(MemoryContext.of(database, embedder))
    await plain.keep(*FACTS)
    before = contents(await plain.recall("harbour"))
    sent: list[int] = []

    def record(request: httpx.Request) -> httpx.Response:
        sent.append(len(json.loads(request.content)["texts"]))
        return longest_first(request)

    answer = await Person(
        MemoryContext.of(database, embedder, reranker(record, pool=2))
    ).recall("harbour")

    assert sent == [2]
    assert answer.degraded == ()
    assert contents(answer) == [*sorted(before[:2], key=len, reverse=True), *before[2:]]


async def test_a_failing_reranker_leaves_the_order_and_is_reported_as_degraded(
    database: Database, embedder: Embedder
) -> None:
    plain = Person(MemoryContext.of(database, embedder))
    await plain.keep(*FACTS)
    before = contents(await plain.recall("harbour"))

    answer = await Person(
        MemoryContext.of(database, embedder, reranker(lambda _: httpx.Response(503)))
    ).recall("harbour")

    assert contents(answer) == before
    assert [item.branch for item in answer.degraded] == ["rerank"]
    assert "reranker answered 503" in answer.degraded[0].reason


async def test_searching_by_exact_words_is_not_reranked(
    database: Database, embedder: Embedder
) -> None:
    def not_called(_request: httpx.Request) -> httpx.Response:
        raise AssertionError("called")

    person = Person(MemoryContext.of(database, embedder, reranker(not_called)))
    await person.keep(*FACTS)

    assert contents(await person.search("1871")) == [FACTS[3]]


def test_a_reranker_is_used_only_with_an_address() -> None:
    chosen = configured_reranker(RerankerSettings(url="http://rerank.test/v1/rerank"))

    assert configured_reranker(RerankerSettings()) is None
    assert chosen is not None
    assert chosen.pool == POOL
