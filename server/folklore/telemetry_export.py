"""Export of spans by OpenTelemetry's SDK, imported only if an exporter is configured.

Every span is redacted first: the MCP SDK also records spans, with names of resources and messages of errors, and the
content of memories must not get into a tracing system.
"""

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import (
    SERVICE_NAME,
    SERVICE_VERSION,
    OTELResourceDetector,
    Resource,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.trace import SpanContext, Status, Tracer

from folklore import __version__
from folklore.background import in_thread

_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TOOL = re.compile(
    r"memory_(store|recall|get|list|update|forget|relate|status)|search_keywords"
)
_PROMPT = re.compile(r"recall|remember|review")
_METHOD = re.compile(
    r"initialize|ping|server/discover|subscriptions/listen|logging/setLevel|completion/complete|tools/(list|call)"
    r"|prompts/(list|get)|resources/(list|read|subscribe|unsubscribe|templates/list)"
    r"|notifications/(initialized|cancelled|progress|roots/list_changed)"
)
_STAGE = re.compile(r"(recall|store)\.[a-z]+")
# Attributes whose text may leave the process. Those with stricter patterns come from the client.
_TEXT_ATTRIBUTES = {
    "gen_ai.operation.name": _WORD,
    "error.type": _WORD,
    "rpc.response.status_code": _WORD,
    "gen_ai.tool.name": _TOOL,
    "gen_ai.prompt.name": _PROMPT,
    "mcp.method.name": _METHOD,
    "mcp.protocol.version": re.compile(r"\d{4}-\d\d-\d\d"),
    "jsonrpc.request.id": re.compile(r"\d{1,20}"),
}
# Limit for the export of the last spans when the server ends, in seconds.
_STOP_SECONDS = 2.0


class Collector:
    """Provider of spans for the process, which sends them by OTLP over HTTP as the standard variables say."""

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        resource = Resource.create(
            {SERVICE_NAME: "folklore", SERVICE_VERSION: __version__}
        ).merge(
            OTELResourceDetector().detect()  # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override ours
        )
        # A shutdown at exit would wait for a collector that is down until the exporter's own timeouts.
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(
            BatchSpanProcessor(RedactingExporter(exporter or OTLPSpanExporter()))
        )
        trace.set_tracer_provider(self._provider)
        self.tracer: Tracer = self._provider.get_tracer("folklore", __version__)

    async def stop(self) -> None:
        """Send the remaining spans, for at most two seconds."""
        # The process can end while the collector does not answer.
        shutdown = in_thread(self._provider.shutdown, "folklore-spans")
        with suppress(TimeoutError):
            await asyncio.wait_for(shutdown, _STOP_SECONDS)


class RedactingExporter(SpanExporter):
    """Passes spans to another exporter with numbers and known words only."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans, redacted."""
        return self._inner.export([redacted(span) for span in spans])

    def shutdown(self) -> None:
        """Close the other exporter."""
        self._inner.shutdown()


def redacted(span: ReadableSpan) -> ReadableSpan:
    """Return a copy with times, position in the trace and safe attributes, without links, events and messages."""
    attributes = {
        name: value
        for name, value in (span.attributes or {}).items()
        if _is_safe(name, value)
    }
    return ReadableSpan(
        name=_name(span.name),
        context=_context(span.context),
        parent=_context(span.parent),
        resource=span.resource,
        attributes=attributes,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


def _context(context: SpanContext | None) -> SpanContext | None:
    """Return the context without its trace state, which is text from the client."""
    if context is None:
        return None
    return SpanContext(
        context.trace_id, context.span_id, context.is_remote, context.trace_flags
    )


def _is_safe(name: str, value: object) -> bool:
    if isinstance(value, (bool, int, float)):
        return True
    pattern = _TEXT_ATTRIBUTES.get(name)
    return (
        pattern is not None
        and isinstance(value, str)
        and pattern.fullmatch(value) is not None
    )


def _name(name: str) -> str:
    """Return a name such as `tools/call memory_recall`, without the names of unknown tools, which clients choose."""
    method, _, target = name.partition(" ")
    if _STAGE.fullmatch(name):
        return name
    if not _METHOD.fullmatch(method):
        return "other"
    return name if _TOOL.fullmatch(target) or _PROMPT.fullmatch(target) else method
