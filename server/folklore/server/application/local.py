"""The user's server, on a Unix socket: it serves one user without tokens, opens the console, and ends when it is idle."""

import asyncio
import gc
import logging
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from folklore.app import App
from folklore.background import in_background
from folklore.client.local_server import LocalServer
from folklore.config import HttpSettings, Settings
from folklore.errors import ConfigInvalid
from folklore.log import get_logger
from folklore.server.application.app import OwnSide, build_app
from folklore.server.application.connections import ConnectionGuard
from folklore.server.application.inner import InnerServer, inner_server, own_guard
from folklore.server.application.serve import (
    LOOPBACK,
    bind,
    exit_in_time,
    is_no_cancellation,
    uvicorn_config,
)
from folklore.server.error_responses import Path
from folklore.server.limits import Limits
from folklore.server.listener import OWN, Entrance, by_link

log = get_logger(__name__)

# After its socket is removed, the server ends when no request has come for one second, at the latest after ten.
_QUIET_SECONDS = 1.0
_LAST_SECONDS = 10.0


def run(
    settings: Settings, server: LocalServer, listening: socket.socket, inode: int
) -> None:
    """Serve on a listening socket until the server is idle or the process gets SIGTERM.

    `inode` is that of the socket's path: the server ends too when the path leads elsewhere.
    """
    # One process, on this machine.
    settings = settings.model_copy(
        update={"http": HttpSettings(port=settings.http.port)}
    )
    logging.getLogger("uvicorn.error").addFilter(is_no_cancellation)
    app = App(settings)
    guard = own_guard()
    console = _Console(settings, server)
    ending = _Ending(
        server, inode, console, guard, settings.engine.idle_minutes * 60 or sys.maxsize
    )

    def application() -> Entrance:
        own = OwnSide(console.routes, settings.namespace, console.closed_at_the_end)
        on_shutdown = partial(exit_in_time, _LAST_SECONDS)
        return Entrance(
            build_app(app, by_link(LOOPBACK), own=own, on_shutdown=on_shutdown), OWN
        )

    ending.serving = _Server(
        uvicorn_config(settings, LOOPBACK, application, guard, ending.look)
    )
    gc.freeze()  # what is imported is no garbage, and a search among it delays an answer by a tenth of a second
    ending.serving.run([listening])


class _Server(uvicorn.Server):
    is_stopping = False

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End when the requests that run are answered."""
        self.is_stopping = True


class _Console:
    """The console for one person, by one-time links alone, on a port that is opened when a link is asked for.

    Every user of the machine reaches the port.
    """

    def __init__(self, settings: Settings, server: LocalServer) -> None:
        self.guard = ConnectionGuard(Limits())
        self.routes = [
            Path("/console", self._open, methods=["POST"]),
            Path("/console/port", self._hand_over, methods=["DELETE"]),
        ]
        self._settings = settings
        self._server = server
        self._serving: tuple[str, InnerServer, asyncio.Task[None]] | None = None

    @asynccontextmanager
    async def closed_at_the_end(self, _application: Starlette) -> AsyncIterator[None]:
        """Close the console at the end of the block."""
        yield
        await self.close()

    async def _open(self, request: Request) -> Response:
        """Answer with the address."""
        if self._serving is not None and self._serving[1].should_exit:
            await self.close()
        if self._serving is None:
            try:
                [listening] = bind(LOOPBACK, self._settings.http.port)
            except ConfigInvalid:  # another program has it
                [listening] = bind(LOOPBACK, 0)
            inner = inner_server(self._settings, request.app, self.guard)
            serving = in_background(inner.serve([listening]), "folklore-console")
            url = f"http://{LOOPBACK}:{listening.getsockname()[1]}"
            self._serving = (url, inner, serving)
            self._server.note_url(url)
        return JSONResponse({"url": self._serving[0]})

    async def _hand_over(self, _request: Request) -> Response:
        """Give up the port for `folklore serve --http`, and answer when it is free."""
        await self.close()
        return JSONResponse({})

    async def close(self) -> None:
        """Stop listening, and end when the requests that run are answered."""
        if self._serving is None:
            return
        _url, inner, task = self._serving
        inner.should_exit = True
        await task
        if self._serving is not None and self._serving[2] is task:
            self._serving = None
            self._server.note_url("")


class _Ending:
    """Decides, each second, whether the server ends: first its socket goes, then, without requests, the process."""

    serving: _Server

    def __init__(
        self,
        server: LocalServer,
        inode: int,
        console: _Console,
        guard: ConnectionGuard,
        idle_seconds: float,
    ) -> None:
        self._server = server
        self._inode = inode
        self._console = console
        self._guards = (guard, console.guard)
        self._idle_seconds = idle_seconds
        self._released: float | None = None

    async def look(self) -> None:
        """End the server if it is time."""
        for guard in self._guards:
            await guard.close_overdue()
        if self._released is not None:
            late = time.monotonic() - self._released > _LAST_SECONDS
            self.serving.should_exit |= late or self._is_idle(_QUIET_SECONDS)
            return
        # socket or home were removed: no client finds this server
        is_removed = self._server.inode() != self._inode
        is_over = self.serving.is_stopping or self._is_idle(self._idle_seconds)
        if is_removed or (is_over and self._server.release(self._inode)):
            self._released = time.monotonic()
            in_background(self._console.close(), "folklore-console-end")
            log.info("ending", told=self.serving.is_stopping, removed=is_removed)

    def _is_idle(self, seconds: float) -> bool:
        return all(guard.is_idle(seconds) for guard in self._guards)
