"""A server, the user's or a team's, as the bridge calls it: a POST for each message, deadlines, retries, errors in words.

No call waits longer than five seconds for a server that is away. While the server runs, a call may take as long as it
needs: the server is asked for a sign of life on another connection.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

from folklore import __version__
from folklore.client.access import Access
from folklore.client.connections import (
    Connections,
    Exchange,
    NoAnswer,
    UserServer,
)
from folklore.errors import FolkloreError, Unauthenticated, Unavailable

Message = dict[str, Any]
Notify = Callable[[Message], None]

_PAUSE_SECONDS = (0.05, 0.1, 0.2, 0.4)
# Of silence: the server sends at least a ping every 15 seconds once a call has begun.
_READ_SECONDS = 40.0
_DRAIN_SECONDS = 1.0
_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds that a call waits for a server that is away; the last two add up to less than five."""

    retries: float = 1.5  # a server that restarts may be back by then
    connected: float = 2.5
    silent: float = 2.5  # from then on the server is asked whether it lives
    alive: float = 2.0  # how long it may take to answer that


# For what can be answered without the server: the start of a session must not wait.
IMPATIENT = Patience(retries=0.0, connected=1.0, silent=1.0, alive=0.5)
_PATIENT = Patience()
# The user's own server may have to start, on a machine that does other work.
_LOCAL = Patience(retries=5.0, connected=10.0, silent=15.0, alive=5.0)


@dataclass(frozen=True, slots=True)
class Response:
    """Status of a response, and its JSON; None for other content."""

    status: int
    value: Any


