"""MCP whose libraries are imported when a session calls, or after the start."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore import memory
from folklore.app import App
from folklore.background import in_background
from folklore.errors import FolkloreError
from folklore.memory import Service
from folklore.server import trusted_hosts
from folklore.server.limits import Limits
from folklore.server.listener import Admits, Listener
from folklore.server.mcp_clients import MCP_PATH

if TYPE_CHECKING:
    from mcp.server import Server


# How long MCP, which no session has called yet, leaves the processor to the start and to what comes first then.
_START_SECONDS = 5.0
_FIRST_SECONDS = 1.0


class LaterMcp:
    """MCP over streamable HTTP as an ASGI application.

    Other requests come first: so the hook of a session's start, which waits for the server, does not wait for the
    import of the libraries.
    """

    def __init__(
        self, app: App, service: Service, network: Listener, limits: Limits
    ) -> None:
        self._app = app
        self._service = service
        self._network = network
        self._limits = limits
        self._wanted = asyncio.Event()
        self._ended = asyncio.Event()
        self._imported = asyncio.Event()
        self._others = 0
        self._alone = asyncio.Event()
        self._alone.set()
        self._streamable: Starlette | None = None

    @cached_property
    def server(self) -> Server[Any]:
        """The server of the protocol; the first use imports its libraries."""
        # The libraries of MCP are two fifths of what a server imports, and hooks need none of them.
        from folklore.mcp.server import build_server

        return build_server(self._service, offered=self._app.settings.tools)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._wanted.set()
        await self._imported.wait()
        assert self._streamable is not None  # else _run has failed, and logged it
        await self._streamable(scope, receive, send)

    @contextmanager
    def preceded(self) -> Iterator[None]:
        """Let a request, which the block works on, come before the import."""
        self._others += 1
        self._alone.clear()
        try:
            yield
        finally:
            self._others -= 1
            if self._others == 0:
                self._alone.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve within the block."""
        task = in_background(self._run(), "folklore-mcp")
        try:
            yield
        finally:
            self._ended.set()
            await task

    def build(self) -> Starlette:
        """Return the application of MCP, which the first call builds, and imports its libraries for.

        The server of one session calls this before anything else: its client waits for the tools.
        """
        if self._streamable is None:
            from folklore.server.application.mcp_routes import streamable_http

            host, allowed_hosts = self._network.host, self._network.allowed_hosts
            security = trusted_hosts.transport_security(host, allowed_hosts)
            self._streamable = streamable_http(
                self.server, host, security, self._limits
            )
        return self._streamable

    async def imported(self) -> None:
        """Import the libraries now, and wait for them."""
        self._wanted.set()
        await self._imported.wait()
        assert self._streamable is not None  # else _run has failed, and logged it

    async def _run(self) -> None:
        ended = asyncio.create_task(self._ended.wait())
        wanted = asyncio.create_task(self._wanted.wait())
        tasks: list[asyncio.Task[Any]] = [ended, wanted]
        started: asyncio.Task[Any] | None = None
        if self._app.brief:
            await _first_of({ended, wanted}, None)
        else:
            started = asyncio.create_task(self._started())
            tasks.append(started)
            await _first_of({ended, wanted, started}, _START_SECONDS)
            await _first_of({ended, wanted}, _FIRST_SECONDS)
        alone = asyncio.create_task(self._alone.wait())
        tasks.append(alone)
        await _first_of({ended, alone}, _START_SECONDS)
        if not ended.done():
            try:
                streamable = await asyncio.to_thread(self.build)
                async with streamable.router.lifespan_context(streamable):
                    self._imported.set()
                    await self._import_all(ended, started)
                    await ended
            finally:
                self._imported.set()
        for task in tasks:
            task.cancel()

    async def _import_all(
        self, ended: asyncio.Task[Any], started: asyncio.Task[Any] | None
    ) -> None:
        """Import what the first calls would, once the server has `started`: lists and calls need not wait for it."""
        is_for_sessions = self._network.admits is not Admits.TOKENS
        if is_for_sessions and started is not None:
            await _first_of({ended, started}, None)
            if ended.done():
                return
            await asyncio.to_thread(memory.import_all)
        gc.freeze()  # what is imported is no garbage

    async def _started(self) -> None:
        with suppress(FolkloreError):  # the requests report it
            await self._app.ready()


async def _first_of(tasks: set[asyncio.Task[Any]], seconds: float | None) -> None:
    """Wait until one of the tasks is done, at most so long."""
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


class BeforeMcp:
    """ASGI middleware that lets every request but those of MCP come before the import of its libraries."""

    def __init__(self, app: ASGIApp, mcp: LaterMcp) -> None:
        self._app = app
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != MCP_PATH:
            with self._mcp.preceded():
                await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, send)
