"""Spans on their way to a collector: OpenTelemetry's SDK, imported only where an exporter is configured.

Everything that leaves is gone over first. Spans come from other hands too (the SDK of MCP says in them which resource
was asked for and what an error told), and what people store must not end up in a tracing system.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, Status, Tracer

from folklore import __version__

# What may stand in a span beside numbers: words of a fixed vocabulary, by the attribute they stand in.
_WORDS = frozenset(
    {"mcp.method.name", "mcp.protocol.version", "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.prompt.name",
     "error.type", "rpc.response.status_code", "jsonrpc.request.id"}
)  # fmt: skip
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TOOL = re.compile(r"memory_(store|recall|get|list|update|forget|relate|status)|search_keywords")
_PROMPT = re.compile(r"recall|remember|review")
_METHOD = re.compile(
    r"initialize|ping|server/discover|subscriptions/listen|logging/setLevel|completion/complete|tools/(list|call)"
    r"|prompts/(list|get)|resources/(list|read|subscribe|unsubscribe|templates/list)"
    r"|notifications/(initialized|cancelled|progress|roots/list_changed)"
)
_STAGE = re.compile(r"(recall|store)\.[a-z]+")
# What a client chooses the words of.
_STRICTER = {
    "gen_ai.tool.name": _TOOL,
    "gen_ai.prompt.name": _PROMPT,
    "mcp.method.name": _METHOD,
    "mcp.protocol.version": re.compile(r"\d{4}-\d\d-\d\d"),
    "jsonrpc.request.id": re.compile(r"\d{1,20}"),
}
# How long the end of the server waits for the last spans, in seconds.
_LAST_WORDS = 2.0


class Collector:
    """The process' provider of spans, which sends them by OTLP over HTTP; its settings are the standard variables."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        resource = Resource.create({SERVICE_NAME: "folklore", SERVICE_VERSION: __version__}).merge(
            OTELResourceDetector().detect()  # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come before ours
        )
        # At exit it would wait for a collector that is down for as long as its own timeouts are.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(Discreet(exporter or OTLPSpanExporter())))
        trace.set_tracer_provider(self._provider)
        self.tracer: Tracer = self._provider.get_tracer("folklore", __version__)

    async def stop(self) -> None:
        """Send what is left, for two seconds at most."""
        loop, sent = asyncio.get_running_loop(), asyncio.Event()

        def last_words() -> None:
            self._provider.shutdown()
            try:
                loop.call_soon_threadsafe(sent.set)
            except RuntimeError:  # nobody waited for so long
                return

        # A daemon: the process may end while it hangs on a collector that does not answer.
        threading.Thread(target=last_words, name="folklore-spans", daemon=True).start()
        try:
            await asyncio.wait_for(sent.wait(), _LAST_WORDS)
        except TimeoutError:
            return


class Discreet(SpanExporter):
    """Hands spans on without what they may tell of what was stored or asked: only numbers and known words pass."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send them."""
        return self._inner.export([discreet(span) for span in spans])

    def shutdown(self) -> None:
        """End."""
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Send what waits."""
        return self._inner.force_flush(timeout_millis)


def discreet(span: ReadableSpan) -> ReadableSpan:
    """The span with its times and its place in the trace, and of the rest what is harmless.

    Events and the description of a failure are left out whole: they are messages.
    """
    attributes = {name: value for name, value in (span.attributes or {}).items() if _harmless(name, value)}
    return ReadableSpan(
        name=_name(span.name),
        context=_place(span.context),
        parent=_place(span.parent),
        resource=span.resource,
        attributes=attributes,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _place(context: SpanContext | None) -> SpanContext | None:
    """Without the state that a client may have sent along: words of his own."""
    if context is None:
        return None
    return SpanContext(context.trace_id, context.span_id, context.is_remote, context.trace_flags)


def _harmless(name: str, value: object) -> bool:
    if isinstance(value, (bool, int, float)):
        return True
    if name not in _WORDS or not isinstance(value, str):
        return False
    return _STRICTER.get(name, _WORD).fullmatch(value) is not None


def _name(name: str) -> str:
    """`tools/call memory_recall`, without what a client calls a tool that is not there."""
    method, _, target = name.partition(" ")
    if _STAGE.fullmatch(name):
        return name
    if not _METHOD.fullmatch(method):
        return "other"
    return name if _TOOL.fullmatch(target) or _PROMPT.fullmatch(target) else method
