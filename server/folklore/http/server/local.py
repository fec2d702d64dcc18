"""The user's server on a Unix socket: the tools and operations of this package for one user, without tokens."""

import asyncio
import gc
import logging
import os
import socket
import struct
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from folklore import telemetry
from folklore.app import App
from folklore.background import in_background
from folklore.client.local_server import LocalServer
from folklore.config import HttpSettings, Settings
from folklore.errors import ConfigInvalid, FolkloreError
from folklore.http.error_responses import Path
from folklore.http.limits import Limits
from folklore.http.requested import (
    RequestedNames,
    requested,
    requested_namespace,
    requested_zone,
)
from folklore.http.server.api import api_routes
from folklore.http.server.connections import (
    ConnectionGuard,
    RequestTracking,
    TrimmedHeaders,
)
from folklore.http.server.health import Health
from folklore.http.server.serve import (
    bind,
    exit_in_time,
    is_no_cancellation,
    uvicorn_config,
)
from folklore.http.transfers import Exports
from folklore.lazy import Lazy
from folklore.log import get_logger
from folklore.memory.auth.current_caller import calling, current_caller
from folklore.memory.auth.token_watch import TokenWatch
from folklore.memory.service import Service

if TYPE_CHECKING:
    from folklore.http import trusted_hosts
    from folklore.http.server import app as http_app
    from folklore.mcp import server as mcp_server
    from folklore.memory.service import operations
else:  # the libraries of MCP are two fifths of what a server imports, and hooks need none of them
    trusted_hosts = Lazy("folklore.http.trusted_hosts")
    http_app = Lazy("folklore.http.server.app")
    mcp_server = Lazy("folklore.mcp.server")
    operations = Lazy("folklore.memory.service.operations")

log = get_logger(__name__)

AUTHOR = "Folklore-Author"
DIRECTORY = "Folklore-Directory"
# After its socket is removed, the server ends when no request has come for one second, at the latest after ten.
_QUIET_SECONDS = 1.0
_LAST_SECONDS = 10.0
_LIMITS = Limits()
_LOOPBACK = "127.0.0.1"
# How long MCP, which no session has called yet, leaves the processor to the start and to what comes first then.
_START_SECONDS = 5.0
_FIRST_SECONDS = 1.0


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
    guard = ConnectionGuard(_LIMITS, admits=_is_of_this_user)
    console = _Console(app, server)
    ending = _Ending(
        server, inode, console, guard, settings.engine.idle_minutes * 60 or sys.maxsize
    )
    ending.serving = _Server(
        uvicorn_config(
            settings, _LOOPBACK, lambda: _application(app, console), guard, ending.look
        )
    )
    gc.freeze()  # what is imported is no garbage, and a search among it delays an answer by a tenth of a second
    ending.serving.run([listening])


class _Server(uvicorn.Server):
    is_stopping = False

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End when the requests that run are answered."""
        self.is_stopping = True


class _Inner(uvicorn.Server):
    """A server that leaves signals to the one around it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Console:
    """The console for one person, by one-time links alone, on a port that is opened when a link is asked for.

    Every user of the machine reaches the port.
    """

    def __init__(self, app: App, server: LocalServer) -> None:
        self.guard = ConnectionGuard(Limits())
        self._app = app
        self._server = server
        self._serving: tuple[str, _Inner, asyncio.Task[None]] | None = None

    async def open(self, _request: Request) -> Response:
        """Answer with the address."""
        if self._serving is not None and self._serving[1].should_exit:
            await self.close()
        if self._serving is None:
            try:
                [listening] = bind(_LOOPBACK, self._app.settings.http.port)
            except ConfigInvalid:  # another program has it
                [listening] = bind(_LOOPBACK, 0)
            app = self._app
            limits = self.guard.limits
            inner = _Inner(
                uvicorn_config(
                    app.settings,
                    _LOOPBACK,
                    lambda: http_app.build_console(app, _LOOPBACK, limits),
                    self.guard,
                )
            )
            serving = in_background(inner.serve([listening]), "folklore-console")
            url = f"http://{_LOOPBACK}:{listening.getsockname()[1]}"
            self._serving = (url, inner, serving)
            self._server.note_url(url)
        return JSONResponse({"url": self._serving[0]})

    async def hand_over(self, _request: Request) -> Response:
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


def _is_of_this_user(transport: asyncio.BaseTransport) -> bool:
    """Return whether the process at the other end belongs to the user of this one; its folder admits no other."""
    if sys.platform != "linux":
        return True
    connection = transport.get_extra_info("socket")
    peer = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    return bool(struct.unpack("3i", peer)[1] == os.getuid())


def _application(app: App, console: _Console) -> Starlette:
    """Return the application of the user's server, which starts and closes `app`."""
    health = Health(app)
    routes = [
        Path("/console", console.open, methods=["POST"]),
        Path("/console/port", console.hand_over, methods=["DELETE"]),
    ]

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        telemetry.start(os.environ)
        app.start()
        app.start_jobs()
        yield
        await console.close()
        await health.close()
        await app.close()
        await telemetry.stop()

    service = _service(app, app.project_at)
    return _user_application(
        app, service, health, routes, lifespan, partial(exit_in_time, _LAST_SECONDS)
    )


