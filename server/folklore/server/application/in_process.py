"""The application in the process of the one session or command that it serves.

It listens nowhere: each connection is a pair of sockets, whose ends no other process has.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

import uvicorn
from uvicorn.server import ServerState

from folklore.app import App
from folklore.background import in_background
from folklore.client.http_client import HttpClient
from folklore.config import HttpSettings, Settings
from folklore.server.application.app import OwnSide, build_app
from folklore.server.application.connections import ConnectionGuard
from folklore.server.application.inner import own_guard
from folklore.server.application.serve import GRACEFUL_SECONDS, LOOPBACK, uvicorn_config
from folklore.server.listener import OWN, Entrance, by_link

_ENDED = "this process has ended its server"


class InProcess:
    """A server of this process, as clients call it (client/connections.py)."""

    log = "on its standard error"
    # What it does may take as long as it needs: this process waits for itself.
    answer_seconds = None
    waiting = "Working"

    def __init__(
        self, settings: Settings, config: uvicorn.Config, guard: ConnectionGuard
    ) -> None:
        self.home = str(settings.home)
        self._guard = guard
        self._config = config
        self._state = ServerState()
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._admissions = set[asyncio.Task[None]]()

    def connect(self, seconds: float) -> socket.socket:
        """Return a connection, from any thread. Raises ConnectionRefusedError after the end."""
        if self._is_closed:
            raise ConnectionRefusedError(_ENDED)
        ours, theirs = socket.socketpair()
        ours.settimeout(seconds)
        try:
            self._loop.call_soon_threadsafe(self._admit, theirs)
        except RuntimeError as error:  # the loop is closed
            ours.close()
            theirs.close()
            raise ConnectionRefusedError(_ENDED) from error
        return ours

    def replace_stuck(self) -> None:
        """Do nothing: no other process can take the place of this one."""

    async def close(self) -> None:
        """End the connections when their requests are answered, or after some seconds."""
        self._is_closed = True
        await asyncio.gather(*self._admissions)
        for connection in list(self._state.connections):
            connection.shutdown()
        requests = set(self._state.tasks)
        if requests:
            _, late = await asyncio.wait(requests, timeout=GRACEFUL_SECONDS)
            for request in late:
                request.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await asyncio.sleep(0)  # the loop closes what was shut down

    def _admit(self, connection: socket.socket) -> None:
        if self._is_closed:
            connection.close()
            return
        admission = in_background(self._serve(connection), "folklore-admission")
        self._admissions.add(admission)
        admission.add_done_callback(self._admissions.discard)

    async def _serve(self, connection: socket.socket) -> None:
        await self._loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        return self._guard.protocol(
            config=self._config, server_state=self._state, app_state={}
        )


@asynccontextmanager
async def in_process(
    app: App, *, is_for_session: bool = False
) -> AsyncIterator[InProcess]:
    """Serve an application to this process within the block, and close it; `is_for_session` if it is one session."""
    application = build_app(
        app,
        by_link(LOOPBACK),
        own=OwnSide((), app.settings.namespace, nullcontext, is_for_session),
    )
    # Those of the settings are for a server that others reach.
    settings = app.settings.model_copy(update={"http": HttpSettings()})
    guard = own_guard()
    config = uvicorn_config(
        settings,
        LOOPBACK,
        lambda: Entrance(application, OWN),
        guard,
        has_lifespan=False,
    )
    config.load()
    async with application.router.lifespan_context(application):
        server = InProcess(settings, config, guard)
        try:
            yield server
        finally:
            await server.close()


@asynccontextmanager
async def operations_here(settings: Settings) -> AsyncIterator[HttpClient]:
    """Give the operations of this process, for one command, within the block."""
    async with (
        in_process(App(settings, brief=True)) as server,
        HttpClient(settings, server) as client,
    ):
        yield client
