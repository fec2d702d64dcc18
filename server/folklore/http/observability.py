"""Everything that tells how a server is, in one piece: health, metrics, the log of requests, spans.

prometheus-client looks for a folder shared with other workers when it is imported, so this is imported in a worker, not
in the process that starts them.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute

from folklore import telemetry as spans
from folklore.app import App
from folklore.http.health import Health
from folklore.http.metrics import Metrics
from folklore.http.paths import Path
from folklore.http.request_log import Observed, Observer, metrics_endpoint


class Watch:
    """Over one application. `owner` says whether a request is the deployment's owner's, who may always see metrics."""

    def __init__(
        self,
        app: App,
        security: TransportSecuritySettings,
        owner: Callable[[Request], bool] = lambda _request: False,
    ) -> None:
        self._health, self._metrics = Health(app), Metrics(app)
        app.usage.metrics = Observer(self._metrics)
        self.routes: list[BaseRoute] = [
            Path("/healthz", self._health.alive),
            Path("/readyz", self._health.ready),
            Path("/metrics", metrics_endpoint(self._metrics, app.settings.http.metrics, security, owner)),
        ]

    def middleware(self, routes: Sequence[BaseRoute]) -> Middleware:
        """To be the outermost, so that what others refuse is counted and told too; `routes` are all there are."""
        return Middleware(Observed, metrics=self._metrics, routes=routes)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """A block in which the server runs."""
        collector = spans.start_collector(os.environ)
        try:
            async with self._metrics.told():
                yield
        finally:
            await self._health.close()
            if collector is not None:
                await collector.stop()
