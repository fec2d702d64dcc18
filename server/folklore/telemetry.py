"""Spans of our own stages, for whoever collects traces; a comparison with None while nobody does.

Their attributes are numbers and codes: never a text, a question, the name of a namespace or a secret.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from folklore.telemetry_export import Collector

# The standard library's: on stdio this is asked before structlog is imported and set up.
log = logging.getLogger(__name__)

_NOTHING = nullcontext()
# OpenTelemetry has one provider for the whole process, so this is the process' too.
_tracer: Tracer | None = None


def stage(name: str, **numbers: float) -> AbstractContextManager[object]:
    """A `with` block that is a span of this name, beneath whatever span is open, if spans are collected."""
    return _NOTHING if _tracer is None else _Stage(_tracer, name, numbers)


class _Stage:
    """A span that says of a failure its type alone: messages may hold what was stored or asked."""

    __slots__ = ("_managed", "_span")

    def __init__(self, tracer: Tracer, name: str, numbers: Mapping[str, float]) -> None:
        self._managed = tracer.start_as_current_span(
            name, attributes=numbers, record_exception=False, set_status_on_exception=False
        )
        self._span: Span | None = None

    def __enter__(self) -> None:
        self._span = self._managed.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        from opentelemetry.trace import StatusCode

        if kind is not None and self._span is not None:
            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(StatusCode.ERROR)
        self._managed.__exit__(kind, error, trace)


def use(tracer: Tracer | None) -> None:
    """Make spans with this tracer from now on; None makes none."""
    global _tracer
    _tracer = tracer


def collect(environ: Mapping[str, str]) -> Collector | None:
    """Send spans where the standard OTEL_* variables say, until the collector is stopped; None where they say nothing.

    To be called in the process that serves: the exporter's thread does not survive a fork.
    """
    if not wanted(environ):
        return None
    try:
        from folklore.telemetry_export import Collector
    except ImportError:
        log.warning("No spans are collected: an exporter is configured, but the extra is not installed. "
                    "Run: pip install 'folklore-mcp[otel]'")  # fmt: skip
        return None
    protocol = environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    if protocol not in (None, "", "http/protobuf"):
        log.warning("No spans are collected: the protocol %r is not supported. "
                    "Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf.", protocol)  # fmt: skip
        return None
    collector = Collector()
    use(collector.tracer)
    return collector


def wanted(environ: Mapping[str, str]) -> bool:
    """Whether an OTLP exporter is configured: an endpoint, or the exporter named, and nothing that switches it off."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    named = [name.strip() for name in environ.get("OTEL_TRACES_EXPORTER", "").split(",") if name.strip()]
    if named:
        return "otlp" in named
    return any(environ.get(name) for name in ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"))
