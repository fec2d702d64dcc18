"""The team's server as the bridge calls it: one POST for each message, with deadlines, retries and errors in words.

No call waits longer than five seconds for a server that is away. While the server runs, a call may take as long as it
needs: the server is asked for a sign of life on another connection.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from folklore import __version__
from folklore.clients.authorities import trust_authorities
from folklore.errors import FolkloreError, Unauthenticated, Unavailable

Message = dict[str, Any]
Notify = Callable[[Message], None]

_PAUSES = (0.05, 0.1, 0.2, 0.4)
# A connection that was unused for so long by the wall clock is not used again: the machine may have slept meanwhile,
# and what is sent on a connection that the other side has forgotten disappears.
_IDLE = 20.0
# The server sends at least a ping every 15 seconds once a call has begun.
_READ = 40.0
_DRAINED = 1.0


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


@dataclass(frozen=True, slots=True)
class Access:
    """What every request carries: the token, and headers that name the project and the time zone."""

    token: str | None
    headers: Mapping[str, str]


class _Lost(Exception):
    """No answer: `sent` is False if the server cannot have received the call."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class Remote:
    """A server over HTTP. `access` is called before the first request, and again if the server refuses the token."""

    def __init__(self, url: str, access: Callable[[], Awaitable[Access]], home: Path | None = None) -> None:
        self.url = url
        self._read_access = access
        self._access: asyncio.Task[Access] | None = None
        self._verify = url.startswith("https:") and trust_authorities(httpx.create_ssl_context(), url, home)
        self._http = self._client()
        self._used = time.time()
        self._running: set[asyncio.Task[None]] = set()
        self._away_since: float | None = None

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.url,
            verify=self._verify,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=_IDLE),
            headers={
                "user-agent": f"folklore-bridge/{__version__}",
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
            },
        )

    async def close(self) -> None:
        """Cancel the calls and close the connections."""
        tasks = [*self._running, *([self._access] if self._access else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._http.aclose()

    def prepare(self) -> None:
        """Begin to read what the first request needs."""
        if self._access is None or (self._access.done() and (self._access.cancelled() or self._access.exception())):
            self._access = asyncio.create_task(_awaited(self._read_access()))

    def was_away(self, seconds: float) -> bool:
        """Return whether the last call, in the last seconds, did not reach the server."""
        return self._away_since is not None and time.monotonic() - self._away_since < seconds

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
        began, pauses = time.monotonic(), iter(_PAUSES)
        access = await self._ready(began, patience)
        while True:
            try:
                answer = await self._exchange(message, headers, access, notify, began, patience)
            except _Lost as lost:
                # If it was away already, the caller has waited before.
                may_repeat = self._away_since is None and (repeatable or not lost.sent)
                pause = next(pauses, _PAUSES[-1])
                if may_repeat and time.monotonic() + pause < began + patience.retries:
                    await asyncio.sleep(pause)
                    continue
                self._away_since = time.monotonic()
                raise self._unavailable(lost, repeatable=repeatable) from lost
            except Unauthenticated:
                fresh = await self._renewed(began, patience)
                if fresh.token == access.token:
                    raise
                access = fresh
                continue
            self._away_since = None
            return answer

    async def _ready(self, began: float, patience: Patience) -> Access:
        """Return what every request carries. Raises Unavailable if it takes too long, and errors of the reading."""
        self.prepare()
        assert self._access is not None
        try:
            async with asyncio.timeout(max(0.0, began + patience.connected - time.monotonic())):
                return await asyncio.shield(self._access)
        except TimeoutError:
            raise Unavailable(
                f"The token for {self.url} cannot be read yet.",
                hint="Unlock the system's keyring, or set FOLKLORE_TOKEN.",
            ) from None

    async def _renewed(self, began: float, patience: Patience) -> Access:
        """Read the token again: it may have been replaced since this process started."""
        self._access = None
        return await self._ready(began, patience)

    async def _exchange(
        self,
        message: Message,
        headers: Mapping[str, str],
        access: Access,
        notify: Notify,
        began: float,
        patience: Patience,
    ) -> Message:
        """Send a request once. Raises _Lost without an answer, and the error of a refusal."""
        await self._refresh()
        authorization = {"authorization": f"Bearer {access.token}"} if access.token else {}
        connect = max(0.2, began + patience.connected - time.monotonic())
        request = self._http.build_request(
            "POST",
            "/mcp",
            content=json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
            headers={**access.headers, **authorization, **headers},
            timeout=httpx.Timeout(_READ, connect=connect),
        )
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._send(request, notify, answer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            deadline = began + patience.silent
            while not (await asyncio.wait({answer}, timeout=max(0.0, deadline - time.monotonic())))[0]:
                await self._check_alive(patience.alive)
                deadline = time.monotonic() + patience.silent
            return answer.result()
        except BaseException:
            task.cancel()  # closes the connection, which cancels the call at the server
            answer.cancel()
            raise

    async def _refresh(self) -> None:
        """Replace the connections if they may have been forgotten by the other side."""
        now = time.time()
        idle, self._used = abs(now - self._used), now
        if idle > _IDLE and not self._running:
            former, self._http = self._http, self._client()
            await former.aclose()

    async def _send(self, request: httpx.Request, notify: Notify, answer: asyncio.Future[Message]) -> None:
        """Set the answer, or the error, and read the rest of the response so that its connection can be used again."""
        error: Exception = _Lost("it closed the connection without an answer", sent=True)
        try:
            async with asyncio.timeout(None) as limit, aclosing(self._messages(request)) as messages:
                async for received in messages:
                    if "method" in received:
                        notify(received)
                    elif not answer.done():
                        answer.set_result(received)
                        limit.reschedule(asyncio.get_running_loop().time() + _DRAINED)
        except FolkloreError as refusal:
            error = refusal
        except (httpx.HTTPError, TimeoutError) as lost:
            error = _Lost(_reason(lost), sent=not isinstance(lost, _UNSENT))
        if not answer.done():
            answer.set_exception(error)
        self._used = time.time()

    async def _messages(self, request: httpx.Request) -> AsyncGenerator[Message, None]:
        """Yield the messages of the response. Raises the error that the server reports."""
        response = await self._http.send(request, stream=True)
        try:
            if response.headers.get("content-type", "").startswith("text/event-stream"):
                async for event in _events(response):
                    yield event
                return
            body = await response.aread()
        finally:
            await response.aclose()
        value = None
        with suppress(ValueError, RecursionError):
            value = json.loads(body)
        if not isinstance(value, dict) or "jsonrpc" not in value:
            raise self._refusal(response, value)
        yield value

    async def _check_alive(self, seconds: float) -> None:
        """Raise _Lost if the server does not answer on a connection of its own."""
        with suppress(httpx.HTTPError, TimeoutError):
            async with asyncio.timeout(seconds), httpx.AsyncClient(verify=self._verify) as client:
                response = await client.get(f"{self.url}/healthz", timeout=seconds)
                if response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                    return
        raise _Lost("it does not answer", sent=True)

    def _unavailable(self, lost: _Lost, *, repeatable: bool) -> Unavailable:
        """Return the error of a call without an answer: one line with the address and the next step."""
        if not lost.sent:
            message = f"The Folklore server {self.url} cannot be reached ({lost}); nothing was read or written."
            return Unavailable(
                message, hint="Go on without it: each call tries again. Check the network and the server."
            )
        message = f"The Folklore server {self.url} was lost during this call ({lost}); it may have been carried out."
        then = "Repeating it is safe." if repeatable else "Look with memory_get or memory_list before you repeat it."
        return Unavailable(message, hint=then)

    def _refusal(self, response: httpx.Response, value: Any) -> FolkloreError:
        """Return the error of a response that is no message of the protocol."""
        reported = value.get("error") if isinstance(value, dict) else None
        if not isinstance(reported, dict) or not isinstance(reported.get("message"), str):
            return Unavailable(
                f"{self.url}/mcp answered {response.status_code}, and not as a Folklore server does.",
                hint="Check the address, and what is between here and there.",
            )
        said = f"The Folklore server {self.url}: {reported['message']}"
        if response.status_code == httpx.codes.UNAUTHORIZED:
            return Unauthenticated(
                str(reported.get("code")),
                f"{said} Nothing was read or written.",
                hint=f"Ask its owner for a new token, then run `folklore install --server {self.url} --token fk_…`.",
            )
        return Unavailable(said, hint=reported.get("hint"))


_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


async def _awaited(awaitable: Awaitable[Access]) -> Access:
    return await awaitable


async def _events(response: httpx.Response) -> AsyncGenerator[Message, None]:
    """Yield the messages of an event stream; comments, and events without a message, are left out."""
    data: list[str] = []
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            with suppress(ValueError, RecursionError):
                value = json.loads("\n".join(data))
                if isinstance(value, dict):
                    yield value
            data.clear()


def _reason(error: Exception) -> str:
    """Return an error of the network in a few words of one line."""
    words = str(error).splitlines()
    return words[0][:200].rstrip(".") if words and words[0] else type(error).__name__
