"""Limits on load: calls at once, calls in a queue, streams, calls of one principal, bodies together."""

import asyncio
from pathlib import Path

import asyncpg
import httpx
import pytest
from hypothesis import given, strategies as st
from mcp import Client
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.server.limits import BodyLimit, ConcurrencyLimit, Limits, Rate, RateLimit
from folklore.server.listener import OWN, Entrance, by_token
from tests.servers import limited, on_http, watched
from tests.wire import MCP, call, head, wire


class Authenticated:
    """Stands in for authentication: sets the principal that the request's header names."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        named = dict(scope["headers"]).get(b"x-principal")
        if named is not None:
            scope["state"] = {"principal": named.decode()}
        await self.app(scope, receive, send)


def calling(rate_per_minute: int) -> httpx.AsyncClient:
    """Return a client of an application that answers `done`, behind the limit and authentication."""
    app = Authenticated(
        RateLimit(PlainTextResponse("done"), per_minute=rate_per_minute)
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here")


async def test_a_principal_that_calls_too_often_gets_429_and_a_time_to_try_again() -> (
    None
):
    async with calling(60) as client:
        statuses = [
            (await client.post("/mcp", headers={"X-Principal": "alice"})).status_code
            for _ in range(12)
        ]
        late = await client.post("/mcp", headers={"X-Principal": "alice"})
        other = await client.post("/mcp", headers={"X-Principal": "bob"})
        without_token = [(await client.post("/mcp")).status_code for _ in range(20)]

    assert statuses == [200] * 12
    assert late.status_code == 429
    assert late.headers["retry-after"] == "1"
    error = late.json()["error"]
    assert set(error) == {"code", "message", "hint", "retry_after"}
    assert (error["code"], error["retry_after"]) == ("rate_limited", 1)
    assert "alice" in error["message"]
    assert other.status_code == 200
    assert without_token == [200] * 20


async def test_a_rate_of_a_few_a_minute_lets_the_first_call_through() -> None:
    async with calling(2) as client:
        first, second = [
            await client.post("/mcp", headers={"X-Principal": "alice"})
            for _ in range(2)
        ]

    assert (first.status_code, second.status_code) == (200, 429)
    assert 25 <= int(second.headers["retry-after"]) <= 30


async def test_a_rate_of_0_is_no_limit() -> None:
    async with calling(0) as client:
        statuses = {
            (await client.post("/mcp", headers={"X-Principal": "alice"})).status_code
            for _ in range(50)
        }

    assert statuses == {200}


@given(st.lists(st.floats(0, 30), min_size=1, max_size=60), st.integers(1, 600))
def test_no_interval_has_more_calls_than_the_burst_and_the_rate_allow(
    pauses: list[float], rate: int
) -> None:
    now = 0.0
    limit = Rate(rate, lambda: now)
    taken = []
    for pause in pauses:
        now += pause
        wait = limit.take("alice")
        if wait:
            now += wait + 1e-6
            assert limit.take("alice") == 0, (
                "a call after the time that was given is allowed"
            )
        taken.append(now)

    for start in range(len(taken)):
        for end in range(start, len(taken)):
            assert (
                end - start + 1
                <= max(1, rate / 5) + (taken[end] - taken[start]) * rate / 60 + 1
            )


def test_a_pause_allows_no_more_than_the_burst_however_long_it_is() -> None:
    now = 0.0
    limit = Rate(60, lambda: now)
    limit.take("alice")
    now = 3_600.0
    assert [limit.take("alice") for _ in range(14)] == [0] * 12 + [pytest.approx(1)] * 2

    now += 0.25
    assert limit.take("alice") == pytest.approx(0.75)
    now += 0.75
    assert [limit.take("alice") for _ in range(2)] == [0, pytest.approx(1)]


class Gate:
    """An application that answers once it is opened, and counts the calls inside."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.inside += 1
        try:
            await self.opened.wait()
        finally:
            self.inside -= 1
        if scope["path"] == "/crash":
            raise ZeroDivisionError
        await PlainTextResponse("done")(scope, receive, send)


def at(gate: Gate, *, seconds: float = 30.0) -> httpx.AsyncClient:
    """Return a client of the gate: two calls may run, one may wait, one may stream."""
    limited_gate = ConcurrencyLimit(
        gate, limits=Limits(calls=2, waiting=1, wait_seconds=seconds, streams=1)
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(Entrance(limited_gate, by_token("here"))),
        base_url="http://here",
    )


async def until_inside(gate: Gate, count: int) -> None:
    async with asyncio.timeout(120):
        while gate.inside != count:
            await asyncio.sleep(0)


async def waiting_call(client: httpx.AsyncClient) -> asyncio.Task[httpx.Response]:
    """Start a call that waits in the queue."""
    task = asyncio.create_task(client.post("/mcp"))
    for _ in range(10):
        await asyncio.sleep(0)
    return task


async def test_calls_beyond_those_that_run_wait_and_the_rest_get_503() -> None:
    gate = Gate()
    async with at(gate, seconds=600) as client:
        running = [asyncio.create_task(client.post("/mcp")) for _ in range(2)]
        await until_inside(gate, 2)
        left = await waiting_call(client)
        left.cancel()
        await asyncio.wait([left])
        waiting = await waiting_call(client)
        async with asyncio.timeout(120):
            refused = await client.post("/mcp")
            assert gate.inside == 2
            gate.opened.set()
            answers = await asyncio.gather(*running, waiting)

    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.json()["error"]["code"] == "overloaded"
    assert "http.workers" in refused.json()["error"]["hint"]
    assert [answer.status_code for answer in answers] == [200] * 3


