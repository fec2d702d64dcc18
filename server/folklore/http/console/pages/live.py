"""The live feed: new events as server-sent events, for the pages that show them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from starlette.responses import Response, StreamingResponse

from folklore.background import in_background
from folklore.contract.review import Activity, ActivityRequest
from folklore.errors import FolkloreError, Unavailable
from folklore.http.console.guard import Visitor
from folklore.http.console.pages.timeline import asked, shared
from folklore.http.console.visit import Visit
from folklore.http.current_caller import calling
from folklore.http.error_responses import refusal
from folklore.http.team import Team
from folklore.memory import ConsoleSessions, Feed, new_events
from folklore.model import Caller
from folklore.permissions import role_in

# Seconds between two looks for new events, and between two signs of life of a silent stream.
_PAUSE = 2.0
_SILENCE = 15.0
# Streams of one process, and those of one session: a browser has one for each page in view, and at most six.
_STREAMS = 200
_STREAMS_OF_SESSION = 8
_MEDIA_TYPE = "text/event-stream"
# A proxy such as nginx would keep events back until there are many.
_HEADERS = {"x-accel-buffering": "no"}
_ALIVE = ": alive\n\n"
_END = "event: end\ndata: {}\n\n"


@dataclass(eq=False, slots=True)
class _Listener:
    """A stream: its session, its caller as last seen, and the sign that there are events that the caller may read."""

    secret: str = field(repr=False)
    caller: Caller
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> bool:
        """Return True when there are new events, False after some silence."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SILENCE):
                await self.woken.wait()
        woken = self.woken.is_set()
        self.woken.clear()
        return woken


class LiveFeed:
    """The streams of one process.

    While there are any, one task looks for new events and wakes the streams whose callers may read them. Each stream
    then reads its own events, as its caller; it ends with its session.
    """

    def __init__(self, team: Team, sessions: ConsoleSessions) -> None:
        self._team = team
        self._sessions = sessions
        self._listeners: set[_Listener] = set()
        self._watching: asyncio.Task[None] | None = None

    async def show(self, visit: Visit) -> Response:
        """Send events after those of a page (`after`), or of an earlier stream (Last-Event-ID)."""
        if visit.request.method == "HEAD":
            return Response(media_type=_MEDIA_TYPE)
        visitor: Visitor = visit.request.scope["state"]["visitor"]
        request = asked(
            visit,
            after=visit.request.headers.get("last-event-id")
            or visit.query.get("after"),
        )
        first = await visit.call(request)
        streams = sum(listener.secret == visitor.secret for listener in self._listeners)
        if streams >= _STREAMS_OF_SESSION or len(self._listeners) >= _STREAMS:
            return refusal(
                503,
                "overloaded",
                "Too many pages show the live feed already.",
                "Close some of them.",
            )
        listener = _Listener(visitor.secret, visitor.caller)
        return StreamingResponse(
            self._messages(visit, listener, request, first), 200, _HEADERS, _MEDIA_TYPE
        )

    async def _messages(
        self,
        visit: Visit,
        listener: _Listener,
        request: ActivityRequest,
        first: Activity,
    ) -> AsyncIterator[str]:
        """Yield the messages of one stream until its session ends."""
        with (
            self._listening(listener),
            self._team.watch.watching(listener.caller.token, listener.woken.set),
        ):
            # Without a cursor the stream begins after the latest events.
            yield _ALIVE if request.after is None else await _message(visit, first)
            request = request.model_copy(update={"after": first.after})
            # What happened between the first read and now woke other streams only.
            listener.woken.set()
            while True:
                woken = await listener.wait()
                try:
                    if await self._is_open(listener, woken):
                        read = await self._read(visit, listener, request)
                    else:
                        read = None
                except Unavailable:
                    read = None
                except FolkloreError:  # the session has ended, or the caller may no longer read the project
                    yield _END
                    return
                if read is None:
                    yield _ALIVE
                    continue
                request = request.model_copy(update={"after": read.after})
                if read.more:
                    listener.woken.set()
                yield await _message(visit, read)

    async def _is_open(self, listener: _Listener, woken: bool) -> bool:
        """Look the session up again; return True if there are events to read for it. Raises Unauthenticated."""
        caller = await self._sessions.find(listener.secret)
        if not caller.identified:  # the database is away
            if woken:
                listener.woken.set()
                await asyncio.sleep(_PAUSE)
            return False
        listener.caller = caller
        return woken

    async def _read(
        self, visit: Visit, listener: _Listener, request: ActivityRequest
    ) -> Activity:
        with calling(listener.caller):
            return await visit.call(request)

    @contextmanager
    def _listening(self, listener: _Listener) -> Iterator[None]:
        self._listeners.add(listener)
        if self._watching is None or self._watching.done():
            self._watching = in_background(self._watch(), "folklore-live")
        try:
            yield
        finally:
            self._listeners.discard(listener)

    async def _watch(self) -> None:
        """Look for new events for all streams, until there are none.

        It ends by itself: a task that was cancelled goes on for some time, in which a new stream would count on it.
        """
        feed: Feed | None = None
        while self._listeners:
            with suppress(Unavailable):
                names, feed = await new_events(
                    await self._team.app.memory(), feed, self._team.app.now()
                )
                for listener in self._listeners:
                    if any(
                        role_in(listener.caller, name) is not None for name in names
                    ):
                        listener.woken.set()
            await asyncio.sleep(_PAUSE)


async def _message(visit: Visit, read: Activity) -> str:
    """Return the message with some events, oldest first, and the cursor after them; a sign of life without any."""
    if not read.events:
        return _ALIVE
    shown = [
        await visit.fragment("timeline_event.html", event=event, **shared(visit))
        for event in read.events
    ]
    return f"id: {read.after}\nevent: activity\ndata: {json.dumps(shown)}\n\n"
