"""A circuit breaker: a service that keeps failing is left alone for a while, so that nobody waits for it in vain."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic


class Breaker:
    """Opens after `failures` in a row, for `first` seconds, twice as long each time, at most `most`.

    When the time is over one caller may try; the others are turned away until it is known how he fared.
    """

    def __init__(
        self,
        *,
        failures: int = 3,
        first: float = 2.0,
        most: float = 60.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._limit = failures
        self._first = first
        self._most = most
        self._clock = clock
        self._failed = 0
        self._closed_from = 0.0

    def wait(self) -> float:
        """Seconds until the service may be asked; 0 for a caller who may ask now."""
        now = self._clock()
        if self._failed < self._limit:
            return 0.0
        if now < self._closed_from:
            return self._closed_from - now
        self._closed_from = now + self._pause()  # as long as this one tries
        return 0.0

    def succeeded(self) -> None:
        """The service answered."""
        self._failed = 0

    def failed(self) -> None:
        """The service failed, all tries of one call counted once."""
        self._failed += 1
        if self._failed >= self._limit:
            self._closed_from = self._clock() + self._pause()

    def _pause(self) -> float:
        return float(min(self._first * 2 ** min(self._failed - self._limit, 20), self._most))
