"""The log of requests: a line for each call and each request, and at no level a word of their content."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
import structlog
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.app import App
from folklore.callers import Caller
from folklore.config import Settings
from folklore.server.application.app import build_app
from folklore.server.current_caller import calling
from folklore.server.listener import by_token
from tests.servers import on_http, watched
from tests.wire import INITIALIZE, MCP, message

MARK = "quetzal"
TOKEN = {"Authorization": f"Bearer fk_{MARK}"}


async def everything_marked(url: str) -> None:
    """Send texts, questions, names, tokens and mistakes that hold the mark, in every place a client may put one."""
    async with Client(f"{url}/mcp", read_timeout_seconds=30) as assistant:
        stored = await assistant.call_tool(
            "memory_store",
            {
                "content": f"The {MARK} nests in holes.",
                "namespace": MARK,
                "tags": [MARK],
            },
        )
        assert not stored.is_error
        calls: list[tuple[str, dict[str, Any]]] = [
            (
                "memory_store",
                {
                    "content": f"AWS_SECRET_ACCESS_KEY={MARK}wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY"
                },
            ),
            ("memory_store", {"content": {MARK: MARK}}),
            ("memory_store", {"memories": [{"content": "x", MARK: MARK}]}),
            ("memory_recall", {"query": f"Where does the {MARK} nest?"}),
            ("memory_recall", {"query": f'"{MARK} AND ('}),
            ("memory_recall", {"query": MARK, "limit": MARK}),
            ("memory_recall", {"query": MARK, "namespaces": [f"{MARK}s"]}),
            ("memory_recall", {"query": MARK, "filters": {"time": MARK}}),
            ("search_keywords", {"query": MARK}),
            ("memory_get", {"ids": [MARK]}),
        ]
        for tool, arguments in calls:
            await assistant.call_tool(tool, arguments)
        with pytest.raises(MCPError, match="no tool"):
            await assistant.call_tool(f"memory_{MARK}", {})
        for uri in (f"memory://{MARK}s/recent", f"memory://item/{MARK}"):
            with pytest.raises(Exception, match=r"."):
                await assistant.read_resource(uri)
    async with Client(sse_client(f"{url}/sse"), read_timeout_seconds=30) as assistant:
        await assistant.call_tool("memory_recall", {"query": MARK})
    wrong: list[Any] = [
        message("tools/call", name="memory_store", arguments=MARK),
        message("tools/call", name={MARK: 1}),
        message(MARK, content=MARK),
        {"jsonrpc": MARK, "method": MARK},
        INITIALIZE | {"params": {"protocolVersion": MARK}},
    ]
    async with httpx.AsyncClient(
        base_url=url, headers=MCP | {"X-Request-Id": f"{MARK}!"}
    ) as client:
        for body in [
            *(json.dumps(one).encode() for one in wrong),
            f'{{"a": "{MARK}'.encode(),
        ]:
            await client.post(f"/mcp?token={MARK}", content=body)
            await client.post("/mcp", content=body, headers=TOKEN)
        async with client.stream("GET", "/sse") as stream:
            lines = stream.aiter_lines()
            while not (line := await anext(lines)).startswith("data:"):
                pass
            for body in [
                *(json.dumps(one).encode() for one in wrong),
                f'{{"a": "{MARK}'.encode(),
            ]:
                await client.post(line.removeprefix("data:").strip(), content=body)
        await client.get(f"/{MARK}?token={MARK}")
        await client.get("/sse/nowhere", headers=TOKEN)
        await client.get(f"/readyz?{MARK}")


@pytest.mark.parametrize("form", ["json", "console"])
async def test_no_log_shows_contents_questions_or_tokens(
    database_url: str, tmp_path: Path, form: str
) -> None:
    """Debug has the lines of every other level."""
    settings = watched(
        tmp_path, database_url=database_url, log_level="debug", log_format=form
    )
    async with on_http(settings) as server:
        await everything_marked(server.url)
        await server.end()
        text = server.log.read_text(encoding="utf-8")

    assert "request" in text
    assert "call" in text
    assert [line for line in text.splitlines() if MARK in line.lower()] == []


async def test_each_call_and_each_request_has_a_line(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(tmp_path, database_url=database_url, log_format="json")
    async with (
        on_http(settings) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        await client.get("/readyz")
        first = await client.post(
            "/mcp", json=INITIALIZE, headers=MCP | {"X-Request-Id": "from-a-proxy.42"}
        )
        second = await client.post(
            "/mcp",
            json=message("tools/call", name="memory_recall", arguments={"query": "x"}),
            headers=MCP,
        )
        third = await client.get("/nowhere")
        await server.end()
        lines = [
            json.loads(line)
            for line in server.log.read_text(encoding="utf-8").splitlines()
        ]

    ours = [line for line in lines if line["event"] in ("request", "call")]
    assert [(line["event"], line.get("method"), line.get("route"), line.get("status")) for line in ours] == [
        ("request", "POST", "/mcp", 200), ("call", None, None, None), ("request", "POST", "/mcp", 200),
        ("request", "GET", "other", 404),
    ]  # fmt: skip
    assert {line["level"] for line in ours} == {"info"}
    assert (ours[1]["tool"], ours[1]["outcome"]) == ("memory_recall", "ok")
    assert all(0 <= line["ms"] < 30_000 for line in ours)
    assert all("principal" not in line for line in ours)
    ids = [line["request_id"] for line in ours]
    assert ids[0] == first.headers["x-request-id"] == "from-a-proxy.42"
    assert ids[1] == ids[2] == second.headers["x-request-id"]
    assert ids[3] == third.headers["x-request-id"]
    assert len(set(ids)) == 3


class Recognised:
    """Stands in for authentication: sets the principal and the caller."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope.setdefault("state", {})["principal"] = "alice"
        with calling(Caller("alice", token=UUID(int=1))):
            await self._app(scope, receive, send)


