"""Spans of calls and their stages, for OpenTelemetry. If none are collected, a stage costs one comparison.

Attributes are numbers and words of ours or of the protocol: never a text, a question, the name of a namespace or a
secret. So nothing has to be removed from spans on their way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from folklore import __version__, pip_install
from folklore.background import in_thread

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, Tracer

# The standard library's: on stdio this runs before structlog is imported.
log = logging.getLogger(__name__)

_NOTHING = nullcontext()
# One for the process, as OpenTelemetry has one provider for the process.
_tracer: Tracer | None = None
_provider: TracerProvider | None = None
# Each of these variables asks for spans.
_ASKS = (
    "OTEL_TRACES_EXPORTER",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
)
# What the extra `otel` brings, in place of OpenTelemetry's own defaults.
_DEFAULTS = {
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
# Limit for the export of the last spans when the server ends, in seconds.
_STOP_SECONDS = 2.0


def start(environ: MutableMapping[str, str]) -> None:
    """Collect spans if the variables ask for it: OpenTelemetry configures itself by its own variables.

    Call it in the process that serves: the exporter's thread does not survive a fork. `opentelemetry-instrument` may
    have configured the process already.
    """
    if not any(environ.get(name) for name in _ASKS):
        return
    try:
        # An optional dependency.
        from opentelemetry import trace
        from opentelemetry.instrumentation.auto_instrumentation import initialize
        from opentelemetry.sdk.trace import TracerProvider
    except ImportError:
        log.warning(
            "No spans are collected: an exporter is configured, but the extra is not installed. "
            f"Run: {pip_install('otel')}"
        )
        return
    if not isinstance(trace.get_tracer_provider(), TracerProvider):
        for name, value in _DEFAULTS.items():
            environ.setdefault(name, value)
        own = f"service.name=folklore,service.version={__version__}"
        given = environ.get("OTEL_RESOURCE_ATTRIBUTES")
        environ["OTEL_RESOURCE_ATTRIBUTES"] = f"{own},{given}" if given else own
        initialize()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        log.warning(
            "No spans are collected: OpenTelemetry could not configure itself from the OTEL_* variables. The extra has "
            "the protocol http/protobuf; another one needs its exporter, such as opentelemetry-exporter-otlp-proto-grpc."
        )
        return
    set_provider(provider)


async def stop() -> None:
    """Send the remaining spans, for at most two seconds; then record no more."""
    if _provider is None:
        return
    # The process can end while the collector does not answer.
    shutdown = in_thread(_provider.shutdown, "folklore-spans")
    set_provider(None)
    with suppress(TimeoutError):
        await asyncio.wait_for(shutdown, _STOP_SECONDS)


def set_provider(provider: TracerProvider | None) -> None:
    """Record all later spans with this provider; None records none."""
    global _provider, _tracer
    _provider = provider
    _tracer = None
    if provider is not None:
        _tracer = provider.get_tracer("folklore", __version__)


def stage(name: str, **numbers: float) -> AbstractContextManager[object]:
    """Return a context manager that records a span of this name below the current span, if spans are collected."""
    if _tracer is None:
        return _NOTHING
    return _span(_tracer, name, attributes=numbers)


@contextmanager
def _span(tracer: Tracer, name: str, **options: Any) -> Iterator[Span]:
    """Record the type of an error without its message, which may contain a text or a question."""
    with tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False, **options
    ) as span:
        try:
            yield span
        except BaseException as error:
            set_error(span, type(error).__name__)
            raise


def collects() -> bool:
    """Return whether spans are collected."""
    return _tracer is not None


def message(
    name: str, attributes: Mapping[str, str], traceparent: str | None
) -> AbstractContextManager[Span]:
    """Return a context manager that records a span of a client's message and yields it; spans are collected.

    `traceparent` is the client's span, which this one is below; its other state is text, and is not taken.
    """
    from opentelemetry.trace import SpanKind, get_tracer
    from opentelemetry.trace.propagation.tracecontext import (
        TraceContextTextMapPropagator,
    )

    above = None
    if traceparent is not None:
        above = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    tracer = _tracer or get_tracer("folklore")
    return _span(
        tracer, name, context=above, kind=SpanKind.SERVER, attributes=attributes
    )


def set_error(span: Span, kind: str) -> None:
    """Mark a span as failed by an error of a type or a code."""
    from opentelemetry.trace import StatusCode

    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)
