"""GET /metrics in Prometheus' text format: counts of the server's own work.

Labels are names of tools, codes, branches and routes: a bounded set without contents, persons or namespaces. Several
workers write their numbers into files of one folder, and the worker that gets the request adds them up. That is
prometheus-client's multiprocess mode, which is on while PROMETHEUS_MULTIPROC_DIR names the folder. The library looks at
the variable when it is imported, so the variable must be set before a worker starts.
"""

import asyncio
import os
import platform
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import prometheus_client as prometheus
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from folklore import __version__
from folklore.app import App
from folklore.background import in_background
from folklore.disk import free_space
from folklore.errors import FolkloreError, Refused
from folklore.log import get_logger
from folklore.machine import is_loopback
from folklore.memory import CallMetrics
from folklore.model import Answer
from folklore.server.application.peers import FORWARDED
from folklore.server.current_caller import current_caller
from folklore.server.error_responses import failure

# They would be one more line for each metric, which nothing here uses.
prometheus.disable_created_metrics()  # type: ignore[no-untyped-call]

log = get_logger(__name__)

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
)
_BATCHES = (1, 2, 5, 10, 20, 50, 100, 200, 500)
# How often a worker publishes the state of its pool to the others, in seconds.
_PUBLISH_EVERY = 5.0
# Pending embeddings are counted at most once a minute, and for at most a hundredth of the time.
_COUNT_EVERY = 60.0
_COUNT_SHARE = 100.0


