"""Spans: with an exporter, the stages of a call are exported without texts, questions and names."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from folklore import pip_install, telemetry as spans
from folklore.app import App
from folklore.config import Settings
from tests.otlp import otlp_receiver
from tests.server.test_listeners import NETWORK, clients
from tests.servers import Watched, free_port, on_http, on_stdio, watched
from tests.wire import MCP

MARK = "quetzal"


def exporting(folder: Path, database_url: str, endpoint: str, **more: str) -> Watched:
    server = watched(folder, database_url=database_url)
    return Watched(
        dict(server.environment) | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint} | more,
        server.notes,
    )


async def marked_work(client: Client) -> None:
    await client.call_tool(
        "memory_store", {"content": f"The {MARK} nests in holes.", "namespace": MARK}
    )
    await client.call_tool("memory_recall", {"query": f"Where does the {MARK} nest?"})
    await client.call_tool("memory_recall", {"query": MARK, "namespaces": [f"{MARK}s"]})
    with pytest.raises(MCPError, match="There is no tool"):
        await client.call_tool(f"memory_{MARK}", {})
    with pytest.raises(Exception, match=MARK):
        await client.read_resource(f"memory://{MARK}s/recent")


def called(found: list[Span], name: str, place: int = 0) -> Span:
    return [span for span in found if span.name == name][place]


async def test_a_recall_and_a_store_export_their_stages(
    database_url: str, tmp_path: Path
) -> None:
    with otlp_receiver() as received:
        settings = exporting(
            tmp_path,
            database_url,
            received.url,
            OTEL_SERVICE_NAME="folklore-of-the-team",
        )
        async with on_http(settings) as server:
            async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
                await marked_work(client)
            await server.end()

    found = received.spans
    recall = called(found, "tools/call memory_recall")
    beneath = {span.name: span for span in found if span.trace_id == recall.trace_id}
    assert beneath.keys() == {
        "tools/call memory_recall", "recall.words", "recall.dense", "recall.keyword", "recall.rank", "recall.pool",
    }  # fmt: skip
    assert {
        beneath[f"recall.{name}"].parent_span_id
        for name in ("dense", "keyword", "rank")
    } == {recall.span_id}
    assert beneath["recall.pool"].parent_span_id == beneath["recall.rank"].span_id
    store = called(found, "tools/call memory_store")
    assert {span.name for span in found if span.parent_span_id == store.span_id} == {
        "store.embed",
        "store.write",
    }
    assert called(found, "tools/call memory_recall", 1).status.code == 2
    assert received.services == {"folklore-of-the-team"}
    assert MARK not in str(received.requests)
    assert all(not span.events and not span.status.message for span in found)
    assert settings.attempts() == ""


async def test_a_server_on_stdio_exports_spans(
    database_url: str, tmp_path: Path
) -> None:
    with otlp_receiver() as received:
        settings = exporting(tmp_path, database_url, received.url)
        async with Client(
            stdio_client(on_stdio(settings)), read_timeout_seconds=30
        ) as client:
            await marked_work(client)

    assert {"tools/call memory_store", "recall.dense", "store.write"} <= {
        span.name for span in received.spans
    }
    assert MARK not in str(received.requests)


@pytest.mark.strain
async def test_a_collector_that_is_down_delays_no_call(
    database_url: str, tmp_path: Path
) -> None:
    settings = exporting(
        tmp_path,
        database_url,
        f"http://127.0.0.1:{free_port()}",
        OTEL_BSP_SCHEDULE_DELAY="50",
    )
    async with on_http(settings) as server:
        async with Client(f"{server.url}/mcp", read_timeout_seconds=30) as client:
            await marked_work(client)
            answer = await client.call_tool("memory_recall", {"query": "holes"})
        await server.end()
        text = server.log.read_text(encoding="utf-8")

    assert not answer.is_error
    assert MARK not in text


async def test_without_an_exporter_no_sdk_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation", None)
    environ = {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}

    spans.start(environ)

    assert spans.stage("recall.words") is spans.stage("recall.dense", candidates=3)
    assert environ.keys() == {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"}


def test_an_exporter_without_the_extra_is_a_warning_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation", None)

    with caplog.at_level(logging.WARNING):
        spans.start({"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{MARK}@c:4318"})

    assert pip_install("otel") in caplog.text
    assert MARK not in caplog.text


@pytest.mark.parametrize(
    ("more", "command", "exported", "warned"),
    [
        ({}, (), True, False),
        ({"OTEL_TRACES_EXPORTER": "none"}, (), False, False),
        ({"OTEL_SDK_DISABLED": "true"}, (), False, False),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, (), False, False),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, (), False, True),
        (
            {
                "OTEL_TRACES_EXPORTER": "otlp",
                "OTEL_METRICS_EXPORTER": "none",
                "OTEL_LOGS_EXPORTER": "none",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            },
            ("opentelemetry-instrument",),
            True,
            False,
        ),
    ],
)
def test_the_variables_of_opentelemetry_decide_what_is_exported(
    more: dict[str, str], command: tuple[str, ...], exported: bool, warned: bool
) -> None:
    program = [*(str(Path(sys.executable).with_name(name)) for name in command)]
    with otlp_receiver() as received:
        ran = subprocess.run(
            [*program, sys.executable, "-c", STAGE],
            env={
                **os.environ,
                "OTEL_EXPORTER_OTLP_ENDPOINT": received.url,
                "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test",
                **more,
            },
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert ran.returncode == 0, ran.stderr
    assert [span.name for span in received.spans] == ["recall.words"] * exported
    assert ("No spans are collected" in ran.stderr) == warned
    if exported and not command:
        assert received.services == {"folklore"}


STAGE = """
import asyncio, logging, os
from folklore import telemetry
logging.basicConfig()
telemetry.start(os.environ)
with telemetry.stage("recall.words", pieces=2):
    pass