async def test_a_call_that_waited_too_long_gets_503_and_keeps_no_place() -> None:
    gate = Gate()
    async with at(gate, seconds=0.05) as client:
        running = [asyncio.create_task(client.post("/mcp")) for _ in range(2)]
        await until_inside(gate, 2)
        late = [await client.post("/mcp") for _ in range(3)]
        gate.opened.set()
        await asyncio.gather(*running)
        after = [await client.post("/mcp") for _ in range(5)]

    assert {answer.status_code for answer in late} == {503}
    assert {answer.status_code for answer in after} == {200}


async def test_streams_have_places_of_their_own_and_probes_need_none() -> None:
    gate = Gate()
    async with at(gate) as client:
        running = [asyncio.create_task(client.post("/mcp")) for _ in range(2)]
        streaming = asyncio.create_task(client.get("/sse"))
        probing = [
            asyncio.create_task(client.get(path))
            for path in ("/healthz", "/readyz", "/metrics")
        ]
        await until_inside(gate, 6)
        refused = await client.get("/sse")
        gate.opened.set()
        answers = await asyncio.gather(*running, streaming, *probing)
        again = await client.get("/sse")

    assert refused.status_code == 503
    assert {answer.status_code for answer in answers} == {200}
    assert again.status_code == 200


async def test_a_call_that_crashes_or_is_cancelled_frees_its_place() -> None:
    gate = Gate()
    async with at(gate) as client:
        cancelled = [asyncio.create_task(client.post("/mcp")) for _ in range(2)]
        await until_inside(gate, 2)
        for task in cancelled:
            task.cancel()
        await asyncio.wait(cancelled)
        gate.opened.set()
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await client.post("/crash")
        after = await asyncio.gather(*(client.post("/mcp") for _ in range(3)))

    assert {answer.status_code for answer in after} == {200}


async def test_bodies_together_have_a_budget_that_each_call_frees() -> None:
    gate = Gate()
    body = BodyLimit(
        gate, limits=Limits(body_size=100, body_seconds=600, bodies_size=250)
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(Entrance(body, by_token("here"))),
        base_url="http://here",
    ) as client:
        held = [
            asyncio.create_task(client.post("/mcp", content=b"x" * 100))
            for _ in range(2)
        ]
        await until_inside(gate, 2)
        refused = await client.post("/mcp", content=b"x" * 100)
        small = asyncio.create_task(client.post("/mcp", content=b"x" * 50))
        await until_inside(gate, 3)
        gate.opened.set()
        answers = await asyncio.gather(*held, small)
        after = [await client.post("/mcp", content=b"x" * 100) for _ in range(5)]

    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    assert {answer.status_code for answer in [*answers, *after]} == {200}


async def test_what_this_user_sends_by_the_socket_is_not_limited() -> None:
    gate = Gate()
    limits = Limits(calls=1, waiting=0, body_size=100, bodies_size=150)
    limited_gate = BodyLimit(ConcurrencyLimit(gate, limits=limits), limits=limits)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(Entrance(limited_gate, OWN)),
        base_url="http://here",
    ) as client:
        calls = [
            asyncio.create_task(client.post("/api/store", content=b"x" * 1_000))
            for _ in range(3)
        ]
        await until_inside(gate, 3)
        gate.opened.set()
        answers = await asyncio.gather(*calls)

    assert {answer.status_code for answer in answers} == {200}


async def test_an_overloaded_server_answers_503_and_still_answers_probes(
    database_url: str, connection: asyncpg.Connection, tmp_path: Path
) -> None:
    settings = limited(
        watched(tmp_path, database_url=database_url),
        calls=2,
        waiting=2,
        wait_seconds=1,
        streams=2,
    )
    async with (
        on_http(settings, module="tests.limited") as server,
        httpx.AsyncClient(base_url=server.url, timeout=30, headers=MCP) as client,
        wire(server.port) as first,
        wire(server.port) as second,
    ):
        async with Client(f"{server.url}/mcp") as assistant:
            assert not (
                await assistant.call_tool("memory_store", {"content": "before"})
            ).is_error
        async with connection.transaction():
            await connection.execute("lock table memories in access exclusive mode")
            calls = [
                asyncio.create_task(client.post("/mcp", json=call("memory_list")))
                for _ in range(8)
            ]
            done: set[asyncio.Task[httpx.Response]] = set()
            async with asyncio.timeout(120):
                while len(done) < 6:
                    done, _ = await asyncio.wait(
                        calls, return_when=asyncio.FIRST_COMPLETED, timeout=0.1
                    )
            alive = await client.get("/healthz")
        answers = await asyncio.gather(*calls)
        for stream in (first, second):
            stream.send(head("GET", "/sse"))
            assert await stream.status() == 200
        third = await client.get("/sse")

    assert sorted(answer.status_code for answer in answers) == [200, 200, *[503] * 6]
    assert alive.status_code == 200
    assert third.status_code == 503
