"""Structured logs on stderr: stdout is for the protocol on stdio and for results on the command line.

Logs must not contain the text of a memory or question, at any level. So libraries may log warnings only (their info and
debug lines contain arguments, bodies and headers), and an error is logged by its type and traceback without its
message: messages of pydantic and Postgres contain the rejected value.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any, Literal

from folklore.errors import FolkloreError

LogFormat = Literal["json", "console"]

# Errors with messages that are our own, or contain an address and not what was sent there.
_SAFE_MESSAGES = (FolkloreError, OSError)


class Logger:
    """A logger of structlog, which is imported when the first line is written: most commands write none."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger: Any = None

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):  # such as a copy asks for
            raise AttributeError(method)
        if self._logger is None:
            _configure_pending()
            import structlog

            self._logger = structlog.get_logger(self._name)
        return getattr(self._logger, method)


def get_logger(name: str) -> Any:
    """Return the logger of a module."""
    return Logger(name)


class _FirstLine(logging.Handler):
    """Configures the logs when a library writes the first line, and writes that."""

    def emit(self, record: logging.LogRecord) -> None:
        """Configure, which replaces this handler, and hand the line over."""
        _configure_pending()
        for handler in logging.getLogger().handlers:
            if handler is not self:
                handler.handle(record)


_pending: list[tuple[str, LogFormat]] = []


def configure_on_use(level: str, form: LogFormat) -> None:
    """Configure the logs when the first line is written."""
    _pending[:] = [(level, form)]
    logging.getLogger().handlers[:] = [_FirstLine()]
    _set_levels(logging.getLevelNamesMapping()[level.upper()])


@contextmanager
def _without_rich() -> Iterator[None]:
    """Keep structlog from importing rich, which takes longer than all else of it, for tracebacks that are not used."""
    if "rich" in sys.modules:
        yield
        return
    sys.modules["rich"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["rich"]


def _configure_pending() -> None:
    while _pending:
        configure(*_pending.pop())


def configure(level: str, form: LogFormat) -> None:
    """Write the logs of structlog and the standard library to stderr. Call it once, before the first use of structlog.

    A later `logging.basicConfig` of a library has no effect.
    """
    _pending.clear()
    with _without_rich():
        import structlog.dev
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(
            lambda exc_info: "\n".join(_lines(exc_info[1]))
        ),
    ]
    last: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            exception_formatter=structlog.dev.plain_traceback,
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
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                last,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    _set_levels(number)


def _set_levels(number: int) -> None:
    logging.getLogger().setLevel(max(number, logging.WARNING))
    # its info lines report start and stop
    logging.getLogger("uvicorn.error").setLevel(max(number, logging.INFO))
    # In an outage its pools report each try with a traceback. Folklore reports the outage, once (db/database.py).
    logging.getLogger("asyncpg").setLevel(logging.ERROR)


def _lines(error: BaseException | None) -> Iterator[str]:
    """Yield the traceback of an error and its causes, with messages only of the classes in _SAFE_MESSAGES."""
    visited = set[int]()
    while error is not None and id(error) not in visited:
        visited.add(id(error))
        message = f": {error}" if isinstance(error, _SAFE_MESSAGES) else ""
        yield f"{type(error).__module__}.{type(error).__qualname__}{message}"
        yield from (
            line.rstrip("\n") for line in traceback.format_tb(error.__traceback__)
        )
        for one in error.exceptions if isinstance(error, BaseExceptionGroup) else ():
            yield from _lines(one)
        error = error.__cause__ or (
            None if error.__suppress_context__ else error.__context__
        )


class Outage:
    """Report of an outage of something that requests need: a line at its begin, and one at its end.

    Whatever began in an earlier `period` shows nothing: a try to connect may fail after the end, and an answer may
    arrive after the begin.
    """

    def __init__(self, begin: str, end: str) -> None:
        self._log = get_logger(__name__)
        self._begin = begin
        self._end = end
        self._since: float | None = None
        self._failures = 0
        self.period = 0

    def failed(self, reason: str, period: int) -> None:
        """Count a failure of what began in `period`; the first one is logged, with its reason."""
        if self._since is None:
            if period != self.period:
                return
            self.period += 1
            self._since = monotonic()
            self._log.warning(self._begin, reason=reason)
        self._failures += 1

    def over(self, period: int) -> None:
        """Log how long the outage was and how many requests failed, if what began in `period` began during one."""
        if self._since is not None and period == self.period:
            self.period += 1
            self._log.warning(
                self._end,
                seconds=round(monotonic() - self._since, 1),
                failed=self._failures,
            )
            self._since = None
            self._failures = 0
