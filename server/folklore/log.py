"""Structured logs on stderr: stdout belongs to the protocol on stdio and to results on the command line.

No text that was stored or asked may get there, at any level. So of libraries only warnings are taken in (what they say
at info and debug names arguments, bodies and headers), and of an error only where it happened and its type: messages
of pydantic and Postgres repeat what they refused.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from folklore.errors import FolkloreError

if TYPE_CHECKING:
    import structlog

LogFormat = Literal["json", "console"]

# Libraries whose info lines say only that they start and stop.
_HEARD = ("uvicorn.error",)
# Errors whose messages are ours, or name an address and not what was sent there.
_QUOTED = (FolkloreError, OSError)


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
        structlog.processors.ExceptionRenderer(_where_it_happened),
    ]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[*shared, last],
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
    _hush(number)


def _hush(number: int) -> None:
    logging.getLogger().setLevel(max(number, logging.WARNING))
    for name in _HEARD:
        logging.getLogger(name).setLevel(max(number, logging.INFO))


def _where_it_happened(exc_info: Any) -> str:
    """The traceback of an error and of those behind it, without their messages but for those of _QUOTED."""
    return "\n".join(_told(exc_info[1]))


def _told(error: BaseException | None) -> Iterator[str]:
    seen = set[int]()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        said = f": {error}" if isinstance(error, _QUOTED) else ""
        yield f"{type(error).__module__}.{type(error).__qualname__}{said}"
        yield from (line.rstrip("\n") for line in traceback.format_tb(error.__traceback__))
        for one in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _told(one)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
