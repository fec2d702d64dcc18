"""HTTP of this machine to servers: blocking connections of the standard library, a thread for each exchange.

A request takes a quarter of the processor time that httpx needs, and the import less memory; a bridge runs for every
session of an assistant.
"""

import asyncio
import select
import socket
import time
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Generic, Protocol, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

from folklore.background import in_thread
from folklore.client.authorities import tls_context
from folklore.proxies import proxy_for

Content = bytes | Iterable[bytes] | None
Answer = TypeVar("Answer")

# A connection that was unused for so long by the wall clock is not used again: the machine may have slept meanwhile,
# and what is sent on a connection that the other side has forgotten disappears.
_IDLE = 20.0


class UserServer(Protocol):
    """The server of this user, wherever it is: a process of its own (client/local_server.py), or this one."""

    @property
    def home(self) -> str:
        """The home of its data."""

    @property
    def log(self) -> str:
        """The path of its log."""

    @property
    def answer_seconds(self) -> float | None:
        """Within which time it answers, or gives a sign of life; None without a limit."""

    @property
    def waiting(self) -> str:
        """The message to a person who waits for it."""

    def connect(self, seconds: float) -> socket.socket:
        """Return a connection, from any thread. Raises OSError."""

    def replace_stuck(self) -> None:
        """End it if it does not answer, where another can take its place. Raises OSError."""


class NoAnswer(Exception):
    """No answer: `sent` is False if the server cannot have received the call, `silent` True if it does not answer."""

    def __init__(self, reason: str, *, sent: bool, silent: bool = False) -> None:
        super().__init__(reason)
        self.sent = sent
        self.silent = silent


class Connections:
    """Connections to one server, kept open for the next request; `local` is the user's, whatever the address."""

    def __init__(
        self, url: str, home: Path | None = None, local: UserServer | None = None
    ) -> None:
        self._server = urlsplit(url)
        self._local = local
        self._tls = tls_context(url, home) if self._server.scheme == "https" else None
        self._proxy = None if local else proxy_for(self._server)
        self._idle: deque[tuple[HTTPConnection, float]] = deque()
        self._used: set[HTTPConnection] = set()
        self._is_closed = False

    def close(self) -> None:
        """Close every connection; a thread that reads from one gets an error."""
        self._is_closed = True
        for connection in list(self._used):
            _abort(connection)
        while self._idle:
            self._idle.pop()[0].close()

    def take(self, seconds: float) -> HTTPConnection:
        """Return an open connection. Raises NoAnswer if the server does not accept one in time."""
        with suppress(IndexError):
            while True:
                connection, since = self._idle.pop()
                is_recent = abs(time.time() - since) < _IDLE
                if is_recent and not _is_closed_by_server(connection):
                    self._used.add(connection)
                    return connection
                connection.close()
        connection = self._new(seconds)
        self._used.add(connection)
        return connection

    def give_back(self, connection: HTTPConnection, *, reusable: bool) -> None:
        """Keep a connection for the next request, or close it."""
        self._used.discard(connection)
        if reusable and not self._is_closed:
            self._idle.append((connection, time.time()))
        else:
            connection.close()

    @contextmanager
    def exchange(
        self,
        connection: HTTPConnection,
        method: str,
        path: str,
        body: Content,
        headers: Mapping[str, str],
    ) -> Iterator[HTTPResponse]:
        """Send a request for a path below the address; give the response to the block. Raises NoAnswer."""
        path = f"{self._server.path}{path}"
        reusable = False
        try:
            if self._proxy is not None and self._tls is None:
                path = f"http://{self._server.netloc}{path}"
                headers = {**headers, **_authorization(self._proxy.address)}
            connection.request(method, path, body, dict(headers))
            with closing(connection.getresponse()) as response:
                yield response
                # closed: read to its end
                reusable = response.isclosed() and not response.will_close
        except (OSError, HTTPException) as error:
            raise NoAnswer(self._words(error), sent=True) from error
        finally:
            self.give_back(connection, reusable=reusable)

    def ask_alive(self, seconds: float) -> asyncio.Future[bool]:
        """Return, as a future, whether the server answers on a new connection."""

        def alive() -> bool:
            with suppress(NoAnswer):
                connection = self._new(seconds)
                with self.exchange(connection, "GET", "/healthz", None, {}) as response:
                    return response.status < HTTPStatus.INTERNAL_SERVER_ERROR
            return False

        return in_thread(alive, "folklore-alive")

    @property
    def by_proxy(self) -> str:
        """A clause for errors that names the proxy in use; "" without one."""
        if self._proxy is None:
            return ""
        return f", by {self._proxy.description}"

    def _words(self, error: Exception) -> str:
        return f"{_reason(error)}{self.by_proxy}"

    def _new(self, seconds: float) -> HTTPConnection:
        """Return a new open connection. Raises NoAnswer."""
        if self._proxy is not None and self._proxy.problem is not None:
            raise NoAnswer(
                f"{self._proxy.description} {self._proxy.problem}", sent=False
            )
        address = self._server if self._proxy is None else self._proxy.address
        host = address.hostname or ""
        if self._tls is None:
            connection = HTTPConnection(host, address.port, timeout=seconds)
        else:
            connection = HTTPSConnection(
                host, address.port, timeout=seconds, context=self._tls
            )
            if self._proxy is not None:
                connection.set_tunnel(
                    self._server.hostname or "",
                    self._server.port,
                    _authorization(self._proxy.address),
                )
        try:
            if self._local is not None:
                connection.sock = self._local.connect(seconds)
            else:
                connection.connect()  # without Nagle's delay
        except (OSError, HTTPException, ValueError) as error:
            # ValueError: a host that cannot be a name
            connection.close()
            raise NoAnswer(self._words(error), sent=False) from error
        connection.auto_open = 0  # a request on a closed connection is an error, and not sent on another one
        return connection


