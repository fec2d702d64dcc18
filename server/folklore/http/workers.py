"""Several processes that serve one socket, and the parent that keeps them alive."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess

import structlog

log = structlog.get_logger(__name__)

_spawn = multiprocessing.get_context("spawn")

LONGEST_PAUSE = 5.0
_SETTLED_AFTER = 10.0  # a worker that lived so long did not fail at its start


@dataclass(slots=True)
class _Place:
    """A worker's place: who has it, or when the next one is due."""

    number: int
    process: SpawnProcess | None = None
    started: float = 0.0
    due: float = 0.0
    pause: float = 0.0


class Workers:
    """Processes that each run `work(*arguments)` with arguments of their own; one that dies is replaced.

    What the arguments hold goes through a pipe, never through the environment or the command line.
    """

    def __init__(self, arguments: Sequence[tuple[object, ...]], work: Callable[..., None]) -> None:
        self._work = work
        self._arguments = arguments
        self._places = [_Place(number) for number in range(len(arguments))]
        self._ending = False
        self._woken, self._wake = socket.socketpair()
        for end in (self._woken, self._wake):
            end.setblocking(False)

    def run(self, grace: float) -> None:
        """Until SIGTERM or SIGINT; then all are asked to end, and who is there after `grace` seconds is killed."""
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, self._end)
        signal.set_wakeup_fd(self._wake.fileno())
        try:
            while not self._ending:
                self._fill()
                self._wait()
        finally:
            signal.set_wakeup_fd(-1)
            self._end_all(grace)

    def _end(self, _sign: int, _frame: object) -> None:
        self._ending = True

    def _fill(self) -> None:
        now = time.monotonic()
        for place in self._places:
            if place.process is None and place.due <= now:
                place.process = _spawn.Process(
                    target=_run, args=(self._work, *self._arguments[place.number]), name=f"folklore-{place.number}"
                )
                place.process.start()
                place.started = now

    def _wait(self) -> None:
        """Until a worker dies, a place is due or a signal comes."""
        now = time.monotonic()
        due = [place.due - now for place in self._places if place.process is None]
        alive = {place.process.sentinel: place for place in self._places if place.process is not None}
        for ready in wait([*alive, self._woken], timeout=max(0.0, min(due)) if due else None):
            if isinstance(ready, int):
                self._bury(alive[ready])

    def _bury(self, place: _Place) -> None:
        assert place.process is not None
        place.process.join()
        now = time.monotonic()
        settled = now - place.started > _SETTLED_AFTER
        place.pause = 0.0 if settled else min(LONGEST_PAUSE, place.pause * 2 or 0.1)
        place.due = now + place.pause
        if not self._ending:
            log.warning("a worker ended and is replaced", worker=place.number, code=place.process.exitcode)
        place.process.close()
        place.process = None

    def _end_all(self, grace: float) -> None:
        there = [place.process for place in self._places if place.process is not None]
        for process in there:
            process.terminate()
        deadline = time.monotonic() + grace
        for process in there:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()
        self._woken.close()
        self._wake.close()


def _run(work: Callable[..., None], *arguments: object) -> None:
    """In the worker: the work, for as long as the parent lives."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, name="folklore-follow", daemon=True).start()
    work(*arguments)
