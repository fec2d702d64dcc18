"""The usage log of this process: written behind the answers, in batches, and lost before it is ever in the way."""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime

import structlog

from folklore.db.stores.usage import Used
from folklore.errors import FolkloreError
from folklore.memory.ids import new_id
from folklore.model import Answer, Caller

log = structlog.get_logger(__name__)

Record = Callable[[Sequence[Used]], Awaitable[list[Used]]]

_SECONDS = 2.0
_ROOM = 5_000
_BATCH = 500
# A memory that is being changed each time is not worth a fourth try.
_TRIES = 3


class UsageLog:
    """A bounded queue and one task that empties it `seconds` after the first entry.

    An entry that finds no room, or that the database does not take, is dropped and counted: no answer waits for the log
    and no memory depends on it.
    """

    def __init__(self, record: Record, *, session: str | None, seconds: float = _SECONDS, room: int = _ROOM) -> None:
        self._record = record
        self._session = session
        self._seconds = seconds
        self._room = room
        self._queue: deque[tuple[Used, int]] = deque()  # an entry, and how often it was tried
        self._closing = asyncio.Event()
        self._emptying: asyncio.Task[None] | None = None
        self.written = 0
        self.dropped = 0

    def note(self, answer: Answer, query: str, *, caller: Caller, now: datetime) -> None:
        """Take in what an answer holds; never waits. A listing is no use of what it lists: only what has a score is."""
        answer_id = new_id()
        asked = query_digest(query)
        for rank, result in enumerate(answer.memories, start=1):
            if result.score is None:
                continue
            if len(self._queue) >= self._room or self._closing.is_set():
                self.dropped += 1
                continue
            memory = result.memory
            entry = Used(
                namespace=memory.namespace,
                memory=memory.id,
                answer=answer_id,
                at=now,
                rank=rank,
                score=result.score,
                query=asked,
                session=self._session,
                caller=caller.author,
            )
            self._queue.append((entry, 0))
        if self._queue and (self._emptying is None or self._emptying.done()):
            self._emptying = asyncio.create_task(self._empty(), name="folklore-usage")

    async def close(self, timeout: float = 3.0) -> None:
        """Write what is queued, within so many seconds; the rest is dropped."""
        self._closing.set()
        if self._emptying is not None:
            try:
                await asyncio.wait_for(self._emptying, timeout)
            except TimeoutError:
                log.warning("usage_log_not_finished")
        self.dropped += len(self._queue)
        self._queue.clear()
        if self.dropped:
            log.info("usage_log", written=self.written, dropped=self.dropped)

    async def _empty(self) -> None:
        while self._queue:
            if not self._closing.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self._seconds)
            for _ in range(-(-len(self._queue) // _BATCH)):
                await self._write([self._queue.popleft() for _ in range(min(_BATCH, len(self._queue)))])

    async def _write(self, batch: list[tuple[Used, int]]) -> None:
        try:
            left = set(await self._record([entry for entry, _ in batch]))
        except FolkloreError as error:
            self.dropped += len(batch)
            log.warning("usage_not_logged", entries=len(batch), reason=error.message)
            return
        except asyncio.CancelledError:
            self.dropped += len(batch)
            raise
        self.written += len(batch) - len(left)
        again = [(entry, tries + 1) for entry, tries in batch if entry in left and tries + 1 < _TRIES]
        self.dropped += len(left) - len(again)
        self._queue.extend(again)


def query_digest(query: str) -> bytes:
    """16 bytes that tell two questions apart and do not say what was asked; white space and case do not count."""
    return hashlib.sha256(" ".join(query.casefold().split()).encode("utf-8", "surrogatepass")).digest()[:16]
