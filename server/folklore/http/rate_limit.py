"""How often one principal may call: a token bucket each."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from folklore.http.error_responses import refusal

_REMEMBERED = 10_000


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class Buckets:
    """A bucket per name that holds `burst` tokens and gains `per_minute` of them a minute."""

    def __init__(self, per_minute: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._gain = per_minute / 60
        self._burst = burst
        self._clock = clock
        self._buckets: dict[str, _Bucket] = {}

    def take(self, name: str) -> float:
        """Take a token of `name`: 0 if there was one, else in how many seconds there will be."""
        now = self._clock()
        bucket = self._buckets.get(name)
        if bucket is None:
            self._forget_the_full(now)
            bucket = self._buckets[name] = _Bucket(self._burst, now)
        bucket.tokens, bucket.at = self._tokens(bucket, now), now
        if bucket.tokens >= 1:
            bucket.tokens -= 1
            return 0.0
        return (1 - bucket.tokens) / self._gain

    def _tokens(self, bucket: _Bucket, now: float) -> float:
        return min(self._burst, bucket.tokens + (now - bucket.at) * self._gain)

    def _forget_the_full(self, now: float) -> None:
        """A full bucket says what none says, so memory does not grow with everybody who ever called."""
        if len(self._buckets) >= _REMEMBERED:
            kept = {name: one for name, one in self._buckets.items() if self._tokens(one, now) < self._burst}
            self._buckets = kept


class RateLimit:
    """Answers 429 to a principal that calls too often; who is not authenticated is not counted.

    The principal is `scope["state"]["principal"]`, which authentication sets. Each worker counts for itself.
    """

    def __init__(self, app: ASGIApp, *, per_minute: int) -> None:
        self.app = app
        self._per_minute = per_minute
        self._buckets = Buckets(per_minute, max(1, per_minute / 5)) if per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on or refuse it."""
        principal = scope.get("state", {}).get("principal") if scope["type"] == "http" else None
        if principal is None or self._buckets is None:
            return await self.app(scope, receive, send)
        wait = self._buckets.take(principal)
        if wait == 0:
            return await self.app(scope, receive, send)
        answer = refusal(
            429,
            "rate_limited",
            f"{principal} calls more often than {self._per_minute} times a minute.",
            "Wait as long as retry_after says; store memories in batches, up to 500 in a call.",
            retry_after=wait,
        )
        await answer(scope, receive, send)
        return None