class Exchange(Generic[Answer]):
    """Work on a connection in a thread. `answered` gets what the work answers, NoAnswer, or another error of it.

    The work answers by calling the function that it gets, and may go on afterwards. Before it is `sent`, the server
    cannot have received anything.
    """

    def __init__(
        self,
        connections: Connections,
        work: Callable[[HTTPConnection, Callable[[Answer], None]], None],
        *,
        connect_seconds: float,
        read_seconds: float | None,
    ) -> None:
        self._connections = connections
        self._work = work
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._connection: HTTPConnection | None = None
        self._cancelled = False
        self.sent = False
        self._loop = asyncio.get_running_loop()
        self.answered: asyncio.Future[Answer] = self._loop.create_future()
        in_thread(self._exchange, "folklore-exchange").add_done_callback(self._ended)

    def cancel(self) -> None:
        """Close the connection, unless the answer is there."""
        if not self.answered.done():
            self.answered.cancel()
            self._cancelled = True
            if self._connection is not None:
                _abort(self._connection)

    def _ended(self, done: asyncio.Future[None]) -> None:
        """Take the error of an exchange that ended without an answer."""
        failure = done.exception() or NoAnswer(
            "it closed the connection without an answer", sent=True
        )
        if not self.answered.done():
            self.answered.set_exception(failure)

    def _exchange(self) -> None:
        connection = self._connection = self._connections.take(self._connect_seconds)
        if self._cancelled:
            self._connections.give_back(connection, reusable=False)
            return
        connection.sock.settimeout(self._read_seconds)
        self.sent = True
        self._work(connection, self._answer)

    def _answer(self, answer: Answer) -> None:
        def set_result() -> None:
            if not self.answered.done():
                self.answered.set_result(answer)

        self._loop.call_soon_threadsafe(set_result)


def _is_closed_by_server(connection: HTTPConnection) -> bool:
    """Return whether an idle connection was closed: then it is readable without a request."""
    readable, _, _ = select.select([connection.sock], [], [], 0)
    return bool(readable)


def _abort(connection: HTTPConnection) -> None:
    """Close a connection that another thread may be reading from."""
    stream = connection.sock
    if stream is not None:
        with suppress(OSError):
            # Not that of an SSLSocket, which takes the TLS state from under the other thread.
            socket.socket.shutdown(stream, socket.SHUT_RDWR)


def _authorization(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    user = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"proxy-authorization": f"Basic {b64encode(user.encode()).decode()}"}


def _reason(error: Exception) -> str:
    """Return an error of the network in a few words of one line."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror
    lines = text.splitlines() or [""]
    return lines[0][:200].rstrip(".") or type(error).__name__
