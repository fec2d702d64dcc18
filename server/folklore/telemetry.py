"""Spans of the stages of a call, for a collector of traces. Without a collector a stage costs one comparison.

Attributes are numbers and codes: never a text, a question, the name of a namespace or a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from folklore import pip_install

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

    from folklore.telemetry_export import Collector

# The standard library's: on stdio this runs before structlog is imported.
log = logging.getLogger(__name__)

_NOTHING = nullcontext()
# One for the process, as OpenTelemetry has one provider for the process.
_tracer: Tracer | None = None


def stage(name: str, **numbers: float) -> AbstractContextManager[object]:
    """Return a context manager that records a span of this name below the current span, if spans are collected."""
    if _tracer is None:
        return _NOTHING
    return _span(_tracer, name, numbers)


@contextmanager
def _span(tracer: Tracer, name: str, numbers: Mapping[str, float]) -> Iterator[None]:
    """Record the type of an error without its message, which may contain a text or a question."""
    from opentelemetry.trace import StatusCode

    with tracer.start_as_current_span(
        name, attributes=numbers, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(StatusCode.ERROR)
            raise


def set_tracer(tracer: Tracer | None) -> None:
    """Record all later stages with this tracer; None records none."""
    global _tracer
    _tracer = tracer


def start_collector(environ: Mapping[str, str]) -> Collector | None:
    """Export spans as the standard OTEL_* variables say, until the collector is stopped; None if they name no exporter.

    Call it in the process that serves: the exporter's thread does not survive a fork.
    """
    if not exporter_configured(environ):
        return None
    try:
        # imports OpenTelemetry's SDK, an optional dependency
        from folklore.telemetry_export import Collector
    except ImportError:
        log.warning(
            "No spans are collected: an exporter is configured, but the extra is not installed. "
            f"Run: {pip_install('otel')}"
        )
        return None
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get(
        "OTEL_EXPORTER_OTLP_PROTOCOL"
    )
    if protocol not in (None, "", "http/protobuf"):
        log.warning(
            "No spans are collected: the protocol %r is not supported. Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf.",
            protocol,
        )
        return None
    collector = Collector()
    set_tracer(collector.tracer)
    return collector


def exporter_configured(environ: Mapping[str, str]) -> bool:
    """Return true if the variables name an OTLP exporter or endpoint, and none disables it."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = [
        name.strip()
        for name in environ.get("OTEL_TRACES_EXPORTER", "").split(",")
        if name.strip()
    ]
    if exporters:
        return "otlp" in exporters
    return any(
        environ.get(name)
        for name in (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        )
    )
