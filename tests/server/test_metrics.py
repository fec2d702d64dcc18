"""GET /metrics: counts of the server's own work, for clients that may see them, without stored contents."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest
from mcp import Client, MCPError
from prometheus_client.parser import text_string_to_metric_families

from folklore.app import App
from folklore.callers import Caller
from folklore.config import Settings
from folklore.db.database import Database, PoolLimits, PoolStatistics
from folklore.memory.context.usage import UsageQueue
from folklore.server.application.app import build_app
from folklore.server.application.metrics import (
    Metrics,
    forget_ended_workers,
    shared_folder,
)
from folklore.server.listener import by_token
from tests import ROOT
from tests.person import NOON, Person
from tests.scraping import Scraped, scraped, until
from tests.servers import HttpServer, Watched, free_port, on_http, watched

MONITORING = ROOT / "docs" / "how-to" / "monitor.md"


@pytest.fixture(scope="module")
async def server(
    address: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[HttpServer]:
    async with on_http(
        watched(tmp_path_factory.mktemp("metrics"), database_url=address)
    ) as running:
        yield running


@pytest.fixture
async def client(server: HttpServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url) as opened:
        yield opened


async def asked(server: HttpServer, tool: str, **arguments: object) -> None:
    async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as assistant:
        await assistant.call_tool(tool, arguments)


async def test_calls_are_counted_and_timed_and_batches_have_a_size(
    server: HttpServer, client: httpx.AsyncClient
) -> None:
    before = await scraped(client)
    await asked(
        server,
        "memory_store",
        memories=[{"content": f"Lark {number} nests."} for number in range(7)],
    )
    await asked(server, "memory_store", content=" ")
    await asked(server, "memory_recall", query="Where do larks nest?")
    await asked(server, "memory_recall", query="larks", limit=1000)
    await asked(server, "memory_recall", query="larks", namespaces=["marked-namespace"])
    async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as assistant:
        with pytest.raises(MCPError, match="no tool"):
            await assistant.call_tool("marked-tool", {"query": "larks"})
    more = partial((await scraped(client)).since, before)

    calls = "folklore_tool_calls_total"
    assert more(calls, tool="memory_store", outcome="ok") == 1
    assert more(calls, tool="memory_recall", outcome="ok") == 1
    assert more(calls, tool="memory_recall", outcome="invalid_input") == 1
    assert more(calls, tool="memory_recall", outcome="not_found") == 1
    assert more(calls) == 5
    assert more("folklore_store_batch_memories_count") == 1
    assert more("folklore_store_batch_memories_sum") == 7
    assert more("folklore_tool_seconds_count", tool="memory_recall") == 3
    assert 0 < more("folklore_tool_seconds_sum", tool="memory_recall") < 30
    assert more("folklore_tool_seconds_bucket", tool="memory_recall", le="30.0") == 3


async def test_results_are_counted_by_the_branch_that_found_them(
    server: HttpServer, client: httpx.AsyncClient
) -> None:
    await asked(
        server, "memory_store", content="Ospreys eat herring.", namespace="ospreys"
    )
    before = await scraped(client)
    await asked(
        server, "memory_recall", query="What do ospreys eat?", namespaces=["ospreys"]
    )
    await asked(server, "search_keywords", query="herring", namespaces=["ospreys"])
    await asked(server, "search_keywords", query="ptarmigan", namespaces=["ospreys"])
    more = partial((await scraped(client)).since, before)

    branches = {
        name: more("folklore_recall_results_total", branch=name)
        for name in ("both", "keyword", "dense")
    }
    assert branches == {"both": 1, "keyword": 1, "dense": 0}
    assert [more("folklore_recalls_total", found=found) for found in ("yes", "no")] == [
        2,
        1,
    ]


async def test_requests_are_counted_by_route_and_status_and_never_by_path(
    server: HttpServer, client: httpx.AsyncClient
) -> None:
    before = await scraped(client)
    await client.get("/healthz")
    await client.get("/marked/path?marked=query")
    await client.post(
        "/mcp",
        content=b"{",
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        },
    )
    await client.request("PROPFIND", "/mcp")
    after = await scraped(client)
    more = partial(after.since, before, "folklore_http_requests_total")
    assert more(method="GET", route="/healthz", status="200") == 1
    assert more(method="GET", route="other", status="404") == 1
    assert more(method="POST", route="/mcp", status="400") == 1
    assert more(method="other", route="/mcp") == 1
    assert more(route="/metrics", status="200") == 1
    assert after("folklore_http_requests_open", route="/metrics") == 1
    assert after("folklore_http_requests_open", route="/mcp") == 0
    assert "marked" not in after.text.lower()


async def test_an_open_stream_is_counted_as_open(client: httpx.AsyncClient) -> None:
    async with client.stream("GET", "/sse"):
        assert (await scraped(client))("folklore_http_requests_open", route="/sse") == 1

    await until(
        client, lambda now: now("folklore_http_requests_open", route="/sse") == 0
    )


async def test_the_pool_the_build_and_the_process_have_metrics(
    client: httpx.AsyncClient,
) -> None:
    found = await scraped(client)

    assert found("folklore_pool_connections_limit") == 6
    assert 1 <= found("folklore_pool_connections") <= 6
    assert found("folklore_pool_waiting") == 0
    assert found("folklore_build_info") == 1
    assert found("process_resident_memory_bytes") > 0


async def test_labels_hold_no_contents_persons_or_namespaces(
    server: HttpServer, client: httpx.AsyncClient
) -> None:
    await asked(
        server,
        "memory_store",
        content="marked content",
        namespace="marked-namespace",
        tags=["marked-tag"],
    )
    await asked(
        server,
        "memory_recall",
        query="marked question",
        namespaces=["marked-namespace"],
    )
    found = await scraped(client)

    assert "marked" not in found.text
    assert "tester" not in found.text
    assert len(found.labels()) < 60


async def test_degraded_branches_and_pending_embeddings_are_counted(
    database_url: str, tmp_path: Path
) -> None:
    settings = watched(
        tmp_path,
        database_url=database_url,
        embedding__provider="openai",
        embedding__url=f"http://127.0.0.1:{free_port()}/v1",
        embedding__model="none",
        embedding__dimensions="8",
    )
    async with (
        on_http(settings) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        await asked(
            server,
            "memory_store",
            memories=[{"content": "Kites hover."}, {"content": "Kites glide."}],
        )
        await asked(server, "memory_recall", query="What do kites do?")
        found = await until(client, lambda now: now("folklore_pending_embeddings") == 2)

    assert found("folklore_degraded_answers_total", branch="dense") == 1
    assert found("folklore_recall_results_total", branch="keyword") == 2


async def test_each_dropped_usage_entry_is_counted_once(
    app: App, person: Person
) -> None:
    async def record(entries: object) -> list[object]:
        raise AssertionError(entries)

    await person.store("Swifts sleep in the air.")
    queue = app.usage.queue = UsageQueue(record, session=None, capacity=0)  # type: ignore[arg-type]
    metrics = Metrics(app)
    queue.add(
        await person.recall("Where do swifts sleep?"),
        "?",
        caller=Caller("tester"),
        now=NOON,
    )

    first = Scraped(metrics.text().decode())
    second = Scraped(metrics.text().decode())
    async with metrics.publishing():  # ends the count of pending embeddings
        pass

    assert first("folklore_usage_entries_dropped_total") == 1
    assert second("folklore_usage_entries_dropped_total") == 1


async def test_connections_in_use_and_tasks_that_wait_are_counted(
    database_url: str,
) -> None:
    database = Database(database_url, PoolLimits(minimum=2, maximum=2))
    await database.open()

    async def another() -> None:
        async with database.session():
            return

    async with database.session():
        waiting = asyncio.create_task(another())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        busy = database.statistics()
    await waiting
    async with asyncio.timeout(120):
        # a session that only read does not wait until its connection is back
        while database.statistics().in_use:
            await asyncio.sleep(0)
    rested = database.statistics()
    await database.close()

    assert busy == PoolStatistics(in_use=1, idle=1, waiting=1, maximum=2)
    assert rested == PoolStatistics(in_use=0, idle=2, waiting=0, maximum=2)
    assert database.statistics() == PoolStatistics(0, 0, 0, 0)


CALLERS: list[tuple[str, dict[str, str], int]] = [
    ("127.0.0.1", {}, 200), ("127.8.9.1", {}, 200), ("::1", {}, 200), ("::ffff:127.0.0.1", {}, 200),
    ("10.1.2.3", {}, 403), ("", {}, 403), ("::ffff:10.1.2.3", {}, 403), ("nonsense", {}, 403),
    ("127.0.0.1", {"X-Forwarded-For": "127.0.0.1"}, 403), ("127.0.0.1", {"Forwarded": "for=127.0.0.1"}, 403),
    ("127.0.0.1", {"Host": "evil.example"}, 421), ("127.0.0.1", {"Origin": "http://evil.example"}, 403),
]  # fmt: skip


async def test_without_a_token_only_this_machine_reads_metrics(
    settings: Settings,
) -> None:
    for address, headers, status in CALLERS:
        transport = httpx.ASGITransport(
            build_app(App(settings), by_token("127.0.0.1")), client=(address, 1)
        )
        async with httpx.AsyncClient(
            base_url="http://127.0.0.1:8765", transport=transport
        ) as client:
            answer = await client.get("/metrics", headers=headers)

        assert answer.status_code == status, (address, headers)
        assert ("folklore_" in answer.text) == (status == 200), (address, headers)


def test_documented_and_exposed_metrics_are_the_same(settings: Settings) -> None:
    exposed = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(
            Metrics(App(settings)).text().decode()
        )
        if not family.name.startswith("process_")
    }
    table = [
        line.split("|")[1]
        for line in MONITORING.read_text(encoding="utf-8").splitlines()
        if line[:2] == "| "
    ]
    explained = {
        name for cell in table for name in re.findall(r"`(folklore_\w+)`", cell)
    }

    assert exposed == explained


async def test_every_panel_of_the_dashboard_shows_a_metric_by_labels_that_it_has(
    client: httpx.AsyncClient,
) -> None:
    text = (await scraped(client)).text
    names = set[str]()
    for family in text_string_to_metric_families(text):
        endings = {
            "counter": ("_total",),
            "histogram": ("_bucket", "_sum", "_count"),
        }.get(family.type, ("",))
        names |= {family.name + ending for ending in endings}
    labels = dict[str, set[str]]()
    for line in MONITORING.read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        for name in re.findall(r"`(folklore_\w+)`", cells[1] if len(cells) > 4 else ""):
            labels[name] = {"job", "le", *re.findall(r"`(\w+)`", cells[2])}
    board = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())
    queries = [
        target["expr"] for panel in board["panels"] for target in panel["targets"]
    ]

    assert len(queries) > 10
    for query in queries:
        [name] = re.findall(r"(\w+)\{", query)
        assert name in names, query
        shown = re.findall(r"by \(([^)]+)\)", query) + re.findall(r"(\w+)!?=", query)
        for label in ", ".join(shown).split(", "):
            row = name.removesuffix("_bucket").removesuffix("_sum")
            assert label in labels.get(row, {"job"}), (label, query)


@pytest.mark.strain
async def test_each_worker_returns_the_numbers_of_all(
    database_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "numbers"
    folder.mkdir()

    def worker(name: str) -> Watched:
        (tmp_path / name).mkdir()
        one = watched(tmp_path / name, database_url=database_url)
        return Watched(
            dict(one.environment) | {"PROMETHEUS_MULTIPROC_DIR": str(folder)}, one.notes
        )

    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(on_http(worker("first"), alone=True))
        second = await stack.enter_async_context(on_http(worker("second"), alone=True))
        client = await stack.enter_async_context(httpx.AsyncClient(base_url=second.url))
        await asked(first, "memory_store", content="Terns cross the world.")
        await asked(first, "memory_recall", query="Who crosses the world?")
        await asked(second, "memory_recall", query="Who crosses the world?")
        both = await until(
            client, lambda now: now("folklore_pool_connections_limit") == 12
        )
        await first.end(signal.SIGKILL)
        left = await scraped(client)

    assert both("folklore_tool_calls_total", tool="memory_recall", outcome="ok") == 2
    assert both("folklore_tool_seconds_count", tool="memory_store") == 1
    assert both("folklore_build_info") == 1
    assert left("folklore_pool_connections_limit") == 6, (
        "what has ended has no connections"
    )
    assert left("folklore_tool_calls_total", tool="memory_store") == 1, (
        "what it counted stays"
    )


def test_workers_share_a_folder_that_is_deleted_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    with shared_folder(1):
        assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ
    with shared_folder(2):
        folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
        assert folder.is_dir()
    assert not folder.exists()
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def test_a_folder_that_the_environment_names_is_used_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))

    with shared_folder(2):
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(tmp_path)

    assert tmp_path.is_dir()


def test_only_gauges_of_ended_workers_are_forgotten(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    kept = [
        f"gauge_livesum_{os.getpid()}.db",
        f"counter_{ended.pid}.db",
        f"gauge_max_{ended.pid}.db",
    ]
    for name in (*kept, f"gauge_livesum_{ended.pid}.db"):
        (tmp_path / name).touch()

    forget_ended_workers(tmp_path)

    assert {file.name for file in tmp_path.iterdir()} == set(kept)
