"""Structured logs on stderr: stdout belongs to the protocol on stdio and to results on the command line."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import structlog

LogFormat = Literal["json", "console"]

_NOISY = ("mcp", "httpx", "httpx2", "uvicorn.access", "wordllama", "asyncio")


def first(level: str) -> None:
    """Send the standard library's logs to stderr, plainly, until `configure` has been called.

    A server on stdio must answer before it has imported what it logs with: structlog costs a tenth of its start.
    """
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format="%(levelname)s %(name)s: %(message)s")
    _hush(logging.getLevelNamesMapping()[level.upper()])


def configure(level: str, form: LogFormat) -> None:
    """Send structlog and the standard library's root logger to stderr, once, before anything uses structlog.

    Libraries that call `logging.basicConfig` at import (the bundled model's does) find a root that is set up already.
    """
    import structlog

    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, last],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, last],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    _hush(number)


def _hush(number: int) -> None:
    for name in _NOISY:  # their INFO lines repeat ours, and some name arguments
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