@asynccontextmanager
async def serving_beside(
    listening: socket.socket, url: str, namespace: str | None, app: App
) -> AsyncIterator[None]:
    """Serve the user's sessions and commands on a socket, over an application that another server started.

    `url` is where that server has its console; `namespace` is the setting for all projects of the user.
    """

    async def console(_request: Request) -> Response:
        return JSONResponse({"url": url})

    async def project_at(directory: str) -> str:
        return namespace or await app.repository_at(directory)

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        yield
        await health.close()

    health = Health(app)
    routes = [Path("/console", console, methods=["POST"])]
    service = _service(app, project_at)
    # The settings of the other server are for its clients: workers, certificates, proxies.
    settings = app.settings.model_copy(update={"http": HttpSettings()})
    guard = ConnectionGuard(_LIMITS, admits=_is_of_this_user)
    inner = _Inner(
        uvicorn_config(
            settings,
            _LOOPBACK,
            lambda: _user_application(app, service, health, routes, lifespan),
            guard,
        )
    )
    serving = in_background(inner.serve([listening]), "folklore-local")
    yield
    inner.should_exit = True
    await serving


def _user_application(
    app: App,
    service: Service,
    health: Health,
    console: Sequence[Path],
    around: Callable[[], AbstractAsyncContextManager[None]],
    on_shutdown: Callable[[], None] = lambda: None,
) -> Starlette:
    """Return what the user's sessions and commands call: tools, operations, probes and the console's address.

    It runs within `around`; `on_shutdown` is called before anything is closed.
    """
    mcp = _LaterMcp(app, service)

    @asynccontextmanager
    async def lifespan(_outer: Starlette) -> AsyncIterator[None]:
        async with around(), mcp.running():
            yield
            on_shutdown()

    return Starlette(
        routes=[
            Path("/healthz", health.alive),
            Path("/readyz", health.ready),
            *api_routes(service, Exports(service, TokenWatch(app.memory, app.now))),
            *console,
            Path("/mcp", mcp, methods=["POST"]),
        ],
        middleware=[
            Middleware(RequestTracking),
            Middleware(TrimmedHeaders),
            Middleware(RequestedNames),
            Middleware(_LocalCaller, local=app),
            Middleware(_BeforeMcp, mcp=mcp),
        ],
        lifespan=lifespan,
    )


class _LaterMcp:
    """MCP over HTTP as an ASGI application, whose libraries are imported when a session calls, or after the start.

    Other requests come first: so the hook of a session's start, which waits for the server, does not wait for them.
    """

    def __init__(self, app: App, service: Service) -> None:
        self._app = app
        self._service = service
        self._wanted = asyncio.Event()
        self._ended = asyncio.Event()
        self._imported = asyncio.Event()
        self._others = 0
        self._alone = asyncio.Event()
        self._alone.set()
        self._streamable: Starlette | None = None

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
        yield
        self._ended.set()
        await task

    async def _run(self) -> None:
        tasks = [
            asyncio.create_task(work)
            for work in (self._ended.wait(), self._wanted.wait(), self._started())
        ]
        ended, wanted, started = tasks
        await _first_of({ended, wanted, started}, _START_SECONDS)
        await _first_of({ended, wanted}, _FIRST_SECONDS)
        tasks.append(alone := asyncio.create_task(self._alone.wait()))
        await _first_of({ended, alone}, _START_SECONDS)
        if not ended.done():
            try:
                self._streamable = await asyncio.to_thread(self._application)
                gc.freeze()  # as `run` does
                router = self._streamable.router
                async with router.lifespan_context(self._streamable):
                    self._imported.set()
                    await ended
            finally:
                self._imported.set()
        for task in tasks:
            task.cancel()

    async def _started(self) -> None:
        with suppress(FolkloreError):  # the requests report it
            await self._app.ready()

    def _application(self) -> Starlette:
        server = mcp_server.build_server(
            self._service, offered=self._app.settings.tools
        )
        operations.import_all()
        security = trusted_hosts.transport_security("localhost", ())
        return http_app.streamable_http(server, "localhost", security, _LIMITS)


async def _first_of(tasks: set[asyncio.Task[Any]], seconds: float) -> None:
    """Wait until one of the tasks is done, at most so long."""
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)


class _BeforeMcp:
    """ASGI middleware that lets every request but those of MCP come before the import of its libraries."""

    def __init__(self, app: ASGIApp, mcp: _LaterMcp) -> None:
        self._app = app
        self._mcp = mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].rstrip("/") != "/mcp":
            with self._mcp.preceded():
                await self._app(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class _LocalCaller:
    """ASGI middleware that sets the caller: the user, under the name that the request states."""

    def __init__(self, app: ASGIApp, local: App) -> None:
        self._app = app
        self._local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = self._local.caller
        with calling(replace(caller, author=requested(AUTHOR) or caller.author)):
            await self._app(scope, receive, send)


def _service(app: App, other_project: Callable[[str], Awaitable[str]]) -> Service:
    """Return the operations in the namespace, directory and time zone that a request states.

    `other_project` returns the namespace of a directory that is not the session's.
    """

    def namespace() -> str:
        return requested_namespace() or app.namespace()

    async def project_at(directory: str) -> str:
        # With a namespace and without its directory, the client has one that is the same in all directories.
        is_session = (
            requested(DIRECTORY) in (None, directory)
            and requested_namespace() is not None
        )
        if is_session:
            return namespace()
        return await other_project(directory)

    async def context() -> Any:
        return await app.context(
            current_caller(),
            namespace,
            namespace,
            requested_zone() or app.zone,
            project_at=project_at,
        )

    return Service(context, current_caller, namespace, lambda: app.usage)