class Remote:
    """A server over HTTP, or the `local` one of the user.

    `access` is called before the first request, and again if the server refuses the token.
    """

    def __init__(
        self,
        url: str,
        access: Callable[[], Access],
        home: Path | None = None,
        local: UserServer | None = None,
    ) -> None:
        self.url = url
        self._local = local
        if local is None:
            self._name = f"The Folklore server {url}"
            self._check = "Check the network and the server."
        else:
            self._name = f"Your Folklore server (its log: {local.log})"
            self._check = "Try `folklore server restart`."
        self._read_access = access
        self._access: asyncio.Future[Access] | None = None
        self._connections = Connections(url, home, local)
        self._away_since: float | None = None

    def close(self) -> None:
        """Close the connections, which ends the calls."""
        self._connections.close()

    def prepare(self) -> None:
        """Begin to read token and headers for the first request."""
        access = self._access
        has_failed = access and access.done() and access.exception() is not None
        if access is None or has_failed:
            loop = asyncio.get_running_loop()
            self._access = loop.run_in_executor(None, self._read_access)

    def was_away(self, seconds: float) -> bool:
        """Return whether the last call, in the last seconds, did not reach the server."""
        if self._away_since is None:
            return False
        return time.monotonic() - self._away_since < seconds

    async def call(
        self,
        message: Message,
        headers: Mapping[str, str],
        notify: Notify,
        *,
        repeatable: bool,
        patience: Patience = _PATIENT,
    ) -> Message:
        """Send a request and return its answer; notifications before it go to `notify`.

        A request that was not received is repeated for a while, one that may have been received only if `repeatable`.
        Raises Unavailable, Unauthenticated or another error that the server reports instead of an answer.
        """
        patience = patience if self._local is None else _LOCAL
        began = time.monotonic()
        pauses = iter(_PAUSE_SECONDS)
        access = await self._ready(began, patience)
        while True:
            try:
                answer = await self._exchange(
                    message, headers, access, notify, began, patience
                )
            except NoAnswer as lost:
                if self._local is not None and lost.silent:
                    with suppress(OSError):
                        await asyncio.to_thread(self._local.replace_stuck)
                    began = time.monotonic()
                pause = next(pauses, _PAUSE_SECONDS[-1])
                # If it was away already, the caller has waited before.
                may_repeat = self._away_since is None and (repeatable or not lost.sent)
                if may_repeat and time.monotonic() + pause < began + patience.retries:
                    await asyncio.sleep(pause)
                    continue
                self._away_since = time.monotonic()
                raise self._unavailable(lost, repeatable=repeatable) from lost
            except Unauthenticated:
                # the token may have been replaced since this process started
                self._access = None
                fresh = await self._ready(time.monotonic(), patience)
                if fresh.token == access.token:
                    raise
                access = fresh
                continue
            self._away_since = None
            return answer

    async def _ready(self, began: float, patience: Patience) -> Access:
        """Return token and headers. Raises Unavailable if reading them takes too long, and the errors of reading."""
        self.prepare()
        assert self._access is not None
        seconds = max(0.0, began + patience.connected - time.monotonic())
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(self._access)
        except TimeoutError:
            raise Unavailable(
                f"The token for {self.url} cannot be read yet.",
                hint="Unlock the system's keyring, or set FOLKLORE_TOKEN.",
            ) from None

    async def _exchange(
        self,
        message: Message,
        headers: Mapping[str, str],
        access: Access,
        notify: Notify,
        began: float,
        patience: Patience,
    ) -> Message:
        """Send a request once. Raises NoAnswer without an answer, and the error of a refusal."""
        all_headers = {
            **_HEADERS,
            "user-agent": f"folklore-bridge/{__version__}",
            **access.all_headers,
            **headers,
        }
        connect_seconds = max(0.2, began + patience.connected - time.monotonic())
        exchange = self._post(
            message, all_headers, notify, connect_seconds=connect_seconds
        )
        deadline = began + patience.silent
        try:
            while not exchange.answered.done():
                seconds = max(0.0, deadline - time.monotonic())
                done, _ = await asyncio.wait({exchange.answered}, timeout=seconds)
                if not done and not await self._is_alive(patience.alive):
                    raise NoAnswer(
                        "it does not answer", sent=exchange.sent, silent=True
                    )
                deadline = time.monotonic() + patience.silent
        finally:
            exchange.cancel()  # without an answer, its connection is closed, which cancels the call at the server
        response = exchange.answered.result()
        is_message = isinstance(response.value, dict) and "jsonrpc" in response.value
        if is_message and _reported(response.value) is None:
            return dict(response.value)
        raise self._refusal(response)

    def _post(
        self,
        message: Message,
        headers: Mapping[str, str],
        notify: Notify,
        *,
        connect_seconds: float,
    ) -> Exchange[Response]:
        """Send a message; those that come before its answer go to `notify`."""
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        body = text.encode("utf-8", "replace")
        loop = asyncio.get_running_loop()

        def work(
            connection: HTTPConnection, answered: Callable[[Response], None]
        ) -> None:
            with self._connections.exchange(
                connection, "POST", "/mcp", body, headers
            ) as response:
                kind = response.getheader("content-type", "")
                if not kind.startswith("text/event-stream"):
                    answered(Response(response.status, _json(response.read())))
                    return
                # To its end, so that the connection can be used again.
                for event in _events(response):
                    if "method" in event:
                        loop.call_soon_threadsafe(notify, event)
                        continue
                    answered(Response(response.status, event))
                    # else the response owns it: it is the last of its connection
                    if connection.sock is not None:
                        connection.sock.settimeout(_DRAIN_SECONDS)

        return Exchange(
            self._connections,
            work,
            connect_seconds=connect_seconds,
            read_seconds=_READ_SECONDS,
        )

    async def _is_alive(self, seconds: float) -> bool:
        """Return whether the server answers on a connection of its own, in time."""
        alive = self._connections.ask_alive(seconds)
        await asyncio.wait({alive}, timeout=seconds)
        return alive.done() and alive.result()

    def _unavailable(self, loss: NoAnswer, *, repeatable: bool) -> Unavailable:
        """Return the error of a call without an answer: one line with the address and the next step."""
        if not loss.sent:
            message = (
                f"{self._name} cannot be reached ({loss}); nothing was read or written."
            )
            hint = f"Go on without it: each call tries again. {self._check}"
            return Unavailable(message, hint=hint)
        message = f"{self._name} was lost during this call ({loss}); it may have been carried out."
        hint = "Look with memory_get or memory_list before you repeat it."
        if repeatable:
            hint = "Repeating it is safe."
        return Unavailable(message, hint=hint)

    def _refusal(self, response: Response) -> FolkloreError:
        """Return the error of a response that is no message of the protocol."""
        reported = _reported(response.value)
        if reported is None:
            return Unavailable(
                f"{self.url}/mcp answered {response.status}, and not as a Folklore server does"
                f"{self._connections.by_proxy}.",
                hint="Check the address, and what is between here and there.",
            )
        message = f"{self._name}: {reported['message']}"
        if response.status == HTTPStatus.UNAUTHORIZED:
            return Unauthenticated(
                str(reported.get("code")),
                f"{message} Nothing was read or written.",
                hint=f"Ask its owner for a new token, then run `FOLKLORE_TOKEN=fk_… folklore install --server {self.url}`.",
            )
        return Unavailable(message, hint=reported.get("hint"))


def _json(body: bytes) -> Any:
    """Return the value of a body; None if it is no JSON."""
    with suppress(ValueError, RecursionError):
        return json.loads(body)
    return None


def _events(response: HTTPResponse) -> Iterator[Message]:
    """Yield the messages of an event stream; comments, and events without a message, are left out."""
    data: list[bytes] = []
    for line in iter(response.readline, b""):
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            with suppress(ValueError, RecursionError):
                value = json.loads(b"\n".join(data))
                if isinstance(value, dict):
                    yield value
            data.clear()


def _reported(value: object) -> Mapping[str, Any] | None:
    """Return what a server reports in place of an answer: an error of its own, also as the data of JSON-RPC's."""
    error = _member(value, "error")
    if isinstance(_member(error, "code"), int):
        error = _member(error, "data")
    code = _member(error, "code")
    message = _member(error, "message")
    if not isinstance(error, dict) or not isinstance(code, str):
        return None
    if not isinstance(message, str):
        return None
    return error


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None
