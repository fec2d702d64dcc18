"""Metrics in Prometheus' text format: what the server counts of its own work.

Labels are names of tools, codes, branches and routes: a bounded set, and nothing of what is stored, of whom, or where.
With several workers the numbers of all are added up, whichever worker is asked (see http/worker_metrics.py).
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Iterator
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING

from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from folklore import __version__
from folklore.errors import FolkloreError
from folklore.http.worker_metrics import bury_the_dead, shared_folder
from folklore.memory.usage import CallMetrics

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from folklore.app import App
    from folklore.model import Answer

disable_created_metrics()  # type: ignore[no-untyped-call] # a line more for each, of use to nobody here

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BATCHES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
# How often a worker tells the others what its pool does, in seconds.
_TOLD_EVERY = 5.0
# The embedding debt is counted at most once a minute, and never for more than a hundredth of the time.
_COUNTED_EVERY = 60.0
_SHARE = 100.0


class Metrics(CallMetrics):
    """The counters of one process. In the labels of `outcome`, `ok` and the codes of errors.py."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._folder = shared_folder(os.environ)
        self._registry = own = CollectorRegistry()
        build = Gauge(
            "folklore_build_info", "Which Folklore runs; always 1.", ["version", "python"],
            registry=own, multiprocess_mode="max",
        )  # fmt: skip
        build.labels(__version__, platform.python_version()).set(1)
        self._calls = Counter("folklore_tool_calls", "Tool calls.", ["tool", "outcome"], registry=own)
        self._seconds = Histogram(
            "folklore_tool_seconds", "How long tool calls took.", ["tool"], registry=own, buckets=_SECONDS
        )
        self._recalls = Counter(
            "folklore_recalls", "Recalls and searches, by whether they found anything.", ["found"], registry=own
        )
        self._results = Counter(
            "folklore_recall_results", "Results of recalls and searches, by the branch that brought them.", ["branch"],
            registry=own,
        )  # fmt: skip
        self._degraded = Counter(
            "folklore_degraded_answers", "Answers that a branch could not take part in.", ["branch"], registry=own
        )
        self._batches = Histogram(
            "folklore_store_batch_memories", "How many memories stores held.", registry=own, buckets=_BATCHES
        )
        self._debt = Gauge(
            "folklore_pending_embeddings", "Memories without an embedding; counted up to 50,000 a namespace.",
            registry=own, multiprocess_mode="mostrecent",
        )  # fmt: skip
        self._pool = Gauge(
            "folklore_pool_connections", "Connections to Postgres: in use, idle.", ["state"],
            registry=own, multiprocess_mode="livesum",
        )  # fmt: skip
        self._waiting = Gauge(
            "folklore_pool_waiting", "Who waits for a connection.", registry=own, multiprocess_mode="livesum"
        )
        self._most = Gauge(
            "folklore_pool_connections_limit", "Connections there may be.", registry=own, multiprocess_mode="livesum"
        )
        self._dropped = Counter(
            "folklore_usage_entries_dropped", "Entries of the usage log that were not written.", registry=own
        )
        self._requests = Counter(
            "folklore_http_requests", "HTTP requests that have ended.", ["method", "route", "status"], registry=own
        )
        self._open = Gauge(
            "folklore_http_requests_open", "HTTP requests and streams that are open.", ["route"],
            registry=own, multiprocess_mode="livesum",
        )  # fmt: skip
        if self._folder is None:
            ProcessCollector(registry=own)
        self._dropped_before = 0
        self._counting: asyncio.Task[None] | None = None
        self._count_from = 0.0

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a call."""
        self._calls.labels(tool, outcome).inc()
        self._seconds.labels(tool).observe(seconds)

    def answered(self, answer: Answer) -> None:
        """Count an answer and where its results came from."""
        self._recalls.labels("yes" if answer.memories else "no").inc()
        for branch, results in answer.found_by.items():
            self._results.labels(branch).inc(results)
        for branch in {item.branch for item in answer.degraded}:
            self._degraded.labels(branch).inc()

    def stored(self, memories: int) -> None:
        """Count a batch."""
        self._batches.observe(memories)

    def opened(self, route: str) -> None:
        """A request came in."""
        self._open.labels(route).inc()

    def ended(self, method: str, route: str, status: str) -> None:
        """It is over."""
        self._open.labels(route).dec()
        self._requests.labels(method, route, status).inc()

    def text(self) -> bytes:
        """Everything, in the text format; of all workers if there are several."""
        self._look()
        if self._folder is None:
            return generate_latest(self._registry)
        bury_the_dead(self._folder)
        everybody = CollectorRegistry()
        MultiProcessCollector(everybody, path=str(self._folder))  # type: ignore[no-untyped-call]
        return generate_latest(everybody)

    @asynccontextmanager
    async def told(self) -> AsyncIterator[None]:
        """A block in which the other workers are told now and then how this one is."""
        telling = None if self._folder is None else asyncio.create_task(self._tell(), name="folklore-metrics")
        try:
            yield
        finally:
            for task in self._tasks(telling):
                task.cancel()
                await asyncio.wait({task})

    def _tasks(self, telling: asyncio.Task[None] | None) -> Iterator[asyncio.Task[None]]:
        yield from (task for task in (telling, self._counting) if task is not None)

    async def _tell(self) -> None:
        while True:
            self._look()
            await asyncio.sleep(_TOLD_EVERY)

    def _look(self) -> None:
        """Read what nobody tells: the pool, what the usage log dropped, and, beside this, the debt."""
        running = self._app.here
        if running is None:
            return
        pool = running.database.statistics()
        self._pool.labels("in_use").set(pool.in_use)
        self._pool.labels("idle").set(pool.idle)
        self._waiting.set(pool.waiting)
        self._most.set(pool.maximum)
        if (queue := self._app.usage.queue) is not None:
            self._dropped.inc(max(0, queue.dropped - self._dropped_before))
            self._dropped_before = queue.dropped
        if monotonic() >= self._count_from and (self._counting is None or self._counting.done()):
            self._counting = asyncio.create_task(self._count_debt(), name="folklore-metrics-debt")

    async def _count_debt(self) -> None:
        running = self._app.here
        if running is None or (embedder := running.memory.embedder) is None:
            return
        began = monotonic()
        with suppress(FolkloreError):  # a gap in the curve says it
            model = await embedder.model()
            holdings = await running.memory.namespaces.status(model.id)
            self._debt.set(sum(holding.without_vector for holding in holdings))
        now = monotonic()
        self._count_from = now + max(_COUNTED_EVERY, _SHARE * (now - began))
