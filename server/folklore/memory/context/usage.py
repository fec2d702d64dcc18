"""Usage record: which memory was put into which answer, written to the database after the answer has gone out.

It feeds the recall counts of memories, and passes the numbers of calls, answers and stores to the metrics of the HTTP
server.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from folklore.background import in_background
from folklore.callers import Caller
from folklore.db.stores.events.usage import UsageEntry
from folklore.errors import FolkloreError
from folklore.log import get_logger
from folklore.model import Answer
from folklore.new_ids import new_id

log = get_logger(__name__)

# Writes entries and returns those to be tried again.
Write = Callable[[Sequence[UsageEntry]], Awaitable[list[UsageEntry]]]

_DELAY_SECONDS = 2.0
_CAPACITY = 5_000
_BATCH = 500
# An entry whose memory is locked each time is dropped after so many tries.
_TRIES = 3


class CallMetrics:
    """Receiver of counts, which ignores them; the HTTP server has one that keeps them.

    An implementation keeps names of tools, codes, branches and numbers; never a text, a query, a namespace or a person.
    """

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """Count a tool call; `outcome` is ok, the code of an error, crashed or cancelled."""

    def answered(self, answer: Answer) -> None:
        """Count a recall or keyword search."""

    def stored(self, memories: int) -> None:
        """Count a stored batch after its commit."""


class UsageQueue:
    """Bounded queue of usage entries with one task that writes them `delay` seconds after the first.

    Entries that find the queue full or the database unavailable are dropped and counted: no answer waits for them.
    """

    def __init__(
        self,
        write: Write,
        *,
        session: str | None,
        delay: float = _DELAY_SECONDS,
        capacity: int = _CAPACITY,
    ) -> None:
        self._write = write
        self._session = session
        self._delay = delay
        self._capacity = capacity
        # with the number of tries so far
        self._entries: deque[tuple[UsageEntry, int]] = deque()
        self._closing = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self.written = 0
        self.dropped = 0

    def add(self, answer: Answer, *queries: str, caller: Caller, now: datetime) -> None:
        """Queue the found memories of an answer without waiting. Branches find no memories of a listing.

        Weak matches below better ones are left out: they only fill the answer up. A memory that answers
        several questions is counted once, for the first of them.
        """
        if not answer.found_by:
            return
        answer_id = new_id()
        better = any(result.match in ("strong", "fair") for result in answer.memories)
        digests = [query_digest(query) for query in queries]
        for rank, result in enumerate(answer.memories, start=1):
            if result.expanded is not None or (better and result.match == "weak"):
                continue
            entry = UsageEntry(
                namespace=result.memory.namespace,
                memory=result.memory.id,
                answer=answer_id,
                at=now,
                rank=rank,
                score=result.score,
                query=digests[result.queries[0] if result.queries else 0],
                session=self._session,
                caller=caller.author,
            )
            self.append(entry)

    def append(self, entry: UsageEntry) -> None:
        """Queue an entry without waiting."""
        if len(self._entries) >= self._capacity or self._closing.is_set():
            self.dropped += 1
            return
        self._entries.append((entry, 0))
        if self._writing is None or self._writing.done():
            self._writing = in_background(self._write_all(), "folklore-usage")

    async def close(self, timeout: float = 3.0) -> None:
        """Write the queued entries within `timeout` seconds and drop the rest."""
        self._closing.set()
        if self._writing is not None:
            try:
                await asyncio.wait_for(self._writing, timeout)
            except TimeoutError:
                log.warning("usage_not_written_in_time")
        self.dropped += len(self._entries)
        self._entries.clear()
        if self.dropped:
            log.info("usage_closed", written=self.written, dropped=self.dropped)

    async def _write_all(self) -> None:
        while self._entries:
            if not self._closing.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self._delay)
            for _ in range(-(-len(self._entries) // _BATCH)):
                await self._write_batch(
                    [
                        self._entries.popleft()
                        for _ in range(min(_BATCH, len(self._entries)))
                    ]
                )

    async def _write_batch(self, batch: list[tuple[UsageEntry, int]]) -> None:
        try:
            remaining = set(await self._write([entry for entry, _ in batch]))
        except FolkloreError as error:
            self.dropped += len(batch)
            log.warning("usage_not_written", entries=len(batch), reason=error.message)
            return
        except asyncio.CancelledError:
            self.dropped += len(batch)
            raise
        self.written += len(batch) - len(remaining)
        repeated = [
            (entry, tries + 1)
            for entry, tries in batch
            if entry in remaining and tries + 1 < _TRIES
        ]
        self.dropped += len(remaining) - len(repeated)
        self._entries.extend(repeated)


class UsageRecorder:
    """Records every answer; without a queue, as on a read-only server, nothing reaches the database."""

    def __init__(self, queue: UsageQueue | None = None) -> None:
        self.queue = queue
        self.metrics = CallMetrics()

    def record(
        self, answer: Answer, *queries: str, caller: Caller, now: datetime
    ) -> None:
        """Record the answer of a recall or keyword search without waiting."""
        self.metrics.answered(answer)
        if self.queue is not None:
            self.queue.add(answer, *queries, caller=caller, now=now)

    def record_use(
        self,
        used: str,
        memories: Iterable[tuple[str, UUID]],
        *,
        caller: Caller,
        now: datetime,
    ) -> None:
        """Record that a caller used memories, by the names of their namespaces, without waiting.

        It counts for those that a hook had injected.
        """
        if self.queue is not None:
            for namespace, memory in memories:
                self.queue.append(
                    UsageEntry(namespace, memory, now, caller.author, used)
                )

    async def close(self) -> None:
        """Write the queued entries."""
        if self.queue is not None:
            await self.queue.close()


def query_digest(query: str) -> bytes:
    """Return 16 bytes that identify a query without its words; white space and case do not count."""
    return hashlib.sha256(
        " ".join(query.casefold().split()).encode("utf-8", "surrogatepass")
    ).digest()[:16]
