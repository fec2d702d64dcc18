"""One HTTP/1.1 connection, with a deadline for everything a client may keep us waiting for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from folklore.http.error_responses import on_the_wire

# What the server waits for: a request on a fresh connection, the next one, the end of a body nobody reads any more.
Awaited = Literal["request", "next", "rest"]

ENDING_SECONDS = 0.5  # when the server ends, for what is still to be sent
LINGER_SECONDS = 5.0  # for reading an answer that came before the request was whole, and for what is still to be sent

_SLOW = on_the_wire(
    408, "Request Timeout", "too_slow", "The request's head did not arrive in time.", "Send it again, in one piece."
)
_CUT = on_the_wire(400, "Bad Request", "truncated", "The request ended before it was whole.", "Send it again.")
_FULL = on_the_wire(
    503, "Service Unavailable", "overloaded", "Too many connections are open.", "Use one connection for many requests."
)

_ENDING = on_the_wire(503, "Service Unavailable", "ending", "The server is about to end.", "Send it again soon.")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long clients are waited for, in seconds, how many may be connected, and who of them is being waited for."""

    head: float
    next: float
    unread: float
    connections: int
    waited_for: dict[PatientConnection, None] = field(default_factory=dict)  # the longest first
    leaving: set[PatientConnection] = field(default_factory=set)  # closed by us, not gone yet


class PatientConnection(H11Protocol):
    """uvicorn's connection that does not wait forever.

    uvicorn times idle connections between requests only. Here a head must be whole in time, from the first byte on or
    from the start of the connection; a client that reads nothing of its answer is cut off, as is one that keeps sending
    a body after it was refused. When all places are taken, whoever has been silent longest makes room.
    """

    patience: Patience  # set by `patient`

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._awaited: Awaited | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._ending = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or refuse it when all places are taken by clients at work."""
        super().connection_made(transport)
        there = len(self.connections) - len(self.patience.leaving)
        if there > self.patience.connections and not self._make_room():
            self.transport.write(_FULL)
            self.leave()
            return
        self._look()

    def data_received(self, data: bytes) -> None:
        """Read on, and see what is waited for now."""
        super().data_received(data)
        self._look()

    def eof_received(self) -> None:
        """The client has ended what it sends: a request that is not whole gets 400 before the connection closes."""
        cut = self._begun() if self._awaited in ("request", "next") else self.conn.their_state is h11.SEND_BODY
        if cut and (self.cycle is None or self.cycle.response_complete or not self.cycle.response_started):
            self.transport.write(_CUT)
            if self.cycle is not None:
                self.cycle.disconnected = True
                self.cycle.message_event.set()

    def on_response_complete(self) -> None:
        """An answer is out: wait for the next request, or see that the rest of it gets read."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._abort_later()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._await(None)
        self.patience.leaving.discard(self)
        self._read_again()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client reads more slowly than we write: it must get on."""
        super().pause_writing()
        if self._unread is None:
            self._watch_reading(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """The client has read."""
        super().resume_writing()
        self._read_again()

    def timeout_keep_alive_handler(self) -> None:
        """No request came for a while."""
        self.leave()

    def shutdown(self) -> None:
        """The server ends: close when nothing runs here, else after the answer.

        Half a request is not waited for, nor for long a client that reads nothing.
        """
        self._ending = True
        if self._unread is not None:
            self._read_again()
            self._watch_reading(self.transport.get_write_buffer_size())
        if self.conn.their_state is h11.SEND_BODY and self.cycle and not self.cycle.response_started:
            self.transport.write(_ENDING)
            self.leave()
            return
        with suppress(h11.LocalProtocolError):
            super().shutdown()
        if self.cycle is None or self.cycle.response_complete:
            self.leave()

    def leave(self) -> None:
        """Close the connection once what was written is sent, or without that after a while."""
        self._await(None)
        self.patience.leaving.add(self)
        with suppress(h11.LocalProtocolError):
            self.conn.send(h11.ConnectionClosed())
        self.transport.close()
        self._abort_later()

    def _abort_later(self) -> None:
        # Nothing happens if it is closed by then.
        self.loop.call_later(ENDING_SECONDS if self._ending else LINGER_SECONDS, self.transport.abort)

    def _make_room(self) -> bool:
        for other in self.patience.waited_for:
            other.leave()
            return True
        return False

    def _look(self) -> None:
        """See what is waited for after whatever has just happened."""
        answered = self.cycle is None or self.cycle.response_complete
        if self.transport.is_closing() or not answered:
            self._await(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._await("rest")
        elif self.conn.their_state is h11.IDLE:
            self._await("request" if self.cycle is None or self._begun() else "next")

    def _await(self, awaited: Awaited | None) -> None:
        if awaited == self._awaited:
            return  # its deadline stands: a byte now and then gains no time
        self._awaited = awaited
        self.patience.waited_for.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        if awaited is None:
            return
        if awaited != "rest":
            self.patience.waited_for[self] = None
        seconds = {"request": self.patience.head, "next": self.patience.next, "rest": LINGER_SECONDS}[awaited]
        self._deadline = self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        if self._awaited == "request" and self._begun():
            self.transport.write(_SLOW)
        self.leave()

    def _begun(self) -> bool:
        return bool(self.conn.trailing_data[0])

    def _watch_reading(self, before: int) -> None:
        """Cut the client off unless it has read some of what waits for it within the time; `before` is in bytes."""

        def look() -> None:
            self._unread = None
            left = self.transport.get_write_buffer_size()
            if left >= before:
                self.transport.abort()
            else:
                self._watch_reading(left)

        self._unread = self.loop.call_later(ENDING_SECONDS if self._ending else self.patience.unread, look)

    def _read_again(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


def patient(patience: Patience) -> type[PatientConnection]:
    """The class of connections with this patience, to hand to uvicorn."""
    return type("PatientConnection", (PatientConnection,), {"patience": patience})
