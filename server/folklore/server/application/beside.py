"""`folklore serve --http` as the user's server: it serves the sessions and commands of its home beside its clients."""

import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from folklore.app import App
from folklore.background import in_background
from folklore.client.local_server import Bound, LocalServer
from folklore.config import HttpSettings
from folklore.log import get_logger
from folklore.server.application.app import Application, OwnSide
from folklore.server.application.inner import inner_server, own_guard
from folklore.server.application.serve import Beside
from folklore.server.error_responses import Path
from folklore.server.listener import OWN, Entrance

log = get_logger(__name__)

# For what has the port to end its requests, and for an unknown program to say what it is.
_HAND_OVER_SECONDS = 10.0
_ANSWER_SECONDS = 2.0
_LOOK_SECONDS = 1.0


class TakenServer:
    """The user's server of a home and its settings, whose place this process takes.

    `namespace` is the setting for all projects of the user; `when_bound` is called while this process has one thread.
    """

    def __init__(
        self,
        server: LocalServer,
        namespace: str | None,
        when_bound: Callable[[LocalServer], None],
    ) -> None:
        self._server = server
        self._namespace = namespace
        self._when_bound = when_bound
        self._bound: Bound | None = None
        self._ending = threading.Event()

    def hand_over(self, port: int) -> bool:
        """Return true if a server of this home had the port for its console, and has given it up."""
        found = self._server.running_at(port)
        if found is None or found[1].is_http:
            return False
        connection = HTTPConnection("localhost", timeout=_HAND_OVER_SECONDS)
        try:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.settimeout(_HAND_OVER_SECONDS)
            connection.sock.connect(found[0])
            connection.request("DELETE", "/console/port")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def owner(self, host: str, port: int) -> str | None:
        """Return a sentence on the Folklore server that listens there; None if none does."""
        found = self._server.running_at(port)
        if found is not None and found[1].is_http:
            return (
                f"{host}:{port} is served already by your own `folklore serve --http`"
                f" (process {found[1].pid}): use that one, or end it where it was started."
            )
        if found is not None:
            return (
                f"{host}:{port} belongs to the console of your own server"
                f" (process {found[1].pid}), which did not give it up:"
                " `folklore server stop` ends it."
            )
        version = _folklore_at(host, port)
        if version is None:
            return None
        return (
            f"{host}:{port} belongs to another Folklore server (version {version})"
            " of another home or user."
        )

    @contextmanager
    def taken(self, url: str, console_url: str) -> Iterator[Beside | None]:
        """Be the user's server within the block; None where that is impossible.

        `url` is where this process listens, `console_url` where a browser of this machine finds the console.
        """
        try:
            self._bound = self._server.take_over()
        except OSError as error:
            log.warning(
                "no_local_server",
                socket=self._server.path,
                reason=error.strerror or str(error),
            )
        if self._bound is None:
            yield None
            return
        self._when_bound(self._server)
        # The server before this one may take some seconds to end, and sessions need not wait for that.
        threading.Thread(
            target=self._be_found, args=(url,), name="folklore-claim", daemon=True
        ).start()
        try:
            yield partial(own_side, self._bound.listening, console_url, self._namespace)
        finally:
            self.release()

    def _be_found(self, url: str) -> None:
        """Be the server on record until clients can start another, since the socket was removed."""
        assert self._bound is not None
        inode = self._bound.inode
        if not self._server.claim(inode, url, is_http=True):
            return
        while not self._ending.wait(_LOOK_SECONDS):
            if self._server.inode() != inode:
                self._server.give_up()
                return

    def release(self) -> None:
        """Let no client connect any more."""
        self._ending.set()
        if self._bound is not None:
            with suppress(OSError):
                self._server.release(self._bound.inode)


def own_side(
    listening: socket.socket, url: str, namespace: str | None, app: App
) -> OwnSide:
    """Return what an application has that serves this user on a socket too.

    `url` is where its console is; `namespace` is the setting for all projects of the user.
    """

    async def console(_request: Request) -> Response:
        return JSONResponse({"url": url})

    # The settings of the other server are for its clients: workers, certificates, proxies.
    settings = app.settings.model_copy(update={"http": HttpSettings()})

    @asynccontextmanager
    async def serving(application: Application) -> AsyncIterator[None]:
        inner = inner_server(settings, Entrance(application, OWN), own_guard())
        task = in_background(inner.serve([listening]), "folklore-local")
        yield
        inner.should_exit = True
        await task

    return OwnSide([Path("/console", console, methods=["POST"])], namespace, serving)


def _folklore_at(host: str, port: int) -> str | None:
    """Return the version of the Folklore server at an address; None if another program is there."""
    connection = HTTPConnection(host.strip("[]"), port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", "/healthz")
        value = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    finally:
        connection.close()
    is_ours = isinstance(value, dict) and value.get("name") == "folklore"
    return str(value["version"]) if is_ours else None