asyncio.run(telemetry.stop())
"""


@pytest.fixture
def collected() -> Iterator[InMemorySpanExporter]:
    """Give the spans of this process, kept in memory."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    spans.set_provider(provider)
    yield kept
    spans.set_provider(None)


def test_a_failed_stage_records_the_type_of_its_error_only(
    collected: InMemorySpanExporter,
) -> None:
    with pytest.raises(ValueError, match=MARK), spans.stage("recall.words", pieces=2):
        raise ValueError(MARK)

    [span] = collected.get_finished_spans()
    assert (span.name, dict(span.attributes or {})) == (
        "recall.words",
        {"pieces": 2, "error.type": "ValueError"},
    )
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        None,
    )
    assert MARK not in span.to_json()


async def test_no_word_of_a_client_is_in_the_span_of_its_message(
    collected: InMemorySpanExporter, settings: Settings
) -> None:
    above = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": f"x={MARK}"}

    async with clients(App(settings), NETWORK["links"]) as (_tcp, own):
        for id_, method, params in (
            (1, f"tools/{MARK}", {}),
            (f"id-{MARK}", "tools/call", {"name": MARK, "arguments": {MARK: MARK}}),
            (3, "prompts/get", {"name": MARK}),
            (4, "resources/read", {"uri": f"memory://{MARK}/recent"}),
            (5, "tools/call", {"name": "memory_recall", "arguments": {"query": MARK}}),
            (6, "prompts/get", {"name": "recall", "arguments": {"topic": MARK}}),
        ):
            message = {"jsonrpc": "2.0", "id": id_, "method": method}
            meta = {**above, MARK: MARK, "baggage": f"{MARK}={MARK}"}
            await own.post(
                "/mcp",
                json={**message, "params": {**params, "_meta": meta}},
                headers=MCP,
            )

    found = collected.get_finished_spans()
    names = [span.name for span in found if span.kind == SpanKind.SERVER]
    assert names == [
        "other", "tools/call", "prompts/get", "resources/read", "tools/call memory_recall", "prompts/get recall",
    ]  # fmt: skip
    assert {span.parent.span_id for span in found if span.parent is not None} >= {
        int("b" * 16, 16)
    }
    for span in found:
        assert MARK not in span.to_json()
        assert span.context is not None
        assert not span.context.trace_state