class Metrics(CallMetrics):
    """The counters of one process. Values of the label `outcome` are `ok` and the codes of errors.py."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._folder = Path(folder) if (folder := os.environ.get(_FOLDER)) else None
        self._registry = prometheus.CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self._registry)
        histogram = partial(prometheus.Histogram, registry=self._registry)
        gauge = partial(prometheus.Gauge, registry=self._registry)
        summed = partial(gauge, multiprocess_mode="livesum")
        build = gauge(
            "folklore_build_info",
            "The running version; always 1.",
            ["version", "python"],
            multiprocess_mode="max",
        )
        build.labels(__version__, platform.python_version()).set(1)
        self._calls = counter("folklore_tool_calls", "Tool calls.", ["tool", "outcome"])
        self._seconds = histogram(
            "folklore_tool_seconds",
            "Duration of tool calls.",
            ["tool"],
            buckets=_SECONDS,
        )
        self._recalls = counter(
            "folklore_recalls",
            "Recalls and searches, by whether they found anything.",
            ["found"],
        )
        self._results = counter(
            "folklore_recall_results",
            "Results, by the branch that found them.",
            ["branch"],
        )
        self._degraded = counter(
            "folklore_degraded_answers",
            "Answers without one of their branches.",
            ["branch"],
        )
        self._batches = histogram(
            "folklore_store_batch_memories", "Memories per store.", buckets=_BATCHES
        )
        self._pending = gauge(
            "folklore_pending_embeddings",
            "Memories without an embedding, counted up to 50,000 a namespace.",
            multiprocess_mode="mostrecent",
        )
        self._pool = summed(
            "folklore_pool_connections",
            "Connections to Postgres: in use, idle.",
            ["state"],
        )
        self._waiting = summed(
            "folklore_pool_waiting", "Tasks that wait for a connection."
        )
        self._most = summed("folklore_pool_connections_limit", "Connections at most.")
        self._free = gauge(
            "folklore_disk_free_bytes",
            "Free space of the embedded engine's disk.",
            multiprocess_mode="mostrecent",
        )
        self._dropped = counter(
            "folklore_usage_entries_dropped",
            "Entries of the usage log that were not written.",
        )
        self._requests = counter(
            "folklore_http_requests",
            "HTTP requests that ended.",
            ["method", "route", "status"],
        )
        self._open = summed(
            "folklore_http_requests_open",
            "HTTP requests and streams that are open.",
            ["route"],
        )
        if self._folder is None:
            prometheus.ProcessCollector(registry=self._registry)
        self._dropped_before = 0
        self._counting: asyncio.Task[None] | None = None
        self._count_from = 0.0

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """Count and log a call."""
        self._calls.labels(tool, outcome).inc()
        self._seconds.labels(tool).observe(seconds)
        caller = current_caller()
        milliseconds = round(seconds * 1e3, 1)
        values = {"tool": tool, "outcome": outcome, "ms": milliseconds}
        if caller.token is not None:
            values["principal"] = caller.author
        log.info("call", **values)

    def answered(self, answer: Answer) -> None:
        """Count an answer and the branches of its results."""
        found = "yes" if answer.memories else "no"
        self._recalls.labels(found).inc()
        for branch, results in answer.found_by.items():
            self._results.labels(branch).inc(results)
        missing = {degradation.branch for degradation in answer.degraded}
        for branch in missing:
            self._degraded.labels(branch).inc()

    def stored(self, memories: int) -> None:
        """Count a batch."""
        self._batches.observe(memories)

    def opened(self, route: str) -> None:
        """Count an open request."""
        self._open.labels(route).inc()

    def ended(self, method: str, route: str, status: str) -> None:
        """Count a request that ended."""
        self._open.labels(route).dec()
        self._requests.labels(method, route, status).inc()

    async def endpoint(self, request: Request) -> Response:
        """GET /metrics, for clients on this machine and for the holder of an owner's token."""
        is_owner = request.scope.get("state", {}).get("owner")
        if is_owner or is_local(request.scope):
            return Response(self.text(), media_type=prometheus.CONTENT_TYPE_PLAIN_0_0_4)
        return failure(
            Refused(
                "Metrics are for this machine and for owners.",
                hint="Send an owner's token, or ask on the server's machine.",
            )
        )

    def text(self) -> bytes:
        """Return everything in the text format, of all workers if there are several."""
        self._update()
        if self._folder is None:
            return prometheus.generate_latest(self._registry)
        forget_ended_workers(self._folder)
        of_all = prometheus.CollectorRegistry()
        MultiProcessCollector(of_all, path=str(self._folder))  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(of_all)

    @asynccontextmanager
    async def publishing(self) -> AsyncIterator[None]:
        """Publish this worker's state to the others every few seconds, within the block."""
        publishing = None
        if self._folder is not None:
            publishing = in_background(self._publish(), "folklore-metrics")
        try:
            yield
        finally:
            for task in (publishing, self._counting):
                if task is not None:
                    task.cancel()
                    await asyncio.wait({task})

    async def _publish(self) -> None:
        while True:
            self._update()
            await asyncio.sleep(_PUBLISH_EVERY)

    def _update(self) -> None:
        """Read what is not counted as it happens: the pool, the disk, lost entries, the pending embeddings."""
        running = self._app.started
        if running is None:
            return
        pool = running.database.statistics()
        self._pool.labels("in_use").set(pool.in_use)
        self._pool.labels("idle").set(pool.idle)
        self._waiting.set(pool.waiting)
        self._most.set(pool.maximum)
        if running.where == "embedded":
            self._free.set(free_space(self._app.settings.home))
        queue = self._app.usage.queue
        if queue is not None:
            self._dropped.inc(max(0, queue.dropped - self._dropped_before))
            self._dropped_before = queue.dropped
        is_counting = self._counting is not None and not self._counting.done()
        if monotonic() >= self._count_from and not is_counting:
            counting = self._count_pending()
            self._counting = in_background(counting, "folklore-metrics-pending")

    async def _count_pending(self) -> None:
        running = self._app.started
        if running is None or (embedder := running.memory.embedder) is None:
            return
        began = monotonic()
        with suppress(FolkloreError):  # a gap in the curve shows it
            model = await embedder.model()
            holdings = await running.memory.namespaces.status(model.id)
            self._pending.set(sum(holding.pending_embeddings for holding in holdings))
        now = monotonic()
        self._count_from = now + max(_COUNT_EVERY, _COUNT_SHARE * (now - began))


@contextmanager
def shared_folder(workers: int) -> Iterator[None]:
    """Give workers that are started within the block one folder for their numbers, and delete it afterwards.

    A single worker needs none. A folder that the environment already names is used and kept.
    """
    if workers < 2 or os.environ.get(_FOLDER):
        yield
        return
    with TemporaryDirectory(
        prefix="folklore-metrics-", ignore_cleanup_errors=True
    ) as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            os.environ.pop(_FOLDER, None)


def forget_ended_workers(folder: Path) -> None:
    """Forget the open connections of workers that ended; what they counted stays."""
    for file in folder.glob("gauge_live*_*.db"):
        match = re.fullmatch(r"gauge_live\w*?_(\d+)\.db", file.name)
        if match is not None and not _is_running(int(match[1])):
            mark_process_dead(int(match[1]), path=str(folder))  # type: ignore[no-untyped-call]


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's process, or a system without this question
        return True
    return True


def is_local(scope: Scope) -> bool:
    """Return True if the client is on this machine itself, and is not a proxy for another one."""
    client = scope.get("client")
    if client is None or any(name in Headers(scope=scope) for name in FORWARDED):
        return False
    return is_loopback(client[0])
