"""Denied accesses on their way into the audit log: counted by kind, written in the background."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from folklore.background import in_background
from folklore.callers import Caller
from folklore.errors import FolkloreError, NotFound, Refused
from folklore.log import get_logger

log = get_logger(__name__)

_SECONDS = 2.0
# Equal denials are one line with a count, and this many lines wait: thousands of wrong tokens fill no table.
_ROOM = 100
_DETAIL = 200


@dataclass(frozen=True, slots=True)
class Denial:
    """Kind of denial: the caller, the operation, the reason, and a namespace in which the caller may read."""

    caller: Caller
    action: str
    outcome: str
    detail: str
    namespace: str | None = None


Record = Callable[[Denial, int, datetime], Awaitable[None]]


class DenialLog:
    """A bounded count of denials by kind, and one task that writes it."""

    def __init__(self, record: Record, *, seconds: float = _SECONDS) -> None:
        self._record = record
        self._seconds = seconds
        self._counted: dict[Denial, tuple[int, datetime]] = {}
        self._closing = asyncio.Event()
        self._writing: asyncio.Task[None] | None = None
        self.dropped = 0

    def note(
        self,
        caller: Caller,
        action: str,
        error: FolkloreError,
        *,
        now: datetime,
        reason: str = "",
    ) -> None:
        """Count a denial, without waiting. NotFound counts for a token, from which an existing memory may be hidden."""
        hidden = isinstance(error, NotFound) and caller.access is not None
        if not isinstance(error, Refused) and not hidden:
            return
        from folklore.memory.context.secret_guard import guard_fields

        # The message may quote the request, which may hold a secret.
        values, _ = guard_fields({"content": error.message}, "redact")
        detail = reason or str(values.get("content", error.message))[:_DETAIL]
        self._count(Denial(caller, action, error.code, detail, error.namespace), now)
        if self._writing is None or self._writing.done():
            self._writing = in_background(self._write(), "folklore-denials")

    def _count(self, denial: Denial, now: datetime) -> None:
        if denial not in self._counted and len(self._counted) >= _ROOM:
            # Too many kinds: count them by caller and operation alone.
            denial = replace(denial, detail="and others", namespace=None)
            if denial not in self._counted and len(self._counted) >= 2 * _ROOM:
                self.dropped += 1
                return
        count, _ = self._counted.get(denial, (0, now))
        self._counted[denial] = count + 1, now

    async def close(self, timeout: float = 3.0) -> None:
        """Write what is counted, within `timeout` seconds."""
        self._closing.set()
        if self._writing is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._writing, timeout)
        if self.dropped or self._counted:
            log.warning("denials_not_logged", count=self.dropped + len(self._counted))

    async def _write(self) -> None:
        while self._counted:
            if not self._closing.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), self._seconds)
            counts = self._counted
            self._counted = {}
            for denial, (count, at) in counts.items():
                try:
                    await self._record(denial, count, at)
                except FolkloreError as error:
                    self.dropped += count
                    log.warning("denial_not_logged", reason=error.message)