async def test_the_principal_is_logged(settings: Settings) -> None:
    built: Starlette = build_app(App(settings), by_token("127.0.0.1", open_to_all=True))
    built.user_middleware.append(Middleware(Recognised))
    transport = httpx.ASGITransport(built)
    with structlog.testing.capture_logs() as lines:
        async with (
            built.router.lifespan_context(built),
            httpx.AsyncClient(
                base_url="http://127.0.0.1", transport=transport
            ) as client,
        ):
            await client.post(
                "/mcp",
                json=message(
                    "tools/call", name="memory_recall", arguments={"query": "x"}
                ),
                headers=MCP,
            )
            await client.get("/nowhere")

    logged = [
        (line["event"], line["principal"])
        for line in lines
        if line["event"] in ("request", "call")
    ]
    assert logged == [("call", "alice"), ("request", "alice"), ("request", "alice")]


async def test_an_unexpected_error_is_a_500_whose_log_lines_have_the_id_of_its_request(
    settings: Settings,
) -> None:
    async def crash(_request: Request) -> Response:
        raise ValueError(MARK)

    built: Starlette = build_app(App(settings), by_token("127.0.0.1", open_to_all=True))
    built.router.routes.insert(0, Route("/crash", crash))
    transport = httpx.ASGITransport(built)
    with structlog.testing.capture_logs(
        processors=[structlog.contextvars.merge_contextvars]
    ) as lines:
        async with httpx.AsyncClient(
            base_url="http://127.0.0.1", transport=transport
        ) as client:
            answer = await client.get("/crash")

    assert (answer.status_code, MARK in answer.text) == (500, False)
    id_ = answer.headers["x-request-id"]
    assert answer.json()["error"]["request_id"] == id_
    logged = [(line["event"], line["log_level"], line["request_id"]) for line in lines]
    assert logged == [("request_failed", "error", id_), ("request", "error", id_)]
    assert isinstance(lines[0]["exc_info"], ValueError)


@pytest.mark.parametrize("status", [500, 503, 599])
async def test_each_5xx_has_its_line_at_every_log_level(
    settings: Settings, status: int
) -> None:
    async def refuse(_request: Request) -> Response:
        return Response(status_code=status)

    built: Starlette = build_app(App(settings), by_token("127.0.0.1", open_to_all=True))
    built.router.routes.insert(0, Route("/refuse", refuse))
    with structlog.testing.capture_logs() as lines:
        async with httpx.AsyncClient(
            base_url="http://127.0.0.1", transport=httpx.ASGITransport(built)
        ) as client:
            await client.get("/refuse")

    assert [(line["status"], line["log_level"]) for line in lines] == [
        (status, "error")
    ]
