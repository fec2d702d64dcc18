"""Report of an outage: one line at its begin, and one at its end."""

from __future__ import annotations

from time import monotonic

from folklore.log import get_logger

log = get_logger(__name__)


class Outage:
    """An outage of something that requests need; `begin` and `end` name its lines."""

    def __init__(self, begin: str, end: str) -> None:
        self._begin, self._end = begin, end
        self._since: float | None = None
        self._failures = 0

    def failed(self, reason: str) -> None:
        """Count a failure; the first one is logged, with its reason."""
        if self._since is None:
            self._since = monotonic()
            log.warning(self._begin, reason=reason)
        self._failures += 1

    def over(self) -> None:
        """Log how long the outage was, and how many requests failed, if there was one."""
        if self._since is not None:
            log.warning(self._end, seconds=round(monotonic() - self._since, 1), failed=self._failures)
            self._since, self._failures = None, 0
