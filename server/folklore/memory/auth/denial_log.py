"""Refused accesses on their way into the audit log: counted together, written behind the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from folklore.errors import FolkloreError, NotFound, Refused
from folklore.memory.secret_guard import guard_fields
from folklore.model import Caller

log = structlog.get_logger(__name__)

_SECONDS = 2.0
# Whoever tries tokens by the thousand fills no table: what is alike is one line with a number, and no more lines wait.
_ROOM = 100
_DETAIL = 200


@dataclass(frozen=True, slots=True)
class Denial:
    """One kind of refusal: to whom, what was tried, and why not."""

    caller: Caller
    action: str
    outcome: str
    detail: str


Record = Callable[[Denial, int, datetime], Awaitable[None]]


class DenialLog:
    """A bounded count of refusals by kind, and one task that writes it down."""

    def __init__(self, record: Record, *, seconds: float = _SECONDS) -> None:
        self._record = record
        self._seconds = seconds
        self._counted: dict[Denial, tuple[int, datetime]] = {}
        self._closing = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self.dropped = 0

    def note(self, caller: Caller, action: str, error: FolkloreError, *, now: datetime, reason: str = "") -> None:
        """Somebody was refused; never waits. What is not there counts for the holder of a token: it may be hidden."""
        if not isinstance(error, Refused) and not (isinstance(error, NotFound) and caller.access is not None):
            return
        # A message may quote what the caller wrote, where a secret may stand.
        shown, _ = guard_fields({"content": error.message}, "redact")
        detail = reason or str(shown.get("content", error.message))[:_DETAIL]
        refusal = Denial(caller, action, error.code, detail)
        if refusal not in self._counted and len(self._counted) >= _ROOM:
            # Too many that differ: they are counted by who and what alone.
            refusal = replace(refusal, detail="and others")
            if refusal not in self._counted and len(self._counted) >= 2 * _ROOM:
                self.dropped += 1
                return
        count, _ = self._counted.get(refusal, (0, now))
        self._counted[refusal] = count + 1, now
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write(), name="folklore-refusals")

    async def close(self, timeout: float = 3.0) -> None:
        """Write what is counted, within so many seconds."""
        self._closing.set()
        if self._writing is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._writing, timeout)
        if self.dropped or self._counted:
            log.warning("refusals_not_logged", count=self.dropped + len(self._counted))

    async def _write(self) -> None:
        while self._counted:
            if not self._closing.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self._seconds)
            due, self._counted = self._counted, {}
            for refusal, (count, at) in due.items():
                try:
                    await self._record(refusal, count, at)
                except FolkloreError as error:
                    self.dropped += count
                    log.warning("refusal_not_logged", reason=error.message)
