"""The live feed: new events as server-sent events, for the pages that show them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from starlette.responses import Response, StreamingResponse

from folklore.background import in_background
from folklore.callers import Caller
from folklore.contract.review import Activity, ActivityRequest
from folklore.errors import FolkloreError, Unavailable
from folklore.memory import ConsoleSessions, Feed, new_events
from folklore.permissions import role_in
from folklore.server.console.guard import Visitor
from folklore.server.console.pages.timeline import asked, shared
from folklore.server.console.visit import Visit
from folklore.server.current_caller import calling
from folklore.server.error_responses import refusal
from folklore.server.server_context import ServerContext

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
class _Stream:
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

    def __init__(self, server: ServerContext, sessions: ConsoleSessions) -> None:
        self._server = server
        self._sessions = sessions
        self._streams: set[_Stream] = set()
        self._watching: asyncio.Task[None] | None = None

    async def show(self, visit: Visit) -> Response:
        """Send events after those of a page (`after`), or of an earlier stream (Last-Event-ID)."""
        if visit.request.method == "HEAD":
            return Response(media_type=_MEDIA_TYPE)
        visitor: Visitor = visit.request.scope["state"]["visitor"]
        cursor = visit.request.headers.get("last-event-id") or visit.query.get("after")
        request = asked(visit, after=cursor)
        first = await visit.call(request)
        of_session = sum(stream.secret == visitor.secret for stream in self._streams)
        if of_session >= _STREAMS_OF_SESSION or len(self._streams) >= _STREAMS:
            return refusal(
                503,
                "overloaded",
                "Too many pages show the live feed already.",
                "Close some of them.",
            )
        stream = _Stream(visitor.secret, visitor.caller)
        return StreamingResponse(
            self._messages(visit, stream, request, first), 200, _HEADERS, _MEDIA_TYPE
        )

    async def _messages(
        self,
        visit: Visit,
        stream: _Stream,
        request: ActivityRequest,
        first: Activity,
    ) -> AsyncIterator[str]:
        """Yield the messages of one stream until its session ends."""
        with (
            self._watched(stream),
            self._server.watch.watching(stream.caller.token, stream.woken.set),
        ):
            # Without a cursor the stream begins after the latest events.
            yield _ALIVE if request.after is None else await _message(visit, first)
            request = request.model_copy(update={"after": first.after})
            # What happened between the first read and now woke other streams only.
            stream.woken.set()
            while True:
                try:
                    activity = await self._next(visit, stream, request)
                except FolkloreError:  # the session has ended, or the caller may no longer read the project
                    yield _END
                    return
                if activity is None:
                    yield _ALIVE
                    continue
                request = request.model_copy(update={"after": activity.after})
                if activity.more:
                    stream.woken.set()
                yield await _message(visit, activity)

    async def _next(
        self, visit: Visit, stream: _Stream, request: ActivityRequest
    ) -> Activity | None:
        """Return the next events; None after some silence, and while the database is away. Raises FolkloreError."""
        woken = await stream.wait()
        try:
            if not await self._is_open(stream, woken):
                return None
            with calling(stream.caller):
                return await visit.call(request)
        except Unavailable:
            return None

    async def _is_open(self, stream: _Stream, woken: bool) -> bool:
        """Look the session up again; return True if there are events to read for it. Raises Unauthenticated."""
        caller = await self._sessions.find(stream.secret)
        if not caller.identified:  # the database is away
            if woken:
                stream.woken.set()
                await asyncio.sleep(_PAUSE)
            return False
        stream.caller = caller
        return woken

    @contextmanager
    def _watched(self, stream: _Stream) -> Iterator[None]:
        self._streams.add(stream)
        if self._watching is None or self._watching.done():
            self._watching = in_background(self._watch(), "folklore-live")
        try:
            yield
        finally:
            self._streams.discard(stream)

    async def _watch(self) -> None:
        """Look for new events for all streams, until there are none.

        It ends by itself: a task that was cancelled goes on for some time, in which a new stream would count on it.
        """
        feed: Feed | None = None
        while self._streams:
            with suppress(Unavailable):
                memory = await self._server.app.memory()
                names, feed = await new_events(memory, feed, self._server.app.now())
                for stream in self._streams:
                    roles = [role_in(stream.caller, name) for name in names]
                    if any(roles):
                        stream.woken.set()
            await asyncio.sleep(_PAUSE)


async def _message(visit: Visit, activity: Activity) -> str:
    """Return the message with some events, oldest first, and the cursor after them; a sign of life without any."""
    if not activity.events:
        return _ALIVE
    html = [
        await visit.fragment("timeline_event.html", event=event, **shared(visit))
        for event in activity.events
    ]
    return f"id: {activity.after}\nevent: activity\ndata: {json.dumps(html)}\n\n"
