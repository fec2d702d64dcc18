"""Spans: with an exporter, the stages of a call are exported without texts, questions and names."""

import logging
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
from opentelemetry.trace import Link, SpanContext, StatusCode, TraceState

from folklore import pip_install, telemetry as spans
from folklore.telemetry_export import RedactingExporter
from tests.otlp import otlp_receiver
from tests.servers import Watched, free_port, on_http, on_stdio, watched

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
    monkeypatch.setitem(sys.modules, "folklore.telemetry_export", None)

    assert spans.start_collector({}) is None
    assert spans.stage("recall.words") is spans.stage("recall.dense", candidates=3)


@pytest.mark.parametrize(
    ("environ", "configured"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c:4318"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "console, otlp"}, True),
        (
            {
                "OTEL_TRACES_EXPORTER": "none",
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
            },
            False,
        ),
        (
            {
                "OTEL_SDK_DISABLED": "true",
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
            },
            False,
        ),
    ],
)
def test_the_standard_variables_configure_the_exporter(
    environ: dict[str, str], configured: bool
) -> None:
    assert spans.exporter_configured(environ) == configured


def test_an_exporter_without_the_extra_is_a_warning_with_the_next_step(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "folklore.telemetry_export", None)

    with caplog.at_level(logging.WARNING):
        assert (
            spans.start_collector(
                {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{MARK}@c:4318"}
            )
            is None
        )

    assert pip_install("otel") in caplog.text
    assert MARK not in caplog.text


def test_an_unsupported_protocol_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert (
            spans.start_collector(
                {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
            )
            is None
        )

    assert "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in caplog.text


@pytest.fixture
def collected() -> Iterator[tuple[TracerProvider, InMemorySpanExporter]]:
    """Give a provider whose spans are redacted as in production and kept in memory."""
    kept = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(RedactingExporter(kept)))
    spans.set_tracer(provider.get_tracer("test"))
    yield provider, kept
    spans.set_tracer(None)


def test_a_failed_stage_records_the_type_of_its_error_only(
    collected: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    with pytest.raises(ValueError, match=MARK), spans.stage("recall.words", pieces=2):
        raise ValueError(MARK)

    [span] = collected[1].get_finished_spans()
    assert (span.name, dict(span.attributes or {})) == (
        "recall.words",
        {"pieces": 2, "error.type": "ValueError"},
    )
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        None,
    )
    assert MARK not in span.to_json()


def test_only_numbers_and_known_words_of_other_spans_are_exported(
    collected: tuple[TracerProvider, InMemorySpanExporter],
) -> None:
    provider, kept = collected
    elsewhere = SpanContext(
        1, 2, is_remote=True, trace_state=TraceState([("vendor", MARK)])
    )
    with provider.get_tracer("others").start_as_current_span(
        f"tools/call {MARK}",
        links=[Link(elsewhere, {"about": MARK})],
        attributes={"gen_ai.tool.name": MARK},
    ) as span:
        span.set_attributes({
            "mcp.method.name": MARK, "mcp.resource.uri": MARK, "error.type": f"{MARK} !", "db.query.text": MARK,
            "jsonrpc.request.id": MARK, "mcp.protocol.version": MARK, "words": [MARK],
            "gen_ai.operation.name": "execute_tool", "count": 3,
        })  # fmt: skip
        span.add_event(MARK, {MARK: MARK})
        span.record_exception(ValueError(MARK))
        span.set_status(StatusCode.ERROR, MARK)
    with provider.get_tracer("others").start_as_current_span(f"{MARK} {MARK}"):
        pass

    first, second = kept.get_finished_spans()
    assert (first.name, second.name) == ("tools/call", "other")
    assert dict(first.attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "count": 3,
    }
    assert MARK not in first.to_json() + second.to_json()
